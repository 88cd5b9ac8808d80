/** The admin API: who may call each operation of its description, and what the operations do. */
import { setTimeout } from 'node:timers/promises'
import { TOTP } from 'otpauth'
import t, { type Test } from 'tap'
import { accept, insert, put, removeUser, update } from '../../src/domain/decision.ts'
import { createGroup } from '../../src/domain/group.ts'
import type { Client, User } from '../../src/domain/model.ts'
import { secretMatches } from '../../src/domain/secret.ts'
import { systemRandom } from '../../src/system/system.ts'
import { addAdministrator } from '../../src/users/administrators.ts'
import { addToGroup, changeGroups, removeFromGroup } from '../../src/users/groups.ts'
import { passkeyKind } from '../../src/users/rules/passkey.ts'
import {
  idOfPersonalToken,
  mintPersonalToken,
  personalTokenKind,
} from '../../src/users/rules/personal-token.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { failuresOf, throttleKind } from '../../src/users/rules/throttle.ts'
import { unlockUser } from '../../src/users/rules/user.ts'
import { makeClientKey } from '../helpers/assertions.ts'
import { ask, callback, integrate, pageOf, sentAway, signedIn } from '../helpers/authorization.ts'
import { exchange, postAs, refresh, register, type TestClient, type Tokens } from '../helpers/flow.ts'
import { alice, bob, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { json } from '../helpers/wire.ts'
import * as sample from '../storage/samples.ts'

const server = await startServer(t, { admin: { api: 'on' } })
const { store, keys, clock } = server.deps
const root = `${server.issuer}/api/admin/v1`
const operator = () => ({ by: 'operator', at: clock() }) as const
const subOf = async (username: string) => (await store.find('userByLogin', username))?.id ?? ''
const ids = { alice: await subOf('alice'), bob: await subOf('bob') }
const mfa = 'https://refeds.org/profile/mfa'

const scopes = [
  'admin:users:read',
  'admin:users:write',
  'admin:clients:read',
  'admin:clients:write',
  'admin:upstreams:read',
  'admin:upstreams:write',
  'admin:keys:read',
  'admin:keys:write',
  'admin:audit:read',
] as const
type AdminScope = (typeof scopes)[number]
const console = await integrate(server, { consent: 'skip', scope: ['openid', ...scopes] })

interface Operation {
  readonly operationId: string
  readonly method: string
  readonly path: string
  readonly scope: AdminScope
  readonly responses: Readonly<Record<string, unknown>>
}

/** The operations of the description that need an access token. */
async function describedOperations(): Promise<readonly Operation[]> {
  const { paths } = (await json(await fetch(`${root}/openapi.json`))) as unknown as {
    paths: Record<
      string,
      Record<string, Operation & { readonly security: readonly { oauth2?: readonly AdminScope[] }[] }>
    >
  }
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { operationId, security, responses }]) => {
      const scope = security.flatMap(({ oauth2 = [] }) => oauth2)[0]
      return scope === undefined
        ? []
        : [{ operationId, method: method.toUpperCase(), path, scope, responses }]
    }),
  )
}

const totp = new TOTP()

/** A browser in which alice signed in with her password and a code. */
async function twoFactors(): Promise<UserAgent> {
  // A code is used once.
  server.advance(30)
  const browser = new UserAgent(server.issuer)
  const second = await browser.submit(pageOf(await ask(server, console, {}, browser)), alice)
  await browser.submit(pageOf(second), { code: totp.generate({ timestamp: server.now() * 1000 }) })
  return browser
}

async function tokensAt(browser: UserAgent, client: TestClient, scope: string): Promise<Tokens> {
  const { code = '' } = sentAway(await ask(server, client, { scope }, browser))
  return (await (await exchange(server, client, code)).json()) as Tokens
}

/** What a call may have in addition to its token. */
interface Sent {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object
}

