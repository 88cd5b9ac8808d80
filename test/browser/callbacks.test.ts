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
import { put } from '../../src/domain/decision.ts'
import { createGroup } from '../../src/domain/group.ts'
import { systemRandom } from '../../src/system/system.ts'
import { changeGroups } from '../../src/users/groups.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { integrate } from '../helpers/authorization.ts'
import { makeCertificates } from '../helpers/certificates.ts'
import { launchBrowser } from '../helpers/chromium.ts'
import { authorizationUrl, type Fields, type TestClient } from '../helpers/flow.ts'
import { alice, bob, startServer } from '../helpers/server.ts'

// CSP has no syntax for a host with an underscore.
const underscored = 'my_app.example'
const server = await startServer(t)
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

/** The redirect URIs of the clients. */
const redirectUris = {
  'on this computer redirects to another origin': `http://127.0.0.1:${loopback}/to-home`,
  'on a host name with an underscore redirects to an app': `https://${underscored}:${withTls}/to-app`,
}

const { store, keys, clock } = server.deps
const totp = new TOTP()
const bobId = (await store.find('userByLogin', bob.username))?.id ?? ''
await store.write(
  put(secondFactorKind, {
    userId: bobId,
    sealedSecret: keys.seal(Buffer.from(totp.secret.bytes), bobId),
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
const signIn = async (page: Page, user = alice) => {
  await page.getByLabel('Email or user name').fill(user.username)
  await page.getByLabel('Password').fill(user.password)
  await press(page, 'Sign in')
}

const walks: Readonly<Record<string, Walk>> = {
  'the password, where nothing is asked': { client: { consent: 'skip' }, walk: (page) => signIn(page) },
  'the second factor': {
    client: { consent: 'skip' },
    walk: async (page) => {
      await signIn(page, bob)
      await page.getByLabel('Code').fill(totp.generate({ timestamp: server.now() * 1000 }))
      await press(page, 'Continue')
    },
  },
  'the choice of an account': {
    client: { consent: 'skip' },
    walk: async (page, client) => {
      await page.goto(`${server.issuer}/account`)
      await signIn(page)
      await page.goto(authorizationUrl(server, client, { prompt: 'select_account' }))
      await page.getByRole('button', { name: /alice/ }).click()
    },
  },
  Allow: {
    walk: async (page) => {
      await signIn(page)
      await press(page, 'Allow')
    },
  },
  Deny: {
    walk: async (page) => {
      await signIn(page)
      await press(page, 'Deny')
    },
  },
  'the page of a user who may not use the app': {
    client: { description: { allowed_groups: [staff.id] } },
    walk: async (page) => {
      await signIn(page)
      await press(page, 'Back to the app')
    },
  },
  form_post: {
    fields: { response_mode: 'form_post' },
    walk: async (page) => {
      await signIn(page)
      await press(page, 'Allow')
    },
  },
  'form_post without a script': {
    fields: { response_mode: 'form_post' },
    javaScriptEnabled: false,
    walk: async (page) => {
      await signIn(page)
      await press(page, 'Allow')
      await press(page, 'Continue')
    },
  },
  'sign-out': {
    walk: async (page, client) => {
      await signIn(page)
      await page.getByRole('button', { name: 'Allow', exact: true }).waitFor()
      const query = new URLSearchParams({
        client_id: client.id,
        post_logout_redirect_uri: client.redirectUri,
      })
      await page.goto(`${server.issuer}/oauth/logout?${query}`)
      await press(page, 'Sign out')
    },
  },
}

for (const [where, redirectUri] of Object.entries(redirectUris)) {
  t.test(`a callback ${where}`, async (t) => {
    for (const [from, walk] of Object.entries(walks)) await t.test(from, (t) => follow(t, redirectUri, walk))
  })
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
