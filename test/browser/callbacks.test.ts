/**
 * A client's callback is seldom where the browser ends: it redirects on, to another origin or to an app. Every page that
 * leads to a client lets it, and the code is not lost on the way.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TOTP } from 'otpauth'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { accept, put, remove, update } from '../../src/domain/decision.ts'
import { createGroup } from '../../src/domain/group.ts'
import type { User } from '../../src/domain/model.ts'
import { systemRandom } from '../../src/system/system.ts'
import { changeGroups } from '../../src/users/groups.ts'
import { passkeyKind } from '../../src/users/rules/passkey.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { integrate } from '../helpers/authorization.ts'
import { makeCertificates } from '../helpers/certificates.ts'
import { launchBrowser } from '../helpers/chromium.ts'
import { authorizationUrl, type Fields, type TestClient } from '../helpers/flow.ts'
import { formsTowardClients, markViews } from '../helpers/page-forms.ts'
import { alice, bob, startServer } from '../helpers/server.ts'

// CSP has no syntax for a host with an underscore.
const underscored = 'my_app.example'
markViews()
// A development server, whose sign-in page has a button for each user.
const server = await startServer(t, { mode: 'dev' })
const browser = await launchBrowser(`--host-resolver-rules=MAP ${underscored} 127.0.0.1`)
t.teardown(() => browser.close())
const folder = mkdtempSync(join(tmpdir(), 'lychgate-callbacks-'))
t.teardown(() => rmSync(folder, { recursive: true }))

const home = await listen((_request, response) => {
  response.setHeader('content-type', 'text/html').end('<!doctype html><title>App</title><h1>At home</h1>')
})
const appScheme = 'com.example.app:/opened'
const callbacks: string[] = []
const redirectOn: RequestListener = (request, response) => {
  callbacks.push(`${request.method} ${request.url}`)
  const to = request.url?.startsWith('/to-app') ? appScheme : `http://localhost:${home}/home`
  response.writeHead(302, { location: to }).end()
}
const loopback = await listen(redirectOn)
const withTls = await listen(redirectOn, makeCertificates(folder).localhost)

/** The redirect URIs of the clients: each kind of host redirects to each kind of destination. */
const hosts = {
  'on this computer': `http://127.0.0.1:${loopback}`,
  'on a host name with an underscore': `https://${underscored}:${withTls}`,
}
const destinations = { 'another origin': 'to-home', 'an app': 'to-app' }
const redirectUris = Object.entries(hosts).flatMap(([host, origin]) =>
  Object.entries(destinations).map(
    ([to, path]) => [`${host} redirects to ${to}`, `${origin}/${path}`] as const,
  ),
)

const { store, keys, clock } = server.deps
const totp = new TOTP()
const idOf = async (username: string) => (await store.find('userByLogin', username))?.id ?? ''
const [aliceId, bobId] = [await idOf('alice'), await idOf('bob')]
await store.transact('user', aliceId, (user) =>
  accept(undefined, update('user', { ...(user as User), seeded: true })),
)
await store.write(
  put(secondFactorKind, {
    userId: bobId,
    sealedSecret: keys.seal(Buffer.from(totp.secret.bytes), bobId, secondFactorKind),
    confirmedAt: server.now(),
    recoveryHashes: [],
    createdAt: server.now(),
  }),
)
const staff = await changeGroups(store, (groups) =>
  createGroup(groups, { name: 'staff' }, systemRandom(16), { by: 'operator', at: clock(), from: 'test' }),
)

/** A page that leads to a client: how a user gets there, and what they press last. */
interface Walk {
  readonly client?: Partial<Parameters<typeof integrate>[1]>
  readonly fields?: Fields
  readonly javaScriptEnabled?: boolean
  readonly walk: (page: Page, client: TestClient) => Promise<void>
}

