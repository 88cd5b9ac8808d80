/** Passkeys in a real browser: a virtual authenticator creates, stores and uses them. */

import type { BrowserContext, CDPSession, Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { remove, update } from '../../src/domain/decision.ts'
import { passkeyKind } from '../../src/users/rules/passkey.ts'
import { integrate } from '../helpers/authorization.ts'
import { launchBrowser } from '../helpers/chromium.ts'
import { authorizationUrl, claimsOf, exchange, type Fields, type Tokens } from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { listenForCallback, startLoopbackClient } from './loopback-client.ts'
import { addAuthenticator } from './virtual-authenticator.ts'

const server = await startServer(t)
const browser = await launchBrowser()
t.teardown(() => browser.close())

interface KnownBrowser {
  readonly context: BrowserContext
  readonly page: Page
  readonly authenticator: CDPSession
  readonly authenticatorId: string
  /** What the policies of a page blocked. */
  readonly blocked: string[]
}

/** A separate browser on a device with a fingerprint reader, of a user without any passkey. */
async function device(t: Test): Promise<KnownBrowser> {
  await forgetPasskeys()
  const context = await browser.newContext()
  t.teardown(() => context.close())
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  const blocked: string[] = []
  page.on('console', (message) => {
    if (/Content Security Policy|Refused/.test(message.text())) blocked.push(message.text())
  })
  const { session: authenticator, authenticatorId } = await addAuthenticator(context, page)
  return { context, page, authenticator, authenticatorId, blocked }
}

async function userId(): Promise<string> {
  return (await server.deps.store.find('userByLogin', 'alice'))?.id ?? ''
}

async function forgetPasskeys(): Promise<void> {
  for (const { id } of await server.deps.store.listOf(passkeyKind, await userId()))
    await server.deps.store.write(remove(passkeyKind, id))
}

/** Whether the user touches the reader: until they do, nothing is offered automatically either. */
async function finger({ authenticator, authenticatorId }: KnownBrowser, enabled: boolean): Promise<void> {
  await authenticator.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled })
}

/** Presses the button for a passkey while the user touches the reader. */
async function usePasskey(here: KnownBrowser, label: string): Promise<void> {
  await here.page.getByRole('button', { name: label }).waitFor()
  await finger(here, true)
  await here.page.getByRole('button', { name: label }).click()
}

