/** Personal tokens: what a script may do in the name of an administrator, until when, and where. */
import t from 'tap'
import { scopes as adminScopes } from '../../src/admin/operations/api-scopes.ts'
import { accept, insert, remove, removeUser, type Write } from '../../src/domain/decision.ts'
import { createGroup } from '../../src/domain/group.ts'
import { hashSecret } from '../../src/domain/secret.ts'
import { systemRandom } from '../../src/system/system.ts'
import { addToGroup, changeGroups, removeFromGroup } from '../../src/users/groups.ts'
import {
  idOfPersonalToken,
  mintPersonalToken,
  type PersonalToken,
  personalTokenKind,
} from '../../src/users/rules/personal-token.ts'
import { lockUser, unlockUser } from '../../src/users/rules/user.ts'
import { ask, bodyOf, integrate, pageOf, place, sentAway, signedIn } from '../helpers/authorization.ts'
import { runHere } from '../helpers/commands.ts'
import { exchange, type Tokens } from '../helpers/flow.ts'
import { alice, bob, type ServerOptions, startServer, type TestServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { introspect, json } from '../helpers/wire.ts'

const scopes = Object.keys(adminScopes)
const scope = ['admin:users:read', 'admin:users:write']

/** A server where alice is an administrator and bob is not. */
async function start(options: ServerOptions = {}) {
  const server = await startServer(t, { admin: { api: 'on', secondFactor: 'off' }, ...options })
  const { store, clock } = server.deps
  const operator = () => ({ by: 'operator', at: clock() }) as const
  const idOf = async (username: string) => (await store.find('userByLogin', username))?.id ?? ''
  const ids = { alice: await idOf('alice'), bob: await idOf('bob') }
  const admins = await changeGroups(store, (groups) =>
    createGroup(groups, { name: 'admins' }, systemRandom(16), operator()),
  )
  await addToGroup(store, admins, ids.alice, operator())
  /** Stores a token, as its owner made it. */
  const give = async (userId: string, names: readonly string[] = scope, seconds = 3600) => {
    const described = { name: 'Backup', scope: names, seconds }
    const { token, record } = mintPersonalToken(described, userId, systemRandom(32), clock())
    await store.write(insert(personalTokenKind, record))
    return { token, id: idOfPersonalToken(record), record }
  }
  return { server, store, operator, ids, admins, give }
}

async function call(server: TestServer, token: string, method: string, path: string, body?: object) {
  const response = await fetch(`${server.issuer}/api/admin/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      'if-match': '*',
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return {
    status: response.status,
    challenge: response.headers.get('www-authenticate') ?? '',
    body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>,
  }
}

/** An upstream whose users of a group there are in a group here. */
const upstreamGiving = (here: string) => ({
  ...{ upstream_id: 'work', name: 'Work', issuer: 'https://login.example.com' },
  ...{ client_id: 'lychgate', client_secret: 'a secret', groups: { root: here } },
})

const errorOf = ({ status, body }: Awaited<ReturnType<typeof call>>) => [status, body['error']]

async function enter(server: TestServer, user = alice): Promise<UserAgent> {
  const agent = new UserAgent(server.issuer)
  await agent.submit(pageOf(await agent.open(`${server.issuer}/admin`)), user)
  return agent
}

const shared = await start()
const { server, store, ids, admins, give } = shared
const agent = await enter(server)
const page = (id = ids.alice) => `${server.issuer}/admin/users/${id}/tokens`
const tokensOf = (id = ids.alice): Promise<readonly PersonalToken[]> => store.listOf(personalTokenKind, id)

/** Sends the form of the page, with what a browser sends. */
async function submit(fields: Readonly<Record<string, string>>, at = page(), by = agent) {
  const body = bodyOf(pageOf(await by.open(at)))
  for (const [name, value] of Object.entries(fields)) body.set(name, value)
  return by.send(at, { method: 'POST', body })
}

t.test('an administrator creates one on a page, which shows it once and stores a hash', async (t) => {
  const made = await submit({ name: ' Nightly ', scope: 'admin:users:read', days: '30' })
  const html = await made.text()
  t.equal(made.status, 200)
  t.equal(made.headers.get('cache-control'), 'no-store')
  const [token = ''] = /lyc_personal_[\w-]{43}/.exec(html) ?? []
  t.not(token, '')
  const [record] = await tokensOf()
  t.match(record, { id: hashSecret(token), name: 'Nightly', scope: ['admin:users:read'], userId: ids.alice })
  t.equal((record?.expiresAt ?? 0) - (record?.createdAt ?? 0), 30 * 86_400)
  const [event] = await store.audit({ since: 0, name: 'personal-token-made', limit: 9 })
  t.match(event, {
    userId: ids.alice,
    by: 'operator',
    facts: { actor: ids.alice, scope: 'admin:users:read' },
  })
  const listed = pageOf(await agent.open(page())).html
  t.match(listed, /Nightly/)
  t.match(listed, 'Never used.')
  await call(server, token, 'GET', '/users')
  await call(server, token, 'POST', '/users', {})
  await call(server, `${token.slice(0, -1)}x`, 'GET', '/users')
  t.match(pageOf(await agent.open(page())).html, /Last used/)
  const everything = [listed, JSON.stringify(await store.contents()), ...server.log, JSON.stringify(event)]
  for (const text of everything) t.notOk(text.includes(token.slice('lyc_personal_'.length, -1)))
})

t.test('the form needs a sign-in of the last minutes, and a form of this page and session', async (t) => {
  const { length } = await tokensOf()
  const sent = { name: 'x', scope: 'admin:users:read', days: '30' }
  for (const csrf of ['', 'x'.repeat(43)]) {
    const response = await submit({ ...sent, csrf })
    t.equal(response.status, 403, csrf)
  }
  const elsewhere = bodyOf(pageOf(await (await enter(server)).open(page())), sent)
  t.equal((await agent.send(page(), { method: 'POST', body: elsewhere })).status, 403, 'of another session')
  const old = await start()
  const hers = await enter(old.server)
  const url = `${old.server.issuer}/admin/users/${old.ids.alice}/tokens`
  const form = bodyOf(pageOf(await hers.open(url)), sent)
  old.server.advance(601)
  t.equal(place(await hers.open(url, { method: 'POST', body: form })), '/login')
  t.equal(place(await hers.open(url)), '/login')
  t.strictSame(await old.store.listOf(personalTokenKind, old.ids.alice), [])
  t.equal((await tokensOf()).length, length)
})

t.test('where a second factor is required, the form asks for it', async (t) => {
  const strict = await start({ admin: { api: 'on', secondFactor: 'required' } })
  const hers = await enter(strict.server)
  const response = await hers.send(`${strict.server.issuer}/admin/users/${strict.ids.alice}/tokens`)
  t.equal(response.status, 403)
  t.match(await response.text(), /\/account\/passkeys/)
})

t.test('what is typed is checked, and shown again', async (t) => {
  const { length } = await tokensOf()
  for (const [fields, said] of [
    [{ name: ' ', scope: 'admin:users:read', days: '30' }, 'Say what the token is for.'],
    [{ name: 'x', days: '30' }, 'Choose at least one thing that the token may do.'],
    [{ name: 'x', scope: 'openid', days: '30' }, 'scope must have scopes of the admin API, and no other'],
    [{ name: 'a\u202eb', scope: 'admin:users:read', days: '30' }, 'name must be visible'],
  ] as const) {
    const response = await submit(fields)
    t.equal(response.status, 400)
    t.match(await response.text(), said)
  }
  t.equal((await submit({ name: 'x', scope: 'admin:users:read', days: '99999' })).status, 303)
  t.equal((await tokensOf()).length, length)
})

t.test('it calls the admin API in the name of its owner, within its scope', async (t) => {
  const { token, id } = await give(ids.alice)
  t.equal((await call(server, token, 'GET', '/users')).status, 200)
  const added = await call(server, token, 'POST', '/users', { email: 'carol@example.test' })
  t.equal(added.status, 201)
  const [event] = await store.audit({ since: 0, name: 'user-invited', limit: 9 })
  t.match(event?.facts, { actor: ids.alice, personal: id })
  t.notOk(Object.hasOwn(event?.facts ?? {}, 'via'))
  const denied = await call(server, token, 'GET', '/clients')
  t.strictSame(errorOf(denied), [403, 'insufficient_scope'])
  t.match(denied.challenge, 'scope="admin:clients:read"')
})

t.test('its use is recorded to the hour', async (t) => {
  const { token, record } = await give(ids.alice, scope, 100_000)
  const usedAt = async () => (await store.find(personalTokenKind, record.id))?.usedAt
  const use = () => call(server, token, 'GET', '/users')
  t.equal(await usedAt(), undefined)
  const first = server.now()
  await use()
  t.equal(await usedAt(), first)
  server.advance(3599)
  await use()
  t.equal(await usedAt(), first)
  server.advance(1)
  await use()
  t.equal(await usedAt(), first + 3600)
})

t.test('no other endpoint takes it for a token', async (t) => {
  const { token } = await give(ids.alice, scopes, 100_000)
  const headers = { authorization: `Bearer ${token}` }
  for (const path of ['/api/oauth/userinfo', '/api/courses']) {
    const response = await fetch(server.issuer + path, { headers })
    t.equal(response.status, 401, path)
    t.equal((await json(response))['error'], 'invalid_token', path)
  }
  const machine = await integrate(server, {
    grantTypes: ['client_credentials'],
    redirectUris: [],
    scope: ['admin:users:read'],
  })
  t.strictSame(await introspect(server, machine, token), { active: false })
  t.equal((await call(server, token, 'GET', '/users')).status, 200, 'it is a valid one')
})

t.test('it makes no tokens and changes no factors', async (t) => {
  const { token, id } = await give(ids.alice, scopes, 100_000)
  const carol = String(
    (await call(server, token, 'POST', '/users', { email: 'dora@example.test' })).body['sub'],
  )
  const own = `/users/${ids.alice}/personal-tokens`
  const { length } = await tokensOf()
  for (const [method, path, body] of [
    ['POST', own, { name: 'x', scope: 'admin:users:read' }],
    ['DELETE', `${own}/${id}`],
    ['POST', `/users/${carol}/password`, { password: 'correct horse battery' }],
    ['POST', `/users/${carol}/links`, { purpose: 'invitation' }],
    ['POST', `/users/${carol}/remove-codes`],
    ['POST', `/users/${carol}/remove-passkeys`],
    ['POST', '/registration-tokens', {}],
  ] as const) {
    const denied = await call(server, token, method, path, body)
    t.strictSame(errorOf(denied), [403, 'access_denied'], path)
    t.equal(
      denied.body['error_description'],
      'a personal token must not make tokens or change how users sign in',
      path,
    )
  }
  t.equal((await tokensOf()).length, length)
  t.equal((await store.find('user', carol))?.passwordHash, undefined)
})

t.test(
  'of each operation that changes something it is said whether a personal token may call it',
  async (t) => {
    // What it makes must not outlive it: a new operation is put into one of these lists.
    const rejected = `createLink createPersonalToken createRegistrationToken removeCodes removePasskeys
    revokePersonalToken setPassword`
    const accepted = `addClient addMember addResource addScope allowClientDocument changeClient changeGroup changeResource
      changeScope changeUpstream changeUser compareClientSecret compareUpstreamSecret createGroup
      createUpstream deleteClient deleteGroup deleteLink deleteResource deleteScope deleteUpstream deleteUser
      denyClientDocument endSession explainToken inviteUser inviteUsers lockClient lockUser profileClient
      refreshClientDocument removeMember replaceClient retireKey revokeClient revokeGrant revokeGrants
      revokeRegistrationToken revokeUser rotateClientSecret rotateKeys sendTestEmail signOutUser unlockClient
      unlockUser`
    const own = await start()
    const { token } = await own.give(own.ids.alice, scopes)
    const { paths } = await json(await fetch(`${own.server.issuer}/api/admin/v1/openapi.json`))
    const found: Record<'rejected' | 'accepted', string[]> = { rejected: [], accepted: [] }
    for (const [path, methods] of Object.entries(
      paths as Record<string, Record<string, { operationId: string }>>,
    ))
      for (const [method, { operationId }] of Object.entries(methods)) {
        if (method === 'get' || method === 'parameters') continue
        const at = path.replace('/api/admin/v1', '').replaceAll(/\{\w+\}/g, 'none')
        const { body } = await call(own.server, token, method.toUpperCase(), at)
        const isRejected = `${body['error_description']}`.startsWith(
          'a personal token must not make tokens or',
        )
        found[isRejected ? 'rejected' : 'accepted'].push(operationId)
      }
    t.equal(found.rejected.toSorted().join(' '), rejected.replaceAll(/\s+/g, ' '))
    t.equal(found.accepted.toSorted().join(' '), accepted.replaceAll(/\s+/g, ' '))
  },
)

t.test('it makes no administrators, and no clients that administer', async (t) => {
  const { token } = await give(ids.alice, scopes, 100_000)
  for (const [method, path, body] of [
    ['POST', `/groups/${admins.id}/members`, { sub: ids.bob }],
    ['DELETE', `/groups/${admins.id}/members/${ids.alice}`],
    ['PATCH', `/groups/${admins.id}`, { name: 'others' }],
    ['PATCH', `/users/${ids.alice}`, { email: 'evil@example.test' }],
    ['POST', `/users/${ids.alice}/lock`],
    ['POST', '/groups', { name: 'below', parent_id: admins.id }],
    ...['Admins', admins.id].map((here) => ['POST', '/upstreams', upstreamGiving(here)] as const),
    [
      'POST',
      '/clients',
      { client_name: 'Heir', grant_types: ['client_credentials'], scope: 'admin:users:read' },
    ],
  ] as const)
    t.strictSame(errorOf(await call(server, token, method, path, body)), [403, 'access_denied'], path)
  const console = await integrate(server, { scope: ['openid', 'admin:users:read'] })
  const rotate = await call(server, token, 'POST', `/clients/${console.id}/secret`, { keep_old_seconds: 0 })
  t.strictSame(errorOf(rotate), [403, 'access_denied'])
  t.match(rotate.body['error_description'], 'a personal token must not change a client')
})

t.test(
  'it ends with the role, the lock and the deletion of its owner, and when it is revoked or old',
  async (t) => {
    const own = await start()
    const { ids } = own
    const tried = async (token: string) => errorOf(await call(own.server, token, 'GET', '/users'))
    const [first, second, short] = [
      await own.give(ids.alice),
      await own.give(ids.alice),
      await own.give(ids.alice, scope, 60),
    ]
    t.strictSame(await tried(short.token), [200, undefined])
    own.server.advance(60)
    t.strictSame(await tried(short.token), [401, 'invalid_token'], 'expired')
    await addToGroup(own.store, own.admins, ids.bob, own.operator())
    const ofBob = await enter(own.server, bob)
    const url = `${own.server.issuer}/admin/users/${ids.alice}/tokens`
    const form = bodyOf(pageOf(await ofBob.open(url)), { revoke: second.id })
    t.equal((await ofBob.send(url, { method: 'POST', body: form })).status, 303)
    t.strictSame(await tried(second.token), [401, 'invalid_token'], 'another administrator revoked it')
    t.equal((await own.store.audit({ since: 0, name: 'personal-token-revoked', limit: 9 })).length, 1)
    await removeFromGroup(own.store, own.admins, ids.alice, own.operator())
    t.strictSame(await tried(first.token), [403, 'access_denied'], 'its owner is no administrator')
    await addToGroup(own.store, own.admins, ids.alice, own.operator())
    t.strictSame(await tried(first.token), [200, undefined])
    await own.store.transact('user', ids.alice, (user) => lockUser(user as never, own.operator()))
    t.strictSame(await tried(first.token), [401, 'invalid_token'], 'locked')
    await own.store.transact('user', ids.alice, (user) => unlockUser(user as never, own.operator()))
    t.strictSame(await tried(first.token), [401, 'invalid_token'], 'a lock ends it for good')
    const last = await own.give(ids.bob)
    t.strictSame(await tried(last.token), [200, undefined])
    await own.store.transact('user', ids.bob, () => accept(undefined, removeUser(ids.bob, own.server.now())))
    t.strictSame(await tried(last.token), [401, 'invalid_token'], 'deleted')
  },
)

t.test('a token of a locked user that a backup brought back is not valid', async (t) => {
  const own = await start()
  await own.store.transact('user', own.ids.alice, (user) => lockUser(user as never, own.operator()))
  const { token } = await own.give(own.ids.alice)
  t.strictSame(errorOf(await call(own.server, token, 'GET', '/users')), [401, 'invalid_token'])
})

t.test('a change is not written if the token was revoked before it is', async (t) => {
  const own = await start()
  const { token, record } = await own.give(own.ids.alice)
  const { store } = own.server.deps
  const { write } = store
  let isRevoked = false
  // The last moment before the transaction: the token was verified by then.
  Object.assign(store, {
    write: async (...writes: readonly Write[]) => {
      if (!isRevoked) await write(remove(personalTokenKind, record.id))
      isRevoked = true
      return write(...writes)
    },
  })
  const denied = await call(own.server, token, 'POST', '/users', { email: 'eve@example.test' })
  t.ok(isRevoked)
  t.strictSame(errorOf(denied), [403, 'access_denied'])
  t.equal(await own.store.find('userByLogin', 'eve@example.test'), undefined)
})

t.test('by API its owner creates one after a recent sign-in, with what the access token has', async (t) => {
  const own = await start()
  const { server } = own
  const console = await integrate(server, { consent: 'skip', scope: ['openid', ...scopes] })
  const browser = await signedIn(server, console)
  const tokenFor = async (asked: string) => {
    const { code = '' } = sentAway(await ask(server, console, { scope: asked }, browser))
    return ((await (await exchange(server, console, code)).json()) as Tokens).access_token
  }
  const access = await tokenFor('openid admin:users:read admin:users:write')
  const path = `/users/${own.ids.alice}/personal-tokens`
  const create = (body: object, at = path, by = access) => call(server, by, 'POST', at, body)
  const made = await create({ name: 'CI', scope: 'admin:users:read' })
  t.equal(made.status, 201)
  t.match(made.body, { token: /^lyc_personal_/, scope: 'admin:users:read', name: 'CI', sub: own.ids.alice })
  t.equal(Number(made.body['expires_at']) - Number(made.body['created_at']), 90 * 86_400)
  const listed = await call(server, access, 'GET', path)
  t.notMatch(JSON.stringify(listed.body), 'lyc_personal_')
  for (const [body, error] of [
    [{ name: 'CI', scope: 'admin:keys:read' }, [403, 'access_denied']],
    [{ name: 'CI', scope: 'openid' }, [400, 'invalid_scope']],
    [{ name: 'CI', scope: '' }, [400, 'invalid_scope']],
    [{ name: 'CI', scope: 'admin:users:read "' }, [400, 'invalid_scope']],
    [{ name: '', scope: 'admin:users:read' }, [400, 'invalid_request']],
    [{ name: 'CI', scope: 'admin:users:read', expires_in: 0 }, [400, 'invalid_request']],
    [{ name: 'CI', scope: 'admin:users:read', expires_in: 366 * 86_400 + 1 }, [400, 'invalid_request']],
  ] as const)
    t.strictSame(errorOf(await create(body)), error, JSON.stringify(body))
  const ofBob = `/users/${own.ids.bob}/personal-tokens`
  t.strictSame(errorOf(await create({ name: 'x', scope: 'admin:users:read' }, ofBob)), [403, 'access_denied'])
  const machine = await integrate(server, {
    grantTypes: ['client_credentials'],
    redirectUris: [],
    scope: ['admin:users:write'],
  })
  const response = await fetch(`${server.issuer}/api/oauth/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${machine.id}:${machine.secret}`)}` },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
  })
  const alone = String((await json(response))['access_token'])
  t.strictSame(
    errorOf(await create({ name: 'x', scope: 'admin:users:write' }, ofBob, alone)),
    [403, 'access_denied'],
    'no user',
  )
  server.advance(601)
  const late = await create({ name: 'CI', scope: 'admin:users:read' })
  t.strictSame(errorOf(late), [401, 'insufficient_user_authentication'])
  t.match(late.challenge, 'max_age="600"')
  t.equal((await own.store.listOf(personalTokenKind, own.ids.alice)).length, 1)
})