const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
/** The marks of the forms that led to a client. */
const pressed = new Set<string>()
const pressLast = async (page: Page, form: string, name: string) => {
  pressed.add(form)
  await page.locator(`form[data-view="${form}"]`).getByRole('button', { name }).click()
}
const fillIn = async (page: Page, user: typeof alice) => {
  await page.getByLabel('Email or user name').fill(user.username)
  await page.getByLabel('Password').fill(user.password)
}
const signIn = async (page: Page, user = alice) => {
  await fillIn(page, user)
  await press(page, 'Sign in')
}
const signOutFrom = (client: TestClient) => {
  const query = { client_id: client.id, post_logout_redirect_uri: client.redirectUri }
  return `${server.issuer}/oauth/logout?${new URLSearchParams(query)}`
}
const consent = 'consent-form.eta 1'
const skip = { client: { consent: 'skip' } } as const

const walks: Readonly<Record<string, Walk>> = {
  'the password, where nothing is asked': {
    ...skip,
    walk: async (page) => {
      await fillIn(page, alice)
      await pressLast(page, 'login.eta 1', 'Sign in')
    },
  },
  'the button of a user': { ...skip, walk: (page) => pressLast(page, 'login.eta 2', 'alice') },
  'a passkey': {
    ...skip,
    walk: async (page, client) => {
      const touch = await addPasskey(page)
      await page.context().clearCookies()
      await touch(false)
      await page.goto(authorizationUrl(server, client))
      await page.getByRole('button', { name: 'passkey' }).waitFor()
      await touch(true)
      await pressLast(page, 'passkey-form.eta 1', 'passkey')
    },
  },
  'the page that adds the passkey that a client requires': {
    client: { consent: 'skip', description: { required_sign_in: 'passkey' } },
    walk: async (page) => {
      await forgetPasskeys()
      await signIn(page)
      await addAuthenticator(page)
      await page.getByRole('link', { name: 'Add a passkey' }).click()
      await pressLast(page, 'account-passkeys.eta 2', 'Add a passkey')
    },
  },
  'the page that says what will be required': {
    client: { consent: 'skip', description: { required_sign_in: 'passkey from 2999-01-01' } },
    walk: async (page) => {
      await forgetPasskeys()
      await signIn(page)
      await pressLast(page, 'enrol.eta 1', 'Not now')
    },
  },
  'the second factor': {
    ...skip,
    walk: async (page) => {
      await signIn(page, bob)
      await page.getByLabel('Code').fill(totp.generate({ timestamp: server.now() * 1000 }))
      await pressLast(page, 'second-factor.eta 1', 'Continue')
    },
  },
  'the choice of an account': {
    ...skip,
    walk: async (page, client) => {
      await page.goto(`${server.issuer}/account`)
      await signIn(page)
      await page.goto(authorizationUrl(server, client, { prompt: 'select_account' }))
      await pressLast(page, 'select-account.eta 1', 'alice')
    },
  },
  Allow: {
    walk: async (page) => {
      await signIn(page)
      await pressLast(page, consent, 'Allow')
    },
  },
  Deny: {
    walk: async (page) => {
      await signIn(page)
      await pressLast(page, consent, 'Deny')
    },
  },
  'the page of a user who may not use the app': {
    client: { description: { allowed_groups: [staff.id] } },
    walk: async (page) => {
      await signIn(page)
      await pressLast(page, 'denied.eta 1', 'Back to the app')
    },
  },
  form_post: {
    fields: { response_mode: 'form_post' },
    walk: async (page) => {
      await signIn(page)
      await pressLast(page, consent, 'Allow')
    },
  },
  'form_post without a script': {
    fields: { response_mode: 'form_post' },
    javaScriptEnabled: false,
    walk: async (page) => {
      await signIn(page)
      await press(page, 'Allow')
      await pressLast(page, 'form-post.eta 1', 'Continue')
    },
  },
  'sign-out': {
    walk: async (page, client) => {
      await signIn(page)
      await page.getByRole('button', { name: 'Allow', exact: true }).waitFor()
      await page.goto(signOutFrom(client))
      await pressLast(page, 'logout.eta 1', 'Sign out')
    },
  },
}