async function call(token: string | undefined, method: string, path: string, { headers, body }: Sent = {}) {
  const response = await fetch(path.startsWith('http') ? path : root + path, {
    method,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return {
    status: response.status,
    headers: response.headers,
    challenge: response.headers.get('www-authenticate') ?? '',
    etag: response.headers.get('etag') ?? '',
    body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown> & {
      items?: Record<string, unknown>[]
    },
  }
}

/** A call of every token that is rejected, without its body. */
const errorOf = ({ status, body }: Awaited<ReturnType<typeof call>>) => [status, body['error']]

const admins = await changeGroups(store, (groups) =>
  createGroup(groups, { name: 'Admins' }, systemRandom(16), operator()),
)
const subgroup = await changeGroups(store, (groups) =>
  createGroup(groups, { name: 'on call', parentId: admins.id }, systemRandom(16), operator()),
)
await addToGroup(store, subgroup, ids.alice, operator())

// Alice signs in with her password alone, then with a code, too; that gets old, and she signs in again.
const all = `openid ${scopes.join(' ')}`
const weak = await tokensAt(await signedIn(server, console), console, all)
await store.write(
  put(secondFactorKind, {
    userId: ids.alice,
    sealedSecret: keys.seal(Buffer.from(totp.secret.bytes), ids.alice, secondFactorKind),
    confirmedAt: server.now(),
    recoveryHashes: [],
    createdAt: server.now(),
  }),
)
const old = await tokensAt(await twoFactors(), console, all)
server.advance(601)
const stale = (await (await refresh(server, console, old.refresh_token)).json()) as Tokens
const weakNow = (await (await refresh(server, console, weak.refresh_token)).json()) as Tokens
const agent = await twoFactors()
const strong = await tokensAt(agent, console, all)
const other = await tokensAt(await signedIn(server, console, bob), console, all)
const machine = await integrate(server, {
  grantTypes: ['client_credentials'],
  redirectUris: [],
  scope: [...scopes],
})

async function machineToken(client: TestClient, scope: string): Promise<string> {
  const response = await postAs(server, client, '/api/oauth/token', {
    grant_type: 'client_credentials',
    scope,
  })
  return String((await json(response))['access_token'])
}

let count = 0
async function invite(token = strong.access_token) {
  count += 1
  const { body, etag } = await call(token, 'POST', '/users', { body: { email: `u${count}@example.test` } })
  return { id: String(body['sub']), etag, body }
}
async function addClient(members: object = {}, token = strong.access_token) {
  const body = { client_name: 'Added', redirect_uris: [callback], ...members }
  const added = await call(token, 'POST', '/clients', { body })
  return { id: String(added.body['client_id']), etag: added.etag, body: added.body }
}

async function addRejectedClient() {
  const added = await addClient()
  const id = `0f9d3c6e-7a0b-4c55-9f0e-${systemRandom(6).toString('hex')}`
  await store.write(insert('rejection', { ...sample.rejection, id, client: added.id }))
  return added
}

async function addGroup() {
  const body = { name: `group ${systemRandom(8).toString('hex')}` }
  const added = await call(strong.access_token, 'POST', '/groups', { body })
  return { id: String(added.body['group_id']), etag: added.etag }
}
async function addToken() {
  const { body } = await call(strong.access_token, 'POST', '/registration-tokens', { body: {} })
  return String(body['token_id'])
}
async function addPersonalToken() {
  const { id } = await invite()
  const described = { name: 'CI', scope: ['admin:users:read'], seconds: 900 }
  const { record } = mintPersonalToken(described, id, systemRandom(32), clock())
  await store.write(insert(personalTokenKind, record))
  return [id, idOfPersonalToken(record)]
}
function someApi(kind: 'scopes' | 'resources') {
  const id = systemRandom(8).toString('hex')
  return kind === 'scopes'
    ? { name: `${id}:read`, group: 'Invoices', access: 'read', description: 'Amounts' }
    : { identifier: `https://${id}.example`, name: 'Invoices', scopes: ['courses:read'] }
}
async function addApi(kind: 'scopes' | 'resources') {
  const { body, etag } = await call(strong.access_token, 'POST', `/${kind}`, { body: someApi(kind) })
  return { id: String(body['name'] === 'Invoices' ? body['identifier'] : body['name']), etag }
}
async function denyDocument() {
  const url = `https://client.example/${systemRandom(8).toString('hex')}.json`
  await call(strong.access_token, 'POST', `/client-documents/${encodeURIComponent(url)}/deny`)
  return url
}
/** A new grant of a user to a client. */
async function grantOf(user: typeof bob) {
  const client = await integrate(server, { consent: 'skip' })
  const browser = user === bob ? await signedIn(server, client, user) : agent
  const tokens = await tokensAt(browser, client, 'openid')
  const grants = await store.listOf('grant', user === bob ? ids.bob : ids.alice)
  // The sign-in made another one, of which no code was redeemed.
  const grant = grants.find(({ clientId, seq }) => clientId === client.id && seq > 0)
  return { id: grant?.id ?? '', client, tokens }
}
/** Fills in the parts of a path that it names. */
function urlOf(path: string, { id, query = '', ids: parts = id === undefined ? [] : [id] }: Sample): string {
  const rest = [...parts]
  const filled = path
    .replace(/^\/api\/admin\/v1/, '')
    .replaceAll(/\{\w+\}/g, () => encodeURIComponent(rest.shift() ?? ''))
  return filled + query
}

/** How each operation is called so that it succeeds. A new operation has to be added here. */
type Sample = Sent & {
  readonly ids?: readonly string[]
  readonly id?: string
  readonly query?: string
  /** How it is rejected, after the caller was let through. */
  readonly error?: string
  /** A client without a user is rejected. */
  readonly onlyUsers?: true
}
/** An upstream that is not there yet. */
function anUpstream() {
  const id = `work-${systemRandom(8).toString('hex')}`
  return {
    upstream_id: id,
    name: 'Work',
    issuer: `https://${id}.example`,
    client_id: 'us',
    client_secret: 'x',
  }
}

async function addUpstream() {
  const { body, etag } = await call(strong.access_token, 'POST', '/upstreams', { body: anUpstream() })
  return { id: String(body['upstream_id']), headers: { 'if-match': etag } }
}

const samples: Readonly<Record<string, () => Promise<Sample>>> = {
  listUsers: async () => ({}),
  readUser: async () => ({ id: (await invite()).id }),
  listFactors: async () => ({}),
  readAccess: async () => ({ ids: [(await invite()).id, console.id] }),
  readSignIn: async () => ({ id: (await invite()).id }),
  inviteUser: async () => ({
    body: { email: `new${systemRandom(8).toString('hex')}@example.test`, claims: { name: 'New' } },
  }),
  // The server of this test has no mail server.
  sendTestEmail: async () => ({ id: (await invite()).id, error: 'conflict' }),
  inviteUsers: async () => ({ body: { list: `new${systemRandom(8).toString('hex')}@example.test` } }),
  changeUser: async () => {
    const { id, etag } = await invite()
    return { id, headers: { 'if-match': etag }, body: { claims: { nickname: 'N' } } }
  },
  deleteUser: async () => {
    const { id, etag } = await invite()
    return { id, headers: { 'if-match': etag } }
  },
  lockUser: async () => ({ id: (await invite()).id }),
  unlockUser: async () => ({ id: (await invite()).id }),
  listClients: async () => ({}),
  readClient: async () => ({ id: (await addClient()).id }),
  addClient: async () => ({ body: { client_name: 'New', redirect_uris: [callback] } }),
  changeClient: async () => {
    const { id, etag } = await addClient()
    return { id, headers: { 'if-match': etag }, body: { client_name: 'Changed' } }
  },
  deleteClient: async () => {
    const { id, etag } = await addClient()
    return { id, headers: { 'if-match': etag } }
  },
  replaceClient: async () => {
    const { id, etag } = await addClient()
    const body = { client_name: 'Replaced', redirect_uris: [callback] }
    return { id, headers: { 'if-match': etag }, body }
  },
  compareClientSecret: async () => ({ id: (await addClient()).id, body: { client_secret: 'x'.repeat(32) } }),
  listAttributes: async () => ({}),
  listRecipes: async () => ({}),
  readClientRejection: async () => ({ id: (await addRejectedClient()).id }),
  previewClient: async () => ({ id: (await addClient()).id, query: `?sub=${ids.alice}` }),
  rotateClientSecret: async () => ({ id: (await addClient()).id, body: { keep_old_seconds: 60 } }),
  listGroups: async () => ({}),
  listUpstreams: async () => ({}),
  createUpstream: async () => ({ body: anUpstream() }),
  readUpstream: async () => ({ id: (await addUpstream()).id }),
  changeUpstream: async () => ({ ...(await addUpstream()), body: { enabled: false } }),
  deleteUpstream: addUpstream,
  compareUpstreamSecret: async () => ({ id: (await addUpstream()).id, body: { client_secret: 'x' } }),
  createGroup: async () => ({ body: { name: `group ${systemRandom(8).toString('hex')}` } }),
  readGroup: async () => ({ id: (await addGroup()).id }),
  changeGroup: async () => {
    const { id, etag } = await addGroup()
    return { id, headers: { 'if-match': etag }, body: { description: 'Changed' } }
  },
  deleteGroup: async () => {
    const { id, etag } = await addGroup()
    return { id, headers: { 'if-match': etag } }
  },
  listMembers: async () => ({ id: (await addGroup()).id }),
  addMember: async () => ({ id: (await addGroup()).id, body: { sub: (await invite()).id } }),
  removeMember: async () => {
    const { id } = await addGroup()
    const user = await invite()
    await call(strong.access_token, 'POST', `/groups/${id}/members`, { body: { sub: user.id } })
    return { ids: [id, user.id] }
  },
  listGroupsOfUser: async () => ({ id: (await invite()).id }),
  listSessions: async () => ({ id: (await invite()).id }),
  endSession: async () => {
    await signedIn(server, await integrate(server), bob)
    const sessions = await store.listOf('session', ids.bob)
    return { ids: [ids.bob, sessions.at(-1)?.id ?? ''] }
  },
  readSession: async () => {
    await signedIn(server, await integrate(server), bob)
    const sessions = await store.listOf('session', ids.bob)
    return { id: sessions.at(-1)?.id ?? '' }
  },
  explainToken: async () => ({ body: { token: 'x' } }),
  setPassword: async () => ({ id: (await invite()).id, body: { password: 'a long password' } }),
  listAllSessions: async () => ({}),
  listAllGrants: async () => ({}),
  revokeClient: async () => ({ id: (await addClient()).id }),
  listGrants: async () => ({ id: (await invite()).id }),
  revokeGrants: async () => ({ ids: [(await invite()).id, console.id] }),
  readGrant: async () => ({ id: (await grantOf(bob)).id }),
  revokeGrant: async () => ({ id: (await grantOf(bob)).id }),
  listLinks: async () => ({ id: (await invite()).id }),
  createLink: async () => ({ id: (await invite()).id, body: { purpose: 'invitation' } }),
  deleteLink: async () => {
    const { id } = await invite()
    const { body } = await call(strong.access_token, 'GET', `/users/${id}/links`)
    return { ids: [id, String(body.items?.[0]?.['link_id'])] }
  },
  listPersonalTokens: async () => ({ id: (await invite()).id }),
  createPersonalToken: async () => ({
    id: ids.alice,
    body: { name: 'CI', scope: 'admin:users:read' },
    onlyUsers: true,
  }),
  readPersonalToken: async () => ({ ids: await addPersonalToken() }),
  revokePersonalToken: async () => ({ ids: await addPersonalToken() }),
  signOutUser: async () => ({ id: (await invite()).id }),
  revokeUser: async () => ({ id: (await invite()).id }),
  removeCodes: async () => ({ id: (await invite()).id }),
  removePasskeys: async () => ({ id: (await invite()).id }),
  listRegistrationTokens: async () => ({}),
  createRegistrationToken: async () => ({ body: { name: 'Course team', uses: 2 } }),
  readRegistrationToken: async () => ({ id: await addToken() }),
  revokeRegistrationToken: async () => ({ id: await addToken() }),
  listPendingDeliveries: async () => ({}),
  listFinishedDeliveries: async () => ({}),
  listResources: async () => ({}),
  readResource: async () => ({ id: (await addApi('resources')).id }),
  addResource: async () => ({ body: someApi('resources') }),
  changeResource: async () => {
    const { id, etag } = await addApi('resources')
    return { id, headers: { 'if-match': etag }, body: { name: 'Other' } }
  },
  deleteResource: async () => {
    const { id, etag } = await addApi('resources')
    return { id, headers: { 'if-match': etag } }
  },
  listScopes: async () => ({}),
  readScope: async () => ({ id: (await addApi('scopes')).id }),
  addScope: async () => ({ body: someApi('scopes') }),
  changeScope: async () => {
    const { id, etag } = await addApi('scopes')
    return { id, headers: { 'if-match': etag }, body: { description: 'Other' } }
  },
  deleteScope: async () => {
    const { id, etag } = await addApi('scopes')
    return { id, headers: { 'if-match': etag } }
  },
  listKeys: async () => ({}),
  rotateKeys: async () => ({ body: { algorithms: ['ES256'] } }),
  retireKey: async () => {
    const { body } = await call(strong.access_token, 'POST', '/keys/rotate', {
      body: { algorithms: ['ES256'] },
    })
    return { id: String(body.items?.find(({ state }) => state === 'waiting')?.['kid']) }
  },
  listEvents: async () => ({}),
  listRejections: async () => ({}),
  readRejection: async () => ({ id: await rejectedRequest() }),
  readSettings: async () => ({}),
  listClientDocuments: async () => ({}),
  readClientDocument: async () => ({ id: await denyDocument() }),
  // No document is at such an address.
  refreshClientDocument: async () => ({ id: 'https://10.0.0.1/client.json', error: 'invalid_client' }),
  denyClientDocument: async () => ({ id: 'https://client.example/denied.json' }),
  allowClientDocument: async () => ({ id: await denyDocument() }),
  lockClient: async () => ({ id: (await addClient()).id }),
  profileClient: async () => ({ id: (await addClient()).id, body: { profile: 'none' } }),
  unlockClient: async () => ({ id: (await addClient()).id }),
}

/** The id of a request that was rejected, and is stored. */
async function rejectedRequest(): Promise<string> {
  const { id } = await addClient()
  const response = await fetch(`${server.issuer}/api/oauth/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${id}:not-the-secret`)}` },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
  })
  const requestId = response.headers.get('x-request-id') ?? ''
  // Stored a moment after the response, with others.
  while ((await store.find('rejection', requestId)) === undefined) await setTimeout(20)
  return requestId
}

t.test('every operation is only for administrators, with its scope and a recent second factor', async (t) => {
  const operations = await describedOperations()
  t.strictSame(operations.map(({ operationId }) => operationId).toSorted(), Object.keys(samples).toSorted())
  const unnamed = await integrate(server, { consent: 'skip', scope: ['openid', ...scopes] })
  const byUnnamed = await tokensAt(agent, unnamed, all)
  await store.transact('client', unnamed.id, (client) => ({
    result: undefined,
    writes: [update('client', { ...(client as Client), scope: ['openid'] })],
  }))
  for (const { operationId, method, path, scope, responses } of operations) {
    await t.test(`${operationId} needs ${scope}`, async (t) => {
      const sent = (await samples[operationId]?.()) ?? {}
      const url = urlOf(path, sent)
      const seen: number[] = []
      const tryWith = async (token: string | undefined) => {
        const response = await call(token, method, url, sent)
        seen.push(response.status)
        return response
      }
      const none = await tryWith(undefined)
      t.equal(none.status, 401)
      t.match(
        none.challenge,
        /^Bearer resource_metadata="[^"]+"(?:, DPoP algs="[^"]+")?$/,
        'a bare challenge',
      )
      const rest = scopes.filter((name) => name !== scope).join(' ')
      const without = await tryWith((await tokensAt(agent, console, rest)).access_token)
      t.strictSame(errorOf(without), [403, 'insufficient_scope'])
      t.match(without.challenge, `scope="${scope}"`)
      t.strictSame(errorOf(await tryWith(byUnnamed.access_token)), [403, 'insufficient_scope'], 'unnamed')
      t.strictSame(errorOf(await tryWith(other.access_token)), [403, 'access_denied'], 'no administrator')
      for (const token of [stale, weakNow]) {
        if (scope.endsWith(':read')) continue
        const challenged = await tryWith(token.access_token)
        t.strictSame(errorOf(challenged), [401, 'insufficient_user_authentication'])
        t.match(challenged.challenge, 'error="insufficient_user_authentication"')
        t.match(challenged.challenge, `acr_values="${mfa}", max_age="600"`)
      }
      const allowed = await tryWith(scope.endsWith(':read') ? stale.access_token : strong.access_token)
      if (sent.error === undefined) t.ok(allowed.status < 300, JSON.stringify(allowed.body))
      t.equal(allowed.status < 300 ? undefined : allowed.body['error'], sent.error)
      for (const token of [await machineToken(machine, scope)]) {
        const again = (await samples[operationId]?.()) ?? {}
        const response = await call(token, method, urlOf(path, again), again)
        t.equal(response.status, sent.onlyUsers ? 403 : allowed.status, JSON.stringify(response.body))
      }
      t.strictSame(
        seen.filter((status) => !(status in responses)),
        [],
        'its description has every status',
      )
    })
  }
})

t.test('a client that no operator added has none of the scopes, by no request', async (t) => {
  const post = async (members: object, path = '/api/oauth/register', method = 'POST', token?: unknown) =>
    json(
      await fetch(server.issuer + path, {
        method,
        headers: {
          'content-type': 'application/json',
          ...(token ? { authorization: `Bearer ${token}` } : {}),
        },
        body: JSON.stringify({ redirect_uris: ['http://127.0.0.1/callback'], ...members }),
      }),
    )
  const named = await post({ scope: all })
  t.equal(named['scope'], 'openid', 'what it registers is left out')
  t.equal((await post({ scope: scopes.join(' ') }))['error'], 'invalid_client_metadata')
  const unnamed = await post({})
  t.notMatch(unnamed['scope'], 'admin:')
  const { client_id: id, registration_access_token: token } = unnamed
  const updated = await post({ client_id: id, scope: all }, `/api/oauth/register/${id}`, 'PUT', token)
  t.equal(updated['scope'], 'openid')
  const [registered, open] = [await register(server, { scope: all }), await register(server)]
  // As an earlier version stored it.
  const stored = await register(server, { scope: 'openid' })
  await store.transact('client', stored.id, (client) => ({
    result: undefined,
    writes: [update('client', { ...(client as Client), scope: ['openid', ...scopes] })],
  }))
  for (const client of [registered, open, stored])
    for (const scope of [...scopes, all]) {
      const { error } = sentAway(await ask(server, client, { scope }, agent))
      t.equal(error, 'invalid_scope')
    }
  for (const path of ['openid-configuration', 'oauth-authorization-server', 'oauth-protected-resource'])
    t.notMatch(JSON.stringify(await json(await fetch(`${server.issuer}/.well-known/${path}`))), 'admin:')
  const unlimited = await integrate(server, { consent: 'skip' })
  const { error } = sentAway(await ask(server, unlimited, { scope: all }, agent))
  t.equal(error, 'invalid_scope', 'nor one whose metadata does not name it')
})

t.test('a token that such a client has anyway is rejected', async (t) => {
  const own = await integrate(server, { consent: 'skip', scope: ['openid', ...scopes] })
  const tokens = await tokensAt(agent, own, all)
  t.equal((await call(tokens.access_token, 'GET', '/users')).status, 200)
  const write = (change: (client: Client) => Client) =>
    store.transact('client', own.id, (client) => ({
      result: undefined,
      writes: [update('client', change(client as Client))],
    }))
  await write(({ scope: _, ...unlimited }) => unlimited)
  const unnamed = errorOf(await call(tokens.access_token, 'GET', '/users'))
  t.strictSame(unnamed, [403, 'insufficient_scope'], 'no client has the scopes by default')
  await write((client) => ({ ...client, scope: ['openid', ...scopes], origin: 'registered' }))
  t.strictSame(errorOf(await call(tokens.access_token, 'GET', '/users')), [403, 'insufficient_scope'])
})

t.test('what the token was issued on is read again at every request', async (t) => {
  const list = () => call(strong.access_token, 'GET', '/users')
  await removeFromGroup(store, subgroup, ids.alice, operator())
  t.strictSame(errorOf(await list()), [403, 'access_denied'])
  await addToGroup(store, subgroup, ids.alice, operator())
  t.equal((await list()).status, 200)
  const change = async (change: Partial<Client>) =>
    store.transact('client', machine.id, (found) => {
      const client = { ...(found as Client), ...change }
      return { result: undefined, writes: [update('client', client)] }
    })
  const token = await machineToken(machine, 'admin:users:read')
  await change({ scope: ['courses:read'] })
  t.strictSame(errorOf(await call(token, 'GET', '/users')), [401, 'invalid_token'], 'nothing is left of it')
  await change({ scope: [...scopes], grantTypes: [] })
  t.strictSame(errorOf(await call(token, 'GET', '/users')), [401, 'invalid_token'])
  await change({ grantTypes: ['client_credentials'] })
  t.equal((await call(token, 'GET', '/users')).status, 200)
})

t.test('lists have pages and filters', async (t) => {
  for (let each = 0; each < 5; each += 1) await invite()
  const seen: unknown[] = []
  let next: unknown
  do {
    const { body } = await call(strong.access_token, 'GET', `/users?limit=3${next ? `&after=${next}` : ''}`)
    seen.push(...(body.items ?? []).map(({ sub }) => sub))
    next = body['next']
  } while (next !== undefined)
  const stored = (await store.list('user')).map(({ id }) => id)
  t.strictSame(seen.toSorted(), stored.toSorted(), 'every user once')
  t.equal(seen[0], ids.alice, 'the oldest first')
  const find = async (query: string) =>
    (await call(strong.access_token, 'GET', `/users?${query}`)).body.items?.map(({ username }) => username)
  t.strictSame(await find('login=BOB@example.test'), ['bob'])
  t.strictSame(await find('login=carol'), [])
  t.strictSame(await find('login=bob&state=locked'), [])
  const { id } = await invite()
  await call(strong.access_token, 'POST', `/users/${id}/lock`)
  const locked = await call(strong.access_token, 'GET', '/users?state=locked')
  t.ok(locked.body.items?.some(({ sub }) => sub === id) && locked.body.items.every(({ locked_at: at }) => at))
  const origins = await call(strong.access_token, 'GET', '/clients?origin=registered')
  t.ok(origins.body.items?.length && origins.body.items.every(({ origin }) => origin === 'registered'))
  for (const query of ['limit=0', 'limit=201', 'after=x', 'state=gone', 'more=1'])
    t.strictSame(
      errorOf(await call(strong.access_token, 'GET', `/users?${query}`)),
      [400, 'invalid_request'],
      query,
    )
})

t.test('what has ids and secrets elsewhere keeps them', async (t) => {
  const token = strong.access_token
  const id = `group_${systemRandom(16).toString('base64url')}`
  const group = await call(token, 'POST', '/groups', { body: { name: 'elsewhere', group_id: id } })
  t.match(group, { status: 201, body: { group_id: id } })
  const again = await call(token, 'POST', '/groups', { body: { name: 'again', group_id: id } })
  t.strictSame(errorOf(again), [409, 'conflict'])

  const sub = `user_${systemRandom(16).toString('base64url')}`
  const body = { username: 'elsewhere', sub, email: 'e@else.test', email_verified: true, locked: true }
  const user = await call(token, 'POST', '/users', { body })
  t.match(user, { status: 201, body: { sub, username: 'elsewhere', claims: { email_verified: true } } })
  t.type(user.body['locked_at'], 'number')
  t.equal(user.body['invitation'], undefined, 'a locked user is not invited')
  t.strictSame((await call(token, 'GET', `/users/${sub}/links`)).body.items, [])
  const other = await call(token, 'POST', '/users', { body: { username: 'another', sub } })
  t.strictSame(errorOf(other), [409, 'conflict'])
  t.strictSame(errorOf(await call(token, 'POST', '/users', { body: {} })), [400, 'invalid_request'])

  const [secret, next] = ['s'.repeat(40), 'n'.repeat(40)]
  const wanted = { client_name: 'Elsewhere', redirect_uris: [callback], pkce: 'optional', scope: 'openid' }
  const added = await call(token, 'POST', '/clients', {
    body: { client_id: 'elsewhere', client_secret: secret, ...wanted },
  })
  t.match(added, { status: 201, body: { client_id: 'elsewhere' } })
  t.equal(added.body['client_secret'], undefined, 'a given secret is not shown')
  t.strictSame(added.body['configured'], { ...wanted, consent: 'remember' })
  const taken = await call(token, 'POST', '/clients', { body: { client_id: 'elsewhere', ...wanted } })
  t.strictSame(errorOf(taken), [409, 'conflict'])
  const open = { client_id: 'public', token_endpoint_auth_method: 'none', client_secret: secret }
  const unused = await call(token, 'POST', '/clients', {
    body: { ...open, client_name: 'P', redirect_uris: [callback] },
  })
  t.strictSame(errorOf(unused), [400, 'invalid_client_metadata'])
  const compare = async (client_secret: string) =>
    (await call(token, 'POST', '/clients/elsewhere/secret/compare', { body: { client_secret } })).body
  t.strictSame(await compare(secret), { client_id: 'elsewhere', matches: true })
  t.strictSame(await compare(next), { client_id: 'elsewhere', matches: false })
  const rotated = await call(token, 'POST', '/clients/elsewhere/secret', {
    body: { client_secret: next, keep_old_seconds: 60 },
  })
  t.equal(rotated.status, 200)
  t.equal(rotated.body['client_secret'], undefined)
  t.match(await compare(next), { matches: true })
  t.match(await compare(secret), { matches: false })

  const put = (body: object, etag: string) =>
    call(token, 'PUT', '/clients/elsewhere', { headers: { 'if-match': etag }, body })
  t.strictSame(errorOf(await put(wanted, '"other"')), [412, 'precondition_failed'])
  const replaced = await put({ client_name: 'Replaced', redirect_uris: [callback] }, '*')
  t.strictSame(
    replaced.body['configured'],
    { client_name: 'Replaced', redirect_uris: [callback], consent: 'remember' },
    'what is not named has its default',
  )
  const [event] = await store.audit({ since: 0, name: 'client-changed', limit: 1 })
  t.equal(event?.facts?.['changed'], 'client_name scope pkce')
  const more = await call(await machineToken(machine, 'admin:clients:write'), 'PUT', '/clients/elsewhere', {
    headers: { 'if-match': '*' },
    body: { ...wanted, grant_types: ['client_credentials'], scope: 'admin:users:write' },
  })
  t.strictSame(errorOf(more), [403, 'access_denied'], 'no caller gets more than their token allows')
})

t.test('groups, their members and the groups of a user', async (t) => {
  const token = strong.access_token
  const group = await addGroup()
  const user = await invite()
  const added = await call(token, 'POST', `/groups/${group.id}/members`, { body: { sub: user.id } })
  t.equal(added.body['group_id'], group.id)
  const members = await call(token, 'GET', `/groups/${group.id}/members`)
  t.strictSame(
    members.body.items?.map(({ sub }) => sub),
    [user.id],
  )
  const parent = await addGroup()
  const headers = { 'if-match': group.etag }
  const moved = await call(token, 'PATCH', `/groups/${group.id}`, { headers, body: { parent_id: parent.id } })
  t.equal(moved.body['parent_id'], parent.id)
  const own = await call(token, 'GET', `/users/${user.id}/groups`)
  t.strictSame(
    own.body.items?.map((one) => one['group_id']).toSorted(),
    [group.id, parent.id].toSorted(),
    'with the groups above',
  )
  const stale = await call(token, 'PATCH', `/groups/${group.id}`, { headers, body: { name: 'late' } })
  t.strictSame(errorOf(stale), [412, 'precondition_failed'])
  const held = await call(token, 'DELETE', `/groups/${parent.id}`, { headers: { 'if-match': '*' } })
  t.strictSame(errorOf(held), [400, 'invalid_request'], 'it is the parent of another one')
  const paths: unknown[] = []
  let next: unknown
  do {
    const { body } = await call(token, 'GET', `/groups?limit=2${next ? `&after=${next}` : ''}`)
    paths.push(...(body.items ?? []).map((one) => one['group_id']))
    next = body['next']
  } while (next !== undefined)
  t.strictSame(paths, [...new Set(paths)].toSorted(), 'every group once, by its id')
  t.ok(paths.includes(group.id) && paths.includes(parent.id) && paths.includes(admins.id))
  const named = await call(token, 'GET', '/groups?name=ADMINS')
  t.strictSame(
    named.body.items?.map((one) => one['group_id']),
    [admins.id],
  )
  t.equal((await call(token, 'DELETE', `/groups/${group.id}/members/${user.id}`)).status, 204)
  t.strictSame(errorOf(await call(token, 'DELETE', `/groups/${group.id}/members/${user.id}`)), [
    404,
    'not_found',
  ])
})

t.test('a client without a user makes no administrators, and the last one stays', async (t) => {
  const token = await machineToken(machine, 'admin:users:write')
  const group = await addGroup()
  const headers = { 'if-match': '*' }
  const attempts: readonly (readonly [string, string, Sent])[] = [
    ['POST', `/groups/${admins.id}/members`, { body: { sub: ids.bob } }],
    ['POST', `/groups/${subgroup.id}/members`, { body: { sub: ids.bob } }],
    ['DELETE', `/groups/${subgroup.id}/members/${ids.alice}`, {}],
    ['PATCH', `/groups/${group.id}`, { headers, body: { parent_id: admins.id } }],
    ['PATCH', `/groups/${subgroup.id}`, { headers, body: { parent_id: '' } }],
    ['PATCH', `/groups/${admins.id}`, { headers, body: { description: 'mine' } }],
    ['POST', '/groups', { body: { name: 'more', parent_id: subgroup.id } }],
    ['DELETE', `/groups/${subgroup.id}`, { headers }],
    ['POST', `/users/${ids.alice}/links`, { body: { purpose: 'password-reset' } }],
    ['POST', `/users/${ids.alice}/sign-out`, {}],
    ['POST', `/users/${ids.alice}/remove-codes`, {}],
    ['DELETE', `/users/${ids.alice}/grants/${console.id}`, {}],
  ]
  for (const [method, path, sent] of attempts)
    t.strictSame(errorOf(await call(token, method, path, sent)), [403, 'access_denied'], `${method} ${path}`)
  const last: readonly (readonly [string, string, Sent])[] = [
    ['DELETE', `/groups/${subgroup.id}/members/${ids.alice}`, {}],
    ['PATCH', `/groups/${subgroup.id}`, { headers, body: { parent_id: '' } }],
    ['PATCH', `/groups/${admins.id}`, { headers, body: { name: 'others' } }],
    ['DELETE', `/groups/${subgroup.id}`, { headers }],
  ]
  for (const [method, path, sent] of last)
    t.strictSame(
      errorOf(await call(strong.access_token, method, path, sent)),
      [409, 'conflict'],
      `${method} ${path}`,
    )
})

t.test('what belongs to one user is not found at another', async (t) => {
  const [user, other] = [await invite(), await invite()]
  const { body } = await call(strong.access_token, 'GET', `/users/${user.id}/links`)
  const link = body.items?.[0]?.['link_id']
  t.notMatch(JSON.stringify(body), 'lyc_link')
  t.strictSame(errorOf(await call(strong.access_token, 'DELETE', `/users/${other.id}/links/${link}`)), [
    404,
    'not_found',
  ])
  await signedIn(server, await integrate(server), bob)
  const [session] = await store.listOf('session', ids.bob)
  const foreign = await call(strong.access_token, 'DELETE', `/users/${user.id}/sessions/${session?.id}`)
  t.strictSame(errorOf(foreign), [404, 'not_found'])
  t.ok(await store.find('session', session?.id ?? ''))
  const path = `/users/${ids.bob}/sessions/${session?.id}`
  t.equal((await call(strong.access_token, 'DELETE', path)).status, 204)
  t.equal(await store.find('session', session?.id ?? ''), undefined)
})

t.test('a link, a registration token and a retired key', async (t) => {
  const user = await invite()
  const headers = { 'idempotency-key': 'a-link' }
  const sent = { headers, body: { purpose: 'password-reset' } }
  const made = await call(strong.access_token, 'POST', `/users/${user.id}/links`, sent)
  t.match(made.body, { link: /\/link\?code=lyc_link_/ })
  const again = await call(strong.access_token, 'POST', `/users/${user.id}/links`, sent)
  t.strictSame(again.body, { expires_at: made.body['expires_at'] }, 'the link is shown once')
  const token = await call(strong.access_token, 'POST', '/registration-tokens', {
    body: { redirects: 'https' },
  })
  const initial = String(token.body['initial_access_token'])
  const registerWith = () =>
    fetch(`${server.issuer}/api/oauth/register`, {
      method: 'POST',
      headers: { authorization: `Bearer ${initial}`, 'content-type': 'application/json' },
      body: JSON.stringify({ redirect_uris: ['https://app.example/callback'], scope: all }),
    })
  const registered = await registerWith()
  t.equal(registered.status, 201)
  t.equal((await json(registered))['scope'], 'openid', 'not even with an initial access token')
  const named = `/registration-tokens/${token.body['token_id']}`
  t.equal((await call(strong.access_token, 'GET', named)).body['used'], 1)
  t.equal((await call(strong.access_token, 'DELETE', named)).status, 204)
  t.equal((await registerWith()).status, 401)
  const rotated = await call(strong.access_token, 'POST', '/keys/rotate', {
    body: { algorithms: ['RS256'], now: true },
  })
  const old = rotated.body.items?.find(({ state }) => state === 'verifies only')?.['kid']
  const kids = async () => JSON.stringify(await json(await fetch(`${server.issuer}/api/oauth/jwks`)))
  t.match(await kids(), String(old))
  t.match((await call(strong.access_token, 'POST', `/keys/${old}/retire`)).body, {
    kid: old,
    state: 'retired',
  })
  t.notMatch(await kids(), String(old), 'at once')
  t.strictSame(errorOf(await call(strong.access_token, 'POST', `/keys/${old}/retire`)), [404, 'not_found'])
  const { body } = await call(strong.access_token, 'GET', '/audit?limit=5')
  t.match(body.items?.[0], { event: 'key-retired', by: 'operator', facts: { actor: ids.alice } })
  t.notMatch(JSON.stringify(body), /lyc_|PRIVATE/)
  const next = await call(strong.access_token, 'GET', `/audit?limit=5&after=${body['next']}`)
  t.equal(next.body.items?.length, 5)
  t.ok(Number(next.body.items?.[0]?.['at']) <= Number(body.items?.at(-1)?.['at']))
  const about = await call(strong.access_token, 'GET', `/audit?sub=${user.id}`)
  t.strictSame(
    about.body.items?.map(({ event }) => event),
    ['link-made', 'link-made', 'user-invited'],
  )
})

t.test('rejected requests are listed, newest first, and each says why', async (t) => {
  const ids = [await rejectedRequest(), await rejectedRequest()]
  const { body } = await call(strong.access_token, 'GET', '/rejections?limit=1')
  t.match(body, {
    items: [{ id: ids[1], method: 'POST', path: '/api/oauth/token', status: 401, error: 'invalid_client' }],
  })
  t.notMatch(JSON.stringify(body), /not-the-secret/)
  const next = await call(strong.access_token, 'GET', `/rejections?limit=1&after=${body['next']}`)
  t.match(next.body.items, [{ id: ids[0] }])
  const read = await call(strong.access_token, 'GET', `/rejections/${ids[0]?.toUpperCase()}`)
  t.strictSame(read.body, next.body.items?.[0])
  t.match(read.body, {
    rule: /^rfc6749-/,
    clause: { name: /RFC 6749/, url: /^https:/ },
    why: /authentication/,
  })
  const none = await call(strong.access_token, 'GET', '/rejections/0f9d3c6e-7a0b-4c55-9f0e-5d9b6f8f4a52')
  t.strictSame(errorOf(none), [404, 'not_found'])
})

t.test('what signs a user in is read by itself', async (t) => {
  const signInOf = async (id: string) => (await call(strong.access_token, 'GET', `/users/${id}/sign-in`)).body
  t.strictSame(await signInOf(ids.alice), { second_factor: true, passkeys: 0, failures_in_a_row: 0 })
  t.match(await signInOf(ids.bob), { second_factor: false, passkeys: 0 })
})

t.test('one grant is read and revoked', async (t) => {
  const { id, client } = await grantOf(bob)
  const read = () => call(strong.access_token, 'GET', `/grants/${id}`)
  t.match((await read()).body, {
    grant: id,
    state: 'active',
    sub: ids.bob,
    client_id: client.id,
    scope: 'openid',
  })
  t.equal((await call(strong.access_token, 'DELETE', `/grants/${id}`)).status, 204)
  t.match((await read()).body, { state: 'revoked' })
  t.equal((await call(strong.access_token, 'DELETE', `/grants/${id}`)).status, 404, 'it has ended')
  const [event] = await store.audit({ since: 0, name: 'revocation', userId: ids.bob, limit: 1 })
  t.match(event?.facts, { actor: ids.alice, grant: id })
  const own = await grantOf(alice)
  const byClient = await call(await machineToken(machine, 'admin:users:write'), 'DELETE', `/grants/${own.id}`)
  t.strictSame(errorOf(byClient), [403, 'access_denied'], 'not that of an administrator, without a user')
  t.equal((await store.find('grant', own.id))?.revokedAt, undefined)
})

t.test('a change names the file that it comes from, if its sender does', async (t) => {
  const add = (file: string) =>
    call(strong.access_token, 'POST', '/users', {
      headers: { 'audit-file': file },
      body: { email: `f${systemRandom(8).toString('hex')}@example.test` },
    })
  const added = await add(encodeURIComponent('groups/Größe 1.yaml'))
  t.equal(added.status, 201)
  const [event] = await store.audit({ since: 0, userId: String(added.body['sub']), limit: 1 })
  t.match(event?.facts, { file: 'groups/Größe 1.yaml', actor: ids.alice, via: console.id })
  const before = (await store.list('user')).length
  for (const file of ['%', '%ff', '%0A', 'a b', '%E2%80%8B', '', 'x'.repeat(201)])
    t.strictSame(errorOf(await add(file)), [400, 'invalid_request'], file)
  t.equal((await store.list('user')).length, before, 'nothing is added')
  const read = { headers: { 'audit-file': '%' } }
  t.equal((await call(strong.access_token, 'GET', '/users', read)).status, 200, 'nothing to name')
})

t.test('users are found by the beginning of their user name or email address', async (t) => {
  const token = await machineToken(machine, 'admin:users:read admin:users:write')
  const add = async (username: string, email: string) =>
    String((await call(token, 'POST', '/users', { body: { username, email } })).body['sub'])
  const one = await add('Zoë', 'first@zo.test')
  const two = await add('other-zo', 'ZOFIA@example.test')
  const three = await add('zora', 'zora@example.test')
  const find = async (query: string, by = token) => {
    const { status, body } = await call(by, 'GET', `/users?${query}`)
    return status === 200 ? [body.items?.map(({ sub }) => sub), body['next']] : status
  }
  t.strictSame(await find('search=zo'), [[two, three, one], undefined], 'in the order of what begins so')
  t.strictSame(await find('search=ZO%C3%8B'), [[one], undefined], 'in any case')
  t.strictSame(await find('search=zora@'), [[three], undefined])
  t.strictSame(await find('search=zo&login=zora'), [[three], undefined])
  t.strictSame(await find('search=zi&login=zora'), [[], undefined])
  t.strictSame(await find('search=ora'), [[], undefined], 'not in the middle')
  for (const none of ['%25', '_', 'zo%E2%80%8B', '%EF%BF%BF', 'z'.repeat(2000)])
    t.strictSame(await find(`search=${none}`), [[], undefined], none.slice(0, 20))
  const found: unknown[] = []
  let next = ''
  for (let pages = 0; pages < 9 && next !== 'undefined'; pages += 1) {
    const { body } = await call(token, 'GET', `/users?search=zo&limit=1${next && `&after=${next}`}`)
    found.push(...(body.items ?? []).map(({ sub }) => sub))
    next = String(body['next'])
  }
  t.strictSame(found, [two, three, one], 'by pages')
  await call(token, 'POST', `/users/${three}/lock`)
  t.strictSame(await find('search=zo&state=locked'), [[three], undefined])
  t.strictSame(await find(`search=zo&after=${Buffer.from('after \u0000').toString('base64url')}`), 400)
})

t.test('the audit log has the filters of the command line', async (t) => {
  const token = await machineToken(machine, 'admin:audit:read')
  const { id } = await addClient()
  server.advance(5)
  const since = server.now()
  await call(strong.access_token, 'POST', `/clients/${id}/lock`)
  const eventsOf = async (filter: string) =>
    (await call(token, 'GET', `/audit?${filter}`)).body.items?.map(({ event }) => event)
  t.strictSame(await eventsOf(`client_id=${id}`), ['client-locked', 'client-added'])
  t.strictSame(await eventsOf(`client_id=${id}&since=${since}`), ['client-locked'])
  t.strictSame(await eventsOf(`client_id=${id}&event=client-added`), ['client-added'])
  t.strictSame(await eventsOf('event=client-added&limit=1'), ['client-added'])
  t.strictSame(await eventsOf(`since=${since}`), ['client-locked'])
  t.strictSame(await eventsOf(`since=${server.now() + 1}`), [])
  t.strictSame(await eventsOf(`since=${since}&until=${server.now()}`), ['client-locked'])
  t.strictSame(await eventsOf(`client_id=${id}&since=${since}&until=${since - 1}`), [])
  for (const filter of ['event=none', 'since=yesterday', 'until=now'])
    t.equal((await call(token, 'GET', `/audit?${filter}`)).status, 400, filter)
})

t.test('of two changes with one ETag, one is made', async (t) => {
  const [user, client] = [await invite(), await addClient()]
  const race = async (path: string, etag: string, bodies: readonly object[]) => {
    const calls = bodies.map((body) =>
      call(strong.access_token, 'PATCH', path, { headers: { 'if-match': etag }, body }),
    )
    return (await Promise.all(calls)).map(({ status }) => status).toSorted()
  }
  const names = ['A', 'B', 'C']
  t.strictSame(
    await race(
      `/users/${user.id}`,
      user.etag,
      names.map((nickname) => ({ claims: { nickname } })),
    ),
    [200, 412, 412],
  )
  t.strictSame(
    await race(
      `/clients/${client.id}`,
      client.etag,
      names.map((name) => ({ client_name: name })),
    ),
    [200, 412, 412],
  )
  const now = await call(strong.access_token, 'GET', `/users/${user.id}`)
  t.not(now.etag, user.etag)
  for (const [path, method, body] of [
    [`/users/${user.id}`, 'PATCH', { claims: {} }],
    [`/users/${user.id}`, 'DELETE', undefined],
    [`/clients/${client.id}`, 'PATCH', { client_name: 'x' }],
    [`/clients/${client.id}`, 'DELETE', undefined],
  ] as const) {
    const sent = { ...(body && { body }) }
    t.strictSame(errorOf(await call(strong.access_token, method, path, sent)), [428, 'precondition_required'])
    const headers = { 'if-match': user.etag }
    t.strictSame(errorOf(await call(strong.access_token, method, path, { ...sent, headers })), [
      412,
      'precondition_failed',
    ])
    const gone = path.replace(/_.*/, `_${'x'.repeat(22)}`)
    t.strictSame(errorOf(await call(strong.access_token, method, gone, { ...sent, headers })), [
      404,
      'not_found',
    ])
  }
  const sent = { headers: { 'if-match': now.etag } }
  t.equal((await call(strong.access_token, 'DELETE', `/users/${user.id}`, sent)).status, 204)
  t.equal((await call(strong.access_token, 'GET', `/users/${user.id}`)).status, 404)
})

t.test('a request with an Idempotency-Key is performed once, and its secret is shown once', async (t) => {
  const headers = { 'idempotency-key': 'one' }
  const body = { client_name: 'Once', redirect_uris: [callback] }
  const calls = [1, 2, 3].map(() => call(strong.access_token, 'POST', '/clients', { headers, body }))
  const all = await Promise.all(calls)
  t.strictSame(new Set(all.map(({ status }) => status)), new Set([201]))
  t.equal(new Set(all.map(({ body }) => body['client_id'])).size, 1)
  t.equal(
    all.filter(({ body }) => 'client_secret' in body).length,
    1,
    'only the first response has the secret',
  )
  t.equal(all.filter(({ headers }) => headers.get('idempotent-replayed') === 'true').length, 2)
  const changed = await call(strong.access_token, 'POST', '/clients', {
    headers,
    body: { ...body, consent: 'always' },
  })
  t.strictSame(errorOf(changed), [422, 'idempotency_key_reused'])
  const user = { headers, body: { email: 'once@example.test' } }
  const invited = await call(strong.access_token, 'POST', '/users', {
    ...user,
    headers: { 'idempotency-key': 'two' },
  })
  t.match(invited.body, { invitation: { link: /\/link\?code=/ } })
  const again = await call(strong.access_token, 'POST', '/users', {
    ...user,
    headers: { 'idempotency-key': 'two' },
  })
  t.notOk('invitation' in again.body)
  t.equal(again.body['sub'], invited.body['sub'])
  const another = await call(strong.access_token, 'POST', '/users', { body: user.body })
  t.strictSame(errorOf(another), [409, 'conflict'], 'without the key it is another request')
  server.advance(86_401)
  const late = await integrate(server, {
    grantTypes: ['client_credentials'],
    redirectUris: [],
    scope: [...scopes],
  })
  const token = await machineToken(late, all[0] ? 'admin:clients:write' : '')
  t.equal((await call(token, 'POST', '/clients', { headers, body })).status, 201)
})

t.test('the method and the scope of a client are ones that this server has', async (t) => {
  const adder = await integrate(server, {
    grantTypes: ['client_credentials'],
    redirectUris: [],
    scope: ['admin:clients:write'],
  })
  const token = await machineToken(adder, 'admin:clients:write')
  const body = { client_name: 'By another method', redirect_uris: ['https://client.example/callback'] }
  const by = (method: string) => ({ body: { ...body, token_endpoint_auth_method: method } })
  for (const method of ['client_secret_jwt', '__proto__', ''])
    t.strictSame(errorOf(await call(token, 'POST', '/clients', by(method))), [400, 'invalid_client_metadata'])
  for (const scope of ['nothing:read', '"', 'courses:read\u00e9'])
    t.strictSame(errorOf(await call(token, 'POST', '/clients', { body: { ...body, scope } })), [
      400,
      'invalid_client_metadata',
    ])
  const added = await call(token, 'POST', '/clients', by('client_secret_post'))
  t.equal(added.status, 201)
  const changed = await call(token, 'PATCH', `/clients/${added.body['client_id']}`, {
    headers: { 'if-match': '*' },
    ...by('client_secret_jwt'),
  })
  t.strictSame(errorOf(changed), [400, 'invalid_client_metadata'])
})

t.test('a client that got a token since then stays, if the request says since when', async (t) => {
  const token = await machineToken(machine, 'admin:clients:write')
  const { id, etag } = await addClient({}, token)
  const remove = (since: number | string) =>
    call(token, 'DELETE', `/clients/${id}?unused_since=${since}`, { headers: { 'if-match': etag } })
  t.strictSame(errorOf(await remove('yesterday')), [400, 'invalid_request'])
  t.strictSame(errorOf(await remove(clock() - 60)), [409, 'conflict'])
  t.not(await store.find('client', id), undefined)
  t.equal((await remove(clock() + 60)).status, 204)
  t.equal(await store.find('client', id), undefined)
})

t.test('a client may be added locked', async (t) => {
  const token = await machineToken(machine, 'admin:clients:write')
  const { id, body } = await addClient({ locked: true }, token)
  t.type(body['locked_at'], 'number')
  t.type((await store.find('client', id))?.lockedAt, 'number')
  const names = (await store.audit({ since: 0, clientId: id, limit: 10 })).map(({ name }) => name)
  t.strictSame(names.toSorted(), ['client-added', 'client-locked'])
})

t.test('a client is replaced, locked and given another secret by one request or not at all', async (t) => {
  const token = await machineToken(machine, 'admin:clients:write')
  const { id } = await addClient({}, token)
  const added = await store.find('client', id)
  const [secret, redirect_uris] = ['s'.repeat(32), [callback]]
  const replace = (body: object, seen = '*') =>
    call(token, 'PUT', `/clients/${id}`, { headers: { 'if-match': seen }, body: { redirect_uris, ...body } })
  const short = await replace({ client_name: 'Other', locked: true, client_secret: 'short' })
  t.strictSame(errorOf(short), [400, 'invalid_client_metadata'])
  t.strictSame(await store.find('client', id), added, 'nothing of it')

  const { body, etag } = await replace({ client_name: 'Other', locked: true, client_secret: secret })
  t.match(body, { client_name: 'Other', locked_at: Number })
  const read = () => store.find('client', id)
  t.ok(secretMatches(secret, (await read())?.secretHash))
  const names = (await store.audit({ since: 0, clientId: id, limit: 10 })).map(({ name }) => name)
  t.strictSame(names.toSorted(), ['client-added', 'client-changed', 'client-locked', 'client-secret-changed'])

  t.type((await replace({ client_name: 'Third' }, etag)).body['locked_at'], 'number', 'it stays locked')
  t.ok(secretMatches(secret, (await read())?.secretHash), 'with its secret')
  t.notHas((await replace({ client_name: 'Third', locked: false })).body, { locked_at: Number })
})

t.test('a profile says which members it changed, and rejects a client that cannot have it', async (t) => {
  const token = await machineToken(machine, 'admin:clients:write')
  const choose = async (id: string, profile: string) =>
    call(token, 'POST', `/clients/${id}/profile`, { body: { profile } })
  const description = { jwks: { keys: [makeClientKey('ES256').jwk] } }
  const { id } = await integrate(server, { authenticationMethod: 'private_key_jwt', description })
  const { status, body } = await choose(id, 'fapi2')
  t.equal(status, 200)
  t.match(body, {
    client_id: id,
    changed: {
      security_profile: { before: null, after: 'fapi2' },
      id_token_signed_response_alg: { before: 'RS256', after: 'ES256' },
    },
  })
  t.strictSame((await choose(id, 'fapi2')).body, { client_id: id, changed: {} })
  t.match((await choose(id, 'none')).body, {
    changed: { security_profile: { before: 'fapi2', after: null } },
  })
  t.strictSame(errorOf(await choose(id, 'fapi1')), [400, 'invalid_request'])
  t.strictSame(errorOf(await choose((await addClient({}, token)).id, 'fapi2')), [
    400,
    'invalid_client_metadata',
  ])
  t.strictSame(errorOf(await choose((await register(server)).id, 'none')), [409, 'conflict'])
  t.strictSame(errorOf(await choose('nobody', 'none')), [404, 'not_found'])
})

t.test('no caller gets more than their token allows', async (t) => {
  const narrow = await integrate(server, {
    grantTypes: ['client_credentials'],
    redirectUris: [],
    scope: ['admin:clients:write', 'admin:users:write'],
  })
  const token = await machineToken(narrow, 'admin:clients:write')
  const wanted = { client_name: 'More', grant_types: ['client_credentials'] }
  const more = { ...wanted, scope: 'admin:users:write' }
  t.strictSame(errorOf(await call(token, 'POST', '/clients', { body: more })), [403, 'access_denied'])
  const same = await call(token, 'POST', '/clients', { body: { ...wanted, scope: 'admin:clients:write' } })
  t.equal(same.status, 201)
  const { id } = { id: String(same.body['client_id']) }
  const raised = await call(token, 'PATCH', `/clients/${id}`, {
    headers: { 'if-match': '*' },
    body: { scope: 'admin:users:write' },
  })
  t.strictSame(errorOf(raised), [403, 'access_denied'])
  const rotate = { body: { keep_old_seconds: 0 } }
  const stolen = await call(token, 'POST', `/clients/${machine.id}/secret`, rotate)
  t.strictSame(errorOf(stolen), [403, 'access_denied'], 'nor the secret of a client that may do more')
  const compare = { body: { client_secret: 'x'.repeat(32) } }
  const guessed = await call(token, 'POST', `/clients/${machine.id}/secret/compare`, compare)
  t.strictSame(errorOf(guessed), [403, 'access_denied'], 'nor whether a text is that secret')
  const profile = await call(token, 'POST', `/clients/${console.id}/profile`, { body: { profile: 'none' } })
  t.strictSame(errorOf(profile), [403, 'access_denied'], 'nor the profile of such a client')
  const redirect = { headers: { 'if-match': '*' }, body: { redirect_uris: ['https://evil.example/'] } }
  t.strictSame(errorOf(await call(token, 'PATCH', `/clients/${console.id}`, redirect)), [
    403,
    'access_denied',
  ])
  const users = await machineToken(narrow, 'admin:users:write')
  const email = { headers: { 'if-match': '*' }, body: { email: 'evil@example.test' } }
  for (const [method, path, sent] of [
    ['PATCH', '', email],
    ['DELETE', '', { headers: email.headers }],
    ['POST', '/lock', {}],
  ] as const) {
    const response = await call(users, method, `/users/${ids.alice}${path}`, sent)
    t.strictSame(errorOf(response), [403, 'access_denied'], `no client ${method} an administrator`)
  }
  const key = failuresOf(ids.bob, 'all')
  await store.write(put(throttleKind, { key, failures: 7, expiresAt: server.now() + 60 }))
  const unlocked = await call(users, 'POST', `/users/${ids.bob}/unlock`)
  t.match(unlocked, { status: 200, body: { sub: ids.bob, was_locked: false, forgotten_failures: 7 } })
  t.equal(await store.find(throttleKind, key), undefined)
})

t.test('administrators cannot lock or delete themselves', async (t) => {
  const again = await tokensAt(await twoFactors(), console, all)
  const headers = { 'if-match': '*' }
  const own = `/users/${ids.alice}`
  for (const response of [
    await call(again.access_token, 'POST', `${own}/lock`),
    await call(again.access_token, 'DELETE', own, { headers }),
    await call(again.access_token, 'PATCH', own, { headers, body: { locked: true } }),
  ]) {
    t.strictSame(errorOf(response), [409, 'conflict'])
    // The last administrator would be kept in any case.
    t.match(response.body['error_description'], 'cannot lock or delete themselves')
  }
  t.equal((await call(again.access_token, 'POST', `/users/${ids.bob}/lock`)).status, 200)
})

t.test('the last passkey of a last administrator without a password stays', async (t) => {
  const again = await tokensAt(await twoFactors(), console, all)
  const alice = (await store.find('user', ids.alice)) as User
  const { passwordHash: _, ...without } = alice
  await store.transact('user', ids.alice, () => accept(undefined, update('user', without)))
  await store.write(put(passkeyKind, { ...sample.passkey, userId: ids.alice }))
  const remove = () => call(again.access_token, 'POST', `/users/${ids.alice}/remove-passkeys`)
  t.strictSame(errorOf(await remove()), [409, 'conflict'])
  t.equal((await store.listOf(passkeyKind, ids.alice)).length, 1)
  await store.transact('user', ids.alice, () => accept(undefined, update('user', alice)))
  t.equal((await remove()).status, 200)
})

t.test('keys are rotated once by two requests at once with one Idempotency-Key', async (t) => {
  const again = await tokensAt(await twoFactors(), console, all)
  const headers = { 'idempotency-key': 'rotation' }
  const kids = async () => (await store.list('key')).map(({ id }) => id)
  const before = await kids()
  // By `now` a second rotation would make the waiting key sign and a third one wait.
  const body = { algorithms: ['ES256'], now: true }
  const responses = await Promise.all(
    [1, 2, 3].map(() => call(again.access_token, 'POST', '/keys/rotate', { headers, body })),
  )
  t.strictSame(new Set(responses.map(({ status }) => status)), new Set([200]))
  t.strictSame(responses.filter(({ headers }) => headers.get('idempotent-replayed') === 'true').length, 2)
  t.ok((await kids()).length - before.length <= 1)
  const events = (await store.audit({ since: clock(), limit: 100 })).filter(({ name }) => /^key-/.test(name))
  t.ok(events.length <= 2, JSON.stringify(events))
})

t.test('of two administrators who lock or delete each other at the same time, one stays', async (t) => {
  const own = await startServer(t, { admin: { api: 'on', secondFactor: 'off' } })
  const { store } = own.deps
  const two = await integrate(own, { consent: 'skip', scope: ['openid', ...scopes] })
  const base = `${own.issuer}/api/admin/v1/users`
  const users = await Promise.all(
    [alice, bob].map(async (user) => {
      const id = (await store.find('userByLogin', user.username))?.id ?? ''
      await addAdministrator(store, 'admins', id, systemRandom(16), operator())
      const { code = '' } = sentAway(await ask(own, two, { scope: all }, await signedIn(own, two, user)))
      const { access_token: token } = (await (await exchange(own, two, code)).json()) as Tokens
      return { id, token }
    }),
  )
  const [mine, theirs] = users
  if (mine === undefined || theirs === undefined) throw new Error('there are two')
  const isThere = async ({ id }: { id: string }) => {
    const user = await store.find('user', id)
    return user !== undefined && user.lockedAt === undefined
  }
  const stored = (await store.find('user', mine.id)) as User
  const { passwordHash: _, ...without } = stored
  await store.transact('user', mine.id, () => accept(undefined, update('user', without)))
  const last = await call(mine.token, 'DELETE', `${base}/${theirs.id}`, { headers: { 'if-match': '*' } })
  t.strictSame(errorOf(last), [409, 'conflict'], 'the only one who can sign in')
  await store.transact('user', mine.id, () => accept(undefined, update('user', stored)))
  for (const [method, suffix] of [
    ['POST', '/lock'],
    ['DELETE', ''],
  ] as const) {
    const end = (by: string, id: string) =>
      call(by, method, `${base}/${id}${suffix}`, { headers: { 'if-match': '*' } })
    await Promise.all([end(mine.token, theirs.id), end(theirs.token, mine.id)])
    const left = await Promise.all(users.map(isThere))
    t.strictSame(left.toSorted(), [false, true], `${method}: one of them`)
    const [gone] = users.filter((_, index) => !left[index])
    if (gone === undefined || method === 'DELETE') continue
    await store.transact('user', gone.id, (user) =>
      unlockUser(user as User, { by: 'operator', at: own.now() }),
    )
    const { code = '' } = sentAway(
      await ask(own, two, { scope: all }, await signedIn(own, two, gone === mine ? alice : bob)),
    )
    gone.token = ((await (await exchange(own, two, code)).json()) as Tokens).access_token
  }
})

t.test('every change is in the audit log, with the actor and the request', async (t) => {
  const token = await machineToken(machine, scopes.join(' '))
  const { id, etag } = await invite(token)
  const patched = await call(token, 'PATCH', `/users/${id}`, {
    headers: { 'if-match': etag },
    body: { claims: { name: 'N' } },
  })
  const deleted = await call(token, 'DELETE', `/users/${id}`, { headers: { 'if-match': patched.etag } })
  t.equal(deleted.status, 204)
  const events = (await store.audit({ since: 0, limit: 10_000, userId: id })).map(({ name, by, facts }) => ({
    name,
    by,
    actor: facts['actor'],
    hasRequest: /^[\w-]{36}$/.test(String(facts['request'])),
  }))
  const expected = ['user-invited', 'link-made', 'user-changed', 'user-removed']
  t.strictSame(
    events,
    expected.map((name) => ({ name, by: 'operator', actor: machine.id, hasRequest: true })),
  )
  t.notOk(JSON.stringify(await store.audit({ since: 0, limit: 10_000 })).includes('client_secret'))
})

t.test('bad input is rejected with the member to change', async (t) => {
  const token = await machineToken(machine, scopes.join(' '))
  const rejects = async (t: Test, method: string, path: string, body: object, error = 'invalid_request') => {
    const response = await call(token, method, path, { body, headers: { 'if-match': '*' } })
    t.strictSame(errorOf(response), [400, error], JSON.stringify(response.body))
  }
  await rejects(t, 'POST', '/users', {})
  await rejects(t, 'POST', '/users', { username: 'x', sub: 'x' })
  await rejects(t, 'POST', '/groups', { name: 'x', group_id: `group_${'A'.repeat(21)}B` })
  await rejects(t, 'POST', '/users', { email: 'no address' })
  await rejects(t, 'POST', '/users', { email: 'y@example.test', password: 'x' })
  await rejects(t, 'POST', '/users', { email: 'y@example.test', claims: { zoneinfo: 'here' } })
  await rejects(t, 'PATCH', `/users/${ids.bob}`, {})
  await rejects(t, 'PATCH', `/users/${ids.bob}`, { passwordHash: 'x' })
  for (const [body, said] of [
    [{ passwordHash: 'x' }, 'passwordHash is not known in the body'],
    [{ claims: { nick: 'x' } }, 'nick is not known in the body'],
    [{ '<b>': 'x' }, 'the body is missing or malformed'],
  ] as const) {
    const sent = { body, headers: { 'if-match': '*' } }
    t.equal((await call(token, 'PATCH', `/users/${ids.bob}`, sent)).body['error_description'], said)
  }
  const query = await call(token, 'GET', '/users?logn=x')
  t.equal(query.body['error_description'], 'logn is not known in the querystring')
  await rejects(t, 'POST', '/clients', { client_name: 'X' }, 'invalid_redirect_uri')
  await rejects(
    t,
    'POST',
    '/clients',
    { client_name: 'X', redirect_uris: ['http://x.example/'] },
    'invalid_redirect_uri',
  )
  await rejects(
    t,
    'POST',
    '/clients',
    { client_name: 'X', redirect_uris: [callback], scope: 'gone' },
    'invalid_client_metadata',
  )
  await rejects(t, 'POST', '/clients', { client_name: 'X', redirect_uris: [callback], client_id: 'a b' })
  const { id } = await register(server)
  const registered = await call(token, 'PATCH', `/clients/${id}`, {
    headers: { 'if-match': '*' },
    body: { client_name: 'X' },
  })
  t.strictSame(errorOf(registered), [409, 'conflict'], 'a client that registered itself changes itself')
  for (const path of ['/users/%00', '/users/%F0%9F%91%BB', '/clients/%00'])
    t.equal((await call(token, 'GET', path)).status, 404, path)
})

t.test('a page of another origin may send and read the headers of the API', async (t) => {
  const origin = 'https://console.example'
  const asked = await fetch(`${root}/users/x`, {
    method: 'OPTIONS',
    headers: {
      origin,
      'access-control-request-method': 'PATCH',
      'access-control-request-headers': 'if-match',
    },
  })
  t.equal(asked.status, 204)
  t.match(asked.headers.get('access-control-allow-headers'), /^if-match/)
  const { headers } = await call(undefined, 'GET', '/users', { headers: { origin } })
  t.match(headers.get('access-control-expose-headers'), /ETag, Location, Idempotent-Replayed/)
})

t.test('the API is off by default, with its scopes', async (t) => {
  const plain = await startServer(t)
  t.equal((await fetch(`${plain.issuer}/api/admin/v1/users`)).status, 404)
  t.equal((await fetch(`${plain.issuer}/api/admin/v1/openapi.json`)).status, 404)
  const metadata = await json(await fetch(`${plain.issuer}/.well-known/openid-configuration`))
  t.notMatch(JSON.stringify(metadata), 'admin:')
  await t.rejects(register(plain, { scope: 'admin:users:read' }), /scope/)
  const tool = await integrate(plain, {}, { scope: ['openid', 'admin:users:read'] })
  const { error } = sentAway(await ask(plain, tool, { scope: 'openid admin:users:read' }))
  t.equal(error, 'invalid_scope', 'not for a client of an operator, either')
})

t.test('a removed user cannot administer', async (t) => {
  const again = await tokensAt(await twoFactors(), console, all)
  await store.write(removeUser(ids.alice, clock()))
  t.strictSame(errorOf(await call(again.access_token, 'GET', '/users')), [401, 'invalid_token'])
})