t.test('a user has at most fifty that have not expired', async (t) => {
  const own = await start()
  for (let count = 0; count < 50; count += 1) await own.give(own.ids.alice, scope, count < 49 ? 3600 : 1)
  const hers = await enter(own.server)
  const url = `${own.server.issuer}/admin/users/${own.ids.alice}/tokens`
  const sent = { name: 'x', scope: 'admin:users:read', days: '30' }
  const create = async () => {
    const body = bodyOf(pageOf(await hers.open(url)), sent)
    return (await hers.send(url, { method: 'POST', body })).status
  }
  t.equal(await create(), 409)
  own.server.advance(1)
  t.equal(await create(), 200)
})

t.test('wrong ones are limited as wrong access tokens are', async (t) => {
  const own = await start({ rateLimits: 'on', requestsPerMinute: { token: 3 } })
  const statuses = []
  for (let count = 0; count < 5; count += 1)
    statuses.push((await call(own.server, `lyc_personal_${'x'.repeat(43)}`, 'GET', '/users')).status)
  t.strictSame(statuses, [401, 401, 401, 429, 429])
})

t.test('commands take it from a variable, list tokens and revoke them', async (t) => {
  const { token, id } = await give(ids.alice)
  const environment = { LYCHGATE_TOKEN: ` ${token}\n` }
  const at = ['--server', server.issuer]
  const listed = await runHere(['user', 'tokens', 'alice', ...at], { environment })
  t.equal(listed.code, 0, listed.stderr)
  t.match(listed.stdout, new RegExp(`${id} +Backup +admin:users:read admin:users:write +used`))
  t.notMatch(listed.stdout, token)
  const denied = await runHere(['user', 'revoke-token', 'alice', id, '--yes', ...at], { environment })
  t.equal(denied.code, 1)
  t.match(denied.stderr, 'a personal token must not')
  const none = await runHere(['user', 'list', ...at])
  t.equal(none.code, 64)
  t.match(none.stderr, 'LYCHGATE_TOKEN')
  const explained = await runHere(['explain', token, ...at], {
    environment: { LYCHGATE_TOKEN: (await give(ids.alice, ['admin:audit:read'])).token },
  })
  t.match(explained.stdout, /^personal token, active/)
  t.match(explained.stdout, /alice/)
})

t.test('the copy of the data and the activity of its owner have it', async (t) => {
  const account = `${server.issuer}/account`
  const hers = await enter(server)
  const form = pageOf(await hers.open(`${account}/privacy`))
  const text = await (await hers.send(form.url, { method: 'POST', body: bodyOf(form) })).text()
  const copy = JSON.parse(text) as { personal_tokens?: Record<string, unknown>[] }
  const nightly = copy.personal_tokens?.find(({ name }) => name === 'Nightly')
  t.match(nightly, { scope: ['admin:users:read'], last_used_at: /T/ })
  t.notMatch(text, 'lyc_personal_')
  t.match(pageOf(await hers.open(`${account}/activity`)).html, 'You created a personal token')
})