for (const [where, redirectUri] of redirectUris) {
  t.test(`a callback ${where}`, async (t) => {
    for (const [from, walk] of Object.entries(walks)) await t.test(from, (t) => follow(t, redirectUri, walk))
  })
}

t.test('a redirect URI of an app: Chromium asks for it, and a second Allow gives a page', async (t) => {
  const redirectUri = 'app.immich:///oauth-callback'
  const app = await integrate(server, { redirectUris: [redirectUri] })
  const context = await browser.newContext()
  t.teardown(() => context.close())
  context.setDefaultTimeout(120_000)
  const page = await context.newPage()
  await page.goto(authorizationUrl(server, app))
  await signIn(page)
  await page.getByText('Allow opens the app').waitFor()
  const opened = page.waitForEvent('requestfailed', (request) => request.url().startsWith('app.immich:'))
  await press(page, 'Allow')
  const asked = (await opened).url()
  t.match(asked, /^app\.immich:\/\/\/oauth-callback\?code=lyc_code_[^&]+&state=a-state&iss=http/)
  t.match(page.url(), '/consent?', 'no app opened: the page stays')
  const again: string[] = []
  page.on('request', (request) => again.push(request.url()))
  await press(page, 'Allow')
  await page.getByText('If you pressed Allow and no app opened').waitFor()
  t.notOk(
    again.some((url) => url.startsWith('app.immich:')),
    'and no second code',
  )
})

t.test('every form that leads to a client was pressed', async (t) => {
  t.strictSame([...pressed].toSorted(), formsTowardClients.toSorted())
})

async function forgetPasskeys(): Promise<void> {
  for (const { id } of await store.listOf(passkeyKind, aliceId)) await store.write(remove(passkeyKind, id))
}

/** Gives a browser something that makes passkeys. Returns what says whether its user touches it. */
async function addAuthenticator(page: Page): Promise<(enabled: boolean) => Promise<unknown>> {
  const authenticator = await page.context().newCDPSession(page)
  await authenticator.send('WebAuthn.enable')
  const { authenticatorId } = await authenticator.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  return (enabled) =>
    authenticator.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled })
}

/** Gives alice a passkey in this browser. Untouched, it is not offered by itself. */
async function addPasskey(page: Page): Promise<(enabled: boolean) => Promise<unknown>> {
  await forgetPasskeys()
  const touch = await addAuthenticator(page)
  await page.goto(`${server.issuer}/account/passkeys`)
  await signIn(page)
  await page.getByRole('button', { name: 'Add a passkey' }).click()
  await page.getByText('The passkey was added.').waitFor()
  return touch
}

/** Walks to the page in a browser of its own, and follows the redirects to the end. */
async function follow(t: Test, redirectUri: string, { client: asked, fields, ...walk }: Walk): Promise<void> {
  server.advance(30)
  const client = await integrate(server, {
    redirectUris: [redirectUri],
    postLogoutRedirectUris: [redirectUri],
    ...asked,
  })
  const { javaScriptEnabled = true } = walk
  const context = await browser.newContext({ ignoreHTTPSErrors: true, javaScriptEnabled })
  t.teardown(() => context.close())
  context.setDefaultTimeout(120_000)
  const page = await context.newPage()
  const blocked: string[] = []
  page.on('console', (message) => {
    if (/policy|form-action/i.test(message.text())) blocked.push(message.text())
  })
  const ended = redirectUri.endsWith('/to-app')
    ? page.waitForEvent('requestfailed', (request) => request.url().startsWith(appScheme))
    : page.getByRole('heading', { name: 'At home' }).waitFor()
  callbacks.length = 0
  await page.goto(authorizationUrl(server, client, fields))
  await walk.walk(page, client)
  await ended
  t.equal(callbacks.length, 1, 'the callback was called once')
  t.strictSame(blocked, [])
}

async function listen(handler: RequestListener, tls?: { key: string; cert: string }): Promise<number> {
  const listener = tls === undefined ? createServer(handler) : createHttpsServer(tls, handler)
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve))
  t.teardown(() => listener.close())
  return (listener.address() as AddressInfo).port // it listens on TCP
}
