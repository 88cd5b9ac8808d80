/** `/docs` of a development server in a real browser: it signs in and calls the API, under the policy of every page. */
import type { Page } from 'playwright-core'
import t from 'tap'
import { readDocsAsset, separateImages } from '../../src/dev/docs.ts'
import { launchBrowser } from '../helpers/chromium.ts'
import { authorize } from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { allowButton, visit } from './visitor.ts'

const browser = await launchBrowser()
t.teardown(() => browser.close())

t.test('the API description signs in and calls an operation of the API', async (t) => {
  const server = await startServer(t, { mode: 'dev' })
  const { page, complaints } = await visit(t, browser, `${server.issuer}/`)
  await page.getByRole('link', { name: 'API documentation' }).click()
  await page.getByRole('button', { name: 'Authorize' }).first().click()
  const form = page.locator('.auth-container')
  t.equal(await form.count(), 1, 'one block, which works')
  t.match(await form.innerText(), 'oauth2 (OAuth2, authorizationCode with PKCE)')
  const boxes = await form.locator('input[type=checkbox]').evaluateAll((all) => all.map(({ id }) => id))
  const names = boxes.map((id) => id.replace('-authorizationCode-checkbox-oauth2', ''))
  t.equal(new Set(names).size, names.length, 'each scope once')
  t.ok(names.includes('courses:read') && names.length > 30)
  const docs = { id: 'api-docs', redirectUri: `${server.issuer}/docs/oauth2-redirect.html`, method: 'none' }
  const requested = await authorize(server, docs, { scope: names.join(' ') })
  t.match(requested.headers.get('location'), /\/login\?interaction=/, 'each of them may be requested')
  await form.locator('label[for="courses:read-authorizationCode-checkbox-oauth2"]').click()
  const opened = page.waitForEvent('popup')
  await form.getByRole('button', { name: 'Apply given OAuth2 credentials' }).click()
  const popup: Page = await opened
  await popup.getByLabel('Email or user name').fill(alice.username)
  await popup.getByLabel('Password').fill(alice.password)
  await popup.getByRole('button', { name: 'Sign in', exact: true }).click()
  const closed = popup.waitForEvent('close')
  await allowButton(popup).click()
  await closed
  await form.getByRole('button', { name: 'Remove authorization' }).waitFor()
  await form.getByRole('button', { name: 'Close', exact: true }).click()

  const operation = page.locator('.opblock', { has: page.locator('[data-path="/api/courses"]') }).first()
  await operation.locator('.opblock-summary-control').click()
  await operation.getByRole('button', { name: 'Try it out' }).click()
  const responded = page.waitForResponse((response) => new URL(response.url()).pathname === '/api/courses')
  await operation.getByRole('button', { name: 'Execute' }).click()
  const response = await responded
  t.equal(response.status(), 200)
  t.match(response.request().headers()['authorization'], /^Bearer lyc_/)
  t.match(await response.json(), { caller: 'user', scope: 'openid courses:read' })
  t.strictSame(complaints, [], 'the policy of the page stops nothing it needs')
})

t.test('the description is shown at the URL of the issuer, and not by a production server', async (t) => {
  const server = await startServer(t, { mode: 'dev' })
  const port = new URL(server.issuer).port
  const elsewhere = await fetch(`http://127.0.0.1:${port}/docs`, { redirect: 'manual' })
  t.equal(elsewhere.headers.get('location'), `${server.issuer}/docs`)
  const page = await fetch(`${server.issuer}/docs`)
  const start = await fetch(`${server.issuer}/`)
  t.equal(
    page.headers.get('content-security-policy'),
    start.headers.get('content-security-policy'),
    'the policy is that of every page',
  )
  t.notMatch(page.headers.get('content-security-policy'), /unsafe|data:/)
  const production = await startServer(t)
  for (const path of ['/docs', '/docs/swagger-ui-bundle.js', '/docs/oauth2-redirect.html'])
    t.equal((await fetch(production.issuer + path)).status, 404, path)
})

t.test('every image of the stylesheet is served as a file', async (t) => {
  const server = await startServer(t, { mode: 'dev' })
  const { css, images } = separateImages(
    readDocsAsset('swagger-ui.css').toString(),
    (number) => `images/${number}`,
  )
  t.notMatch(css, 'data:')
  t.ok(images.length > 10)
  for (const [number, { type, body }] of images.entries()) {
    const image = await fetch(`${server.issuer}/docs/images/${number}`)
    t.equal(image.headers.get('content-type'), type)
    t.ok(Buffer.from(await image.arrayBuffer()).equals(body))
    if (type === 'image/svg+xml')
      t.match(body.toString(), /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" .*<\/svg>$/)
  }
  for (const number of [images.length, -1, 'x'])
    t.equal((await fetch(`${server.issuer}/docs/images/${number}`)).status, 404)
})
