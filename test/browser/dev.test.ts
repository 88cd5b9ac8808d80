/** The pages of a development server in a real browser: by clicking, live, under their policy, and accessible. */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { launchBrowser } from '../helpers/chromium.ts'
import { obtainTokens, refresh, register } from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { allowButton, headed, visit } from './visitor.ts'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const server = await startServer(t, { mode: 'dev' })
const browser = await launchBrowser()
t.teardown(() => browser.close())

/** The first browser tests everything, the other only what differs there. */
const looks = [
  { width: 1200, colorScheme: 'light', options: '{}' },
  { width: 360, colorScheme: 'dark', options: "{ runOnly: ['color-contrast'] }" },
] as const
const judge = (options: string) => `axe.run(${options}).then(({ violations }) =>
  violations.map(({ id, nodes }) => id + ': ' + nodes.map(({ html }) => html.slice(0, 120)).join(' | ')))`

/** Asserts no finding of axe and nothing wider than the window, with everything expanded. */
async function assertFine(t: Test, page: Page): Promise<void> {
  await page.evaluate(axe)
  await page.evaluate("document.querySelectorAll('details').forEach((it) => { it.open = true })")
  for (const { width, colorScheme, options } of looks) {
    await page.setViewportSize({ width, height: 900 })
    await page.emulateMedia({ colorScheme })
    const found = await page.evaluate<string[]>(judge(options))
    t.strictSame(found, [], `${await page.title()}, ${width} ${colorScheme}`)
    const overhang = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
    t.ok(overhang <= 0, `${overhang} px wider than ${width}`)
  }
}

t.test('by clicking alone, the try-it client goes from discovery to a 401 that is explained', async (t) => {
  const { page, complaints } = await visit(t, browser, `${server.issuer}/`)
  await headed(page, 'This server shows what it does')
  await assertFine(t, page)
  await page.getByRole('button', { name: 'Try it as alice' }).click()
  await page.getByRole('button', { name: 'Fetch the metadata' }).click()
  await page.getByText('The metadata lists every endpoint.').waitFor()
  await page.getByRole('button', { name: 'This and the following steps' }).click()
  await page.getByRole('link', { name: 'Go and sign in' }).click()
  t.equal(await page.getByLabel('Email or user name').inputValue(), alice.username)
  await page.getByLabel('Password').fill(alice.password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await allowButton(page).click()
  await page.getByText('The response has a code.').waitFor()
  t.equal(new URL(page.url()).origin, server.origin, 'back where it began, by way of the loopback literal')
  for (const name of [
    ...['Exchange the code for tokens', 'Fetch the keys and check', 'Call UserInfo', 'Call the API'],
    ...[
      'Introspect the access token',
      'Refresh',
      'Revoke the refresh token',
      'Call the API with the revoked token',
    ],
  ])
    await page.getByRole('button', { name, exact: true }).click()
  await page.getByText('The run is complete, from discovery to revocation.').waitFor()
  await page.getByText('its grant was revoked at').waitFor()
  await assertFine(t, page)
  await page.getByRole('link', { name: 'This run in the flow trace' }).click()
  await headed(page, 'Lychgate try-it')
  await assertFine(t, page)
  t.strictSame(complaints, [])
})

t.test('an open flow updates live, and keeps open what was opened', async (t) => {
  const client = await register(server, { client_name: 'Watched' })
  const tokens = await obtainTokens(server, client)
  const { page, complaints } = await visit(t, browser, `${server.issuer}/_dev/flows`)
  await page.getByText('live', { exact: true }).waitFor()
  await assertFine(t, page)
  await page.getByRole('link', { name: 'Watched' }).click()
  await page.getByText('live', { exact: true }).waitFor()
  await page.locator('summary', { hasText: 'code exchange' }).click()
  await page.getByText('S256 of the code_verifier is the code_challenge').waitFor()
  await refresh(server, client, tokens.refresh_token)
  await page.locator('summary', { hasText: 'refresh' }).waitFor()
  t.equal(await page.locator('details.exchange[open]').count(), 1)
  await page.getByRole('button', { name: 'Open all' }).click()
  t.equal(await page.locator('details.exchange:not([open])').count(), 0)
  t.strictSame(complaints, [])
})

t.test('the link of an error page leads to its request, expanded', async (t) => {
  const { page } = await visit(t, browser, `${server.issuer}/oauth/authorize?client_id=nobody`)
  await page.locator('.facts a').click()
  await headed(page, 'nobody')
  const rejected = page.locator('li:target details[open]')
  t.match(await rejected.innerText(), 'rfc6749-4.1.2.1-client-error-page')
})

t.test('buttons copy, and move the time', async (t) => {
  const { page, context, complaints } = await visit(t, browser, `${server.issuer}/`)
  await context.grantPermissions(['clipboard-read', 'clipboard-write'])
  await page.getByRole('button', { name: 'Copy Token' }).click()
  await page.getByText('Copied').waitFor()
  t.equal(await page.evaluate<string>('navigator.clipboard.readText()'), `${server.issuer}/api/oauth/token`)
  const before = server.now()
  await page.getByRole('button', { name: '+ 31 days' }).click()
  await page.getByText(new Date((before + 31 * 86_400) * 1000).toISOString().slice(0, 10)).waitFor()
  t.ok(server.now() >= before + 31 * 86_400)
  await page.getByRole('button', { name: 'Lose the next token response' }).click()
  await page.getByText('drop-after-commit token ×1').waitFor()
  await page.getByRole('button', { name: 'Remove the faults' }).click()
  await page.getByText('drop-after-commit').waitFor({ state: 'detached' })
  await page.getByRole('button', { name: 'Reset' }).click()
  await page
    .getByText(new Date(before * 1000).toISOString().slice(0, 10))
    .first()
    .waitFor()
  t.strictSame(complaints, [])
})

t.test('the lists of faults, snapshots and issuers are pages, empty and not', async (t) => {
  const { page, complaints } = await visit(t, browser, `${server.issuer}/_dev/faults`)
  await page.getByText('No fault was requested.').waitFor()
  await assertFine(t, page)
  await page.goto(`${server.issuer}/_dev/snapshots`)
  await page.getByText('No snapshot was taken.').waitFor()
  await assertFine(t, page)
  const fault = { endpoint: 'token', fault: 'delay', ms: 1 }
  await page.request.post(`${server.issuer}/_dev/faults`, { data: fault })
  await page.request.post(`${server.issuer}/_dev/snapshots/before`)
  for (const [list, item] of [
    ['faults', 'delay at token'],
    ['snapshots', 'before'],
    ['issuers', 'metadata-other-issuer'],
  ] as const) {
    await page.goto(`${server.issuer}/_dev/${list}`)
    await page.getByRole('heading', { name: item, exact: true }).waitFor()
    await assertFine(t, page)
  }
  t.strictSame(complaints, [])
})
