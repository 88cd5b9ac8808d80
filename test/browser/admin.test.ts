/**
 * The operator of a fresh server opens the link of the first user, and comes to an app that works by the pages alone.
 */
import * as client from 'oauth4webapi'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { launchBrowser } from '../helpers/chromium.ts'
import { newFolder, printed, start } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'
import { addFirstApp, headed } from './first-app.ts'
import { look } from './look.ts'
import { listenForCallback } from './loopback-client.ts'

const browser = await launchBrowser()
t.teardown(() => browser.close())

/** Runs in the page: what the focus is on, and whether that shows. */
const focus = `(() => {
  const it = document.activeElement
  const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(it)
  return {
    name: (it.labels?.[0] ?? it).innerText.trim(),
    isShown: it.matches(':focus-visible') && ((outlineStyle !== 'none' && outlineWidth !== '0px') || boxShadow !== 'none'),
  }
})()`

/** Presses Tab until the focus is on what has this name. Every focus on the way shows. */
async function tabTo(t: Test, page: Page, wanted: string): Promise<void> {
  for (let stop = 0; stop < 60; stop += 1) {
    await page.keyboard.press('Tab')
    const { name, isShown } = await page.evaluate<{ name: string; isShown: boolean }>(focus)
    t.ok(isShown, `the focus on ${name} shows`)
    if (name === wanted) return
  }
  t.fail(`Tab does not reach ${wanted}`)
}

t.test('the first user comes from the link to an app that works', async (t) => {
  const [data, port] = [newFolder(t), await freePort()]
  const issuer = `http://localhost:${port}`
  const child = start(['serve', '--data', data, '--port', String(port), '--issuer', issuer], {
    LYCHGATE_SECRET: 'a secret for tests that is long enough',
    LYCHGATE_DRAIN_SECONDS: '0',
  })
  t.teardown(() => child.kill('SIGKILL'))
  const link = await printed(child, /http\S+\/link\?code=lyc_link_[\w-]{43}(?=\n)/)

  const context = await browser.newContext({ bypassCSP: false })
  t.teardown(() => context.close())
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  page.on('console', (message) => void (message.type() === 'error' && t.fail(message.text())))

  const { redirectUri, calls } = await listenForCallback(t)
  const added = await addFirstApp(page, { issuer, link }, redirectUri, (name) =>
    look(t, page, `admin-${name}`),
  )
  const { clientId, clientSecret } = added
  t.equal(added.issuer, issuer)

  // The app, with nothing but these values.
  const insecure = { [client.allowInsecureRequests]: true }
  const url = new URL(issuer)
  const server = await client.processDiscoveryResponse(url, await client.discoveryRequest(url, insecure))
  const verifier = client.generateRandomCodeVerifier()
  const authorization = new URL(server.authorization_endpoint ?? '')
  authorization.search = `${new URLSearchParams({
    client_id: clientId,
    redirect_uri: redirectUri,
    response_type: 'code',
    scope: 'openid profile',
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  })}`
  await page.goto(authorization.href)
  await page.getByRole('button', { name: 'Allow', exact: true }).click()
  await headed(page, 'You may close this page')
  t.equal(calls.length, 1)
  const parameters = client.validateAuthResponse(
    server,
    { client_id: clientId },
    new URL(page.url()),
    client.expectNoState,
  )
  const response = await client.authorizationCodeGrantRequest(
    server,
    { client_id: clientId },
    client.ClientSecretBasic(clientSecret),
    parameters,
    redirectUri,
    verifier,
    insecure,
  )
  const tokens = await client.processAuthorizationCodeResponse(server, { client_id: clientId }, response)
  t.equal(client.getValidatedIdTokenClaims(tokens)?.aud, clientId)

  for (const [path, name] of [
    ['/admin', '5-overview'],
    ['/admin/users', '6-users'],
    ['/admin/groups', '7-groups'],
    ['/admin/clients', '8-apps'],
    [`/admin/clients/${clientId}`, '9-app'],
    [`/admin/clients/${clientId}/edit`, '10-app-edit'],
    [`/admin/clients/${clientId}/remove`, '11-app-remove'],
    [`/admin/clients/${clientId}/keys`, '15-app-keys'],
    ['/admin/keys', '16-keys'],
    ['/admin/keys/rotate', '17-keys-rotate'],
    ['/admin/keys/1/retire', '18-key-retire'],
    ['/admin/audit', '12-log'],
    ['/admin/errors', '13-errors'],
  ] as const) {
    await page.goto(issuer + path)
    await look(t, page, `admin-${name}`)
  }
  await page.goto(`${issuer}/admin/users`)
  await page.getByRole('link', { name: 'ada' }).click()
  await headed(page, 'ada')
  await look(t, page, 'admin-14-user')

  // With the keyboard alone.
  await page.goto(`${issuer}/admin`)
  await tabTo(t, page, 'Apps')
  await page.keyboard.press('Enter')
  await headed(page, 'Apps')
  await tabTo(t, page, 'Portal')
  await page.keyboard.press('Enter')
  await headed(page, 'Portal')
  await tabTo(t, page, 'Lock, reset or delete')
  await page.keyboard.press('Enter')
  await tabTo(t, page, 'Lock Portal')
  await page.keyboard.press('Enter')
  await headed(page, 'Lock Portal')
  await tabTo(t, page, 'To confirm, type Portal')
  await page.keyboard.type('Portal')
  await page.keyboard.press('Enter')
  await page.getByRole('status').getByText('The app is locked').waitFor()
})