async function signIn(page: Page): Promise<void> {
  await page.getByLabel('Email or user name').fill(alice.username)
  await page.getByLabel('Password').fill(alice.password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

async function addPasskey({ page }: KnownBrowser, name: string): Promise<void> {
  await page.goto(`${server.issuer}/account/passkeys`)
  if (page.url().includes('/login')) await signIn(page)
  await page.getByLabel('Name of the passkey').fill(name)
  await page.getByRole('button', { name: 'Add a passkey' }).click()
  await page.getByText('The passkey was added.').waitFor()
}

/** Signs out, and leaves the device untouched. */
async function signOut(here: KnownBrowser): Promise<void> {
  await here.context.clearCookies()
  await finger(here, false)
}

const { redirectUri } = await listenForCallback(t)
const portal = await integrate(server, { consent: 'skip', redirectUris: [redirectUri] })

/** The ID Token of a first-party client, once the browser returns to it. */
async function idTokenAfter(here: KnownBrowser, fields: Fields, act: () => Promise<void>) {
  await here.page.goto(authorizationUrl(server, portal, fields))
  await act()
  await here.page.waitForURL(`${redirectUri}**`)
  const { searchParams } = new URL(here.page.url())
  const code = searchParams.get('code')
  if (code === null) return { error: searchParams.get('error') }
  const tokens = (await (await exchange(server, portal, code)).json()) as Tokens
  return claimsOf(tokens.id_token)
}

t.test('a passkey is created, and signs its user in without a name and a password', async (t) => {
  const here = await device(t)
  await addPasskey(here, 'Laptop')
  const { credentials } = await here.authenticator.send('WebAuthn.getCredentials', here)
  t.equal(credentials.length, 1)
  t.equal(credentials[0]?.isResidentCredential, true)
  t.equal(credentials[0]?.rpId, 'localhost')
  await signOut(here)
  const client = await startLoopbackClient(t, server)
  await here.page.goto(client.url({ scope: 'openid' }))
  await usePasskey(here, 'Sign in with a passkey')
  await here.page.getByRole('button', { name: 'Allow', exact: true }).click()
  await here.page.getByRole('heading', { name: 'You may close this page' }).waitFor()
  const response = await exchange(server, client, client.calls.at(-1)?.parameters['code'] ?? '')
  const { id_token: idToken } = (await response.json()) as Tokens
  t.match(claimsOf(idToken), { sub: await userId(), acr: 'phr', amr: ['pop', 'user', 'mfa'] })
  t.same(here.blocked, [])
})

t.test('the field for the name offers passkeys automatically', async (t) => {
  const here = await device(t)
  await addPasskey(here, 'Laptop')
  await signOut(here)
  await finger(here, true)
  const token = await idTokenAfter(here, {}, async () => {})
  t.match(token, { sub: await userId(), amr: ['pop', 'user', 'mfa'] })
})

t.test('a browser without a passkey says so, and the password still works', async (t) => {
  const here = await device(t)
  await here.page.goto(authorizationUrl(server, portal))
  await here.page.getByRole('button', { name: 'Sign in with a passkey' }).click()
  await here.page.getByText('No passkey was used.').waitFor()
  const token = await idTokenAfter(here, {}, () => signIn(here.page))
  t.strictSame(token['amr'], ['pwd'])
})

t.test(
  'a client that requests more than a password gets a passkey, and only of the signed-in user',
  async (t) => {
    const here = await device(t)
    await addPasskey(here, 'Telephone')
    await signOut(here)
    const mfa = 'https://refeds.org/profile/mfa'
    const plain = await idTokenAfter(here, {}, () => signIn(here.page))
    t.strictSame(plain['amr'], ['pwd'])
    const essential = JSON.stringify({ id_token: { acr: { essential: true, value: mfa } } })
    const more = await idTokenAfter(here, { claims: essential, max_age: '10000' }, async () => {
      t.equal(await here.page.getByLabel('Password').count(), 0, 'the password is not asked for again')
      await usePasskey(here, 'Use a passkey')
    })
    t.match(more, { acr: mfa, amr: ['pwd', 'pop', 'user', 'mfa'] })
    t.equal(more['auth_time'], plain['auth_time'] ?? more['auth_time'])
    // From here on the same session is enough, even with prompt=none.
    const silent = await idTokenAfter(here, { acr_values: 'phr', prompt: 'none' }, async () => {})
    t.match(silent, { acr: 'phr' })
  },
)

t.test('a copy of a passkey is rejected, and recorded in the audit log', async (t) => {
  const here = await device(t)
  await addPasskey(here, 'Copied')
  await signOut(here)
  const [passkey] = await server.deps.store.listOf(passkeyKind, await userId())
  if (passkey === undefined) throw new Error('no passkey')
  await server.deps.store.write(update(passkeyKind, { ...passkey, counter: 1_000_000 }))
  await here.page.goto(authorizationUrl(server, portal))
  await usePasskey(here, 'Sign in with a passkey')
  await here.page.getByText('seems to have been copied').waitFor()
  const events = await server.deps.store.audit({ since: 0, userId: await userId(), limit: 50 })
  t.ok(events.some(({ name }) => name === 'passkey-copied'))
  t.equal(
    (await here.context.cookies()).some(({ name }) => name.startsWith('lychgate_session_')),
    false,
  )
})

t.test('a passkey that does not verify its user signs no user in by itself', async (t) => {
  const here = await device(t)
  await addPasskey(here, 'Unverified')
  await signOut(here)
  await here.page.goto(authorizationUrl(server, portal))
  const { authenticatorId } = here
  await here.authenticator.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false })
  await usePasskey(here, 'Sign in with a passkey')
  await here.page.getByText('No passkey was used.').waitFor()
})

t.test('a removed passkey signs no user in, and the page explains how to continue', async (t) => {
  const here = await device(t)
  await addPasskey(here, 'Old laptop')
  await here.page.getByRole('button', { name: 'Remove Old laptop' }).click()
  await here.page.getByText('The passkey was removed.').waitFor()
  await signOut(here)
  await here.page.goto(authorizationUrl(server, portal))
  await usePasskey(here, 'Sign in with a passkey')
  await here.page.getByText('That passkey does not belong to any account here.').waitFor()
  t.equal(await here.page.getByLabel('Password').count(), 1)
})

t.test('without JavaScript the pages explain what passkeys need', async (t) => {
  const context = await browser.newContext({ javaScriptEnabled: false })
  t.teardown(() => context.close())
  context.setDefaultTimeout(60_000)
  const page = await context.newPage()
  await page.goto(authorizationUrl(server, portal))
  await page.getByText('Signing in with a passkey needs JavaScript').waitFor()
  t.equal(await page.getByRole('button', { name: 'Sign in with a passkey' }).isVisible(), false)
})
