/** The admin API about the grants and sessions of all users, and what ends all grants to a client. */
import t from 'tap'
import { consentKind } from '../../src/domain/connections.ts'
import { put, update } from '../../src/domain/decision.ts'
import type { Client, Session } from '../../src/domain/model.ts'
import { integrate, signedIn } from '../helpers/authorization.ts'
import { obtainTokens, postAs, refresh, type TestClient } from '../helpers/flow.ts'
import { alice, bob, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { json } from '../helpers/wire.ts'

const server = await startServer(t, { admin: { api: 'on' } })
const { store, clock } = server.deps
const scope = ['admin:users:read', 'admin:users:write', 'admin:clients:write']
const machine = await integrate(server, { grantTypes: ['client_credentials'], redirectUris: [], scope })
const tokenFor = async (client: TestClient) => {
  const fields = { grant_type: 'client_credentials' }
  return String((await json(await postAs(server, client, '/api/oauth/token', fields)))['access_token'])
}
const token = await tokenFor(machine)

async function call(method: string, path: string, key?: string) {
  const response = await fetch(`${server.issuer}/api/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, ...(key !== undefined && { 'idempotency-key': key }) },
  })
  const body = (await response.json()) as Record<string, unknown> & {
    readonly items?: readonly Record<string, unknown>[]
    readonly next?: string
  }
  return { status: response.status, body, headers: response.headers }
}

/** Every item of a list, by pages of a few. */
async function everyItem(path: string, limit = 2): Promise<readonly Record<string, unknown>[]> {
  const items: Record<string, unknown>[] = []
  let next = ''
  do {
    const page = await call('GET', `${path}${path.includes('?') ? '&' : '?'}limit=${limit}${next}`)
    t.equal(page.status, 200, JSON.stringify(page.body))
    items.push(...(page.body.items ?? []))
    next = page.body.next === undefined ? '' : `&after=${page.body.next}`
  } while (next !== '')
  return items
}

const userIds = {
  alice: (await store.find('userByLogin', 'alice'))?.id ?? '',
  bob: (await store.find('userByLogin', 'bob'))?.id ?? '',
}
const [one, other] = [await integrate(server), await integrate(server)]
const approve = async (client: TestClient, user: typeof alice) => {
  // The ids of grants begin with the second.
  server.advance(1)
  const agent = new UserAgent(server.issuer)
  return obtainTokens(server, client, { agent, user, fields: { scope: 'openid' } })
}

t.test(
  'grants are listed in the order in which they were approved: of all, of a user, to a client, by state',
  async (t) => {
    await approve(one, alice)
    await approve(one, bob)
    await approve(other, alice)
    const grantsOf = async (query: string) =>
      (await everyItem(`/grants${query}`)).map(({ sub, client_id: client, state }) => [sub, client, state])
    const [a1, b1, a2] = [
      [userIds.alice, one.id, 'active'],
      [userIds.bob, one.id, 'active'],
      [userIds.alice, other.id, 'active'],
    ]
    const own = [undefined, machine.id, 'active']
    const all = await grantsOf('')
    t.strictSame(
      all.filter(([sub]) => sub !== undefined),
      [a1, b1, a2],
    )
    t.strictSame(all[0], own, 'that of a client that acts for itself')
    t.strictSame(await grantsOf(`?sub=${userIds.alice}`), [a1, a2])
    t.strictSame(await grantsOf(`?client_id=${one.id}`), [a1, b1])
    t.strictSame(await grantsOf(`?client_id=${one.id}&sub=${userIds.bob}&state=active`), [b1])
    t.strictSame(await grantsOf('?state=revoked'), [])
    for (const query of ['?sub=none', '?client_id=none']) t.strictSame(await grantsOf(query), [], query)
    t.equal((await call('GET', '/grants?state=gone')).status, 400)
  },
)

t.test('sessions of all users are listed until they end', async (t) => {
  await signedIn(server, one, bob)
  const listed = await everyItem('/sessions')
  const stored = (await Promise.all(Object.values(userIds).map((id) => store.listOf('session', id)))).flat()
  const idsOf = (sessions: readonly Session[]) => sessions.map(({ id }) => id).toSorted()
  t.strictSame(
    listed.map(({ session_id: id }) => id),
    idsOf(stored),
  )
  const bobs = await store.listOf('session', userIds.bob)
  t.strictSame(
    listed.filter(({ sub }) => sub === userIds.bob).map(({ session_id: id }) => id),
    idsOf(bobs),
  )
  const [first] = bobs as [Session]
  await store.write({ op: 'extendSession', sessionId: first.id, idleExpiresAt: clock() })
  t.notOk((await everyItem('/sessions')).some(({ session_id: id }) => id === first.id))
})

t.test('every grant to a client is revoked, with its consents, and those to others stay', async (t) => {
  const target = await integrate(server, {
    grantTypes: ['authorization_code', 'refresh_token', 'client_credentials'],
    scope: ['openid', 'courses:read'],
  })
  const tokens = [await approve(target, alice), await approve(target, bob)]
  const kept = await approve(other, bob)
  const own = await tokenFor(target)
  const consent = { userId: userIds.bob, clientId: other.id, allowed: [], grantedAt: clock() }
  const remembered = async (clientId: string) => (await store.someOfClient(consentKind, clientId, 9)).length
  await store.write(
    put(consentKind, consent),
    put(consentKind, { ...consent, clientId: target.id }),
    put(consentKind, { ...consent, clientId: target.id, userId: 'without a grant' }),
  )
  const revoke = () => call('POST', `/clients/${target.id}/revoke`, 'once')
  const done = await revoke()
  t.strictSame([done.status, done.body], [200, { client_id: target.id, revoked: 3 }])
  for (const { refresh_token: sent } of tokens)
    t.strictSame(await json(await refresh(server, target, sent)).then(({ error }) => error), 'invalid_grant')
  const introspected = await postAs(server, other, '/api/oauth/introspect', { token: own })
  t.notMatch(await introspected.json(), { active: true })
  t.equal((await refresh(server, other, kept.refresh_token)).status, 200)
  t.strictSame([await remembered(target.id), await remembered(other.id)], [0, 2])
  const states = (await everyItem(`/grants?client_id=${target.id}`)).map(({ state }) => state)
  t.strictSame(states, ['revoked', 'revoked', 'revoked'])
  const events = await store.audit({ since: 0, clientId: target.id, name: 'revocation', limit: 9 })
  t.strictSame(
    events.map(({ userId }) => userId ?? '').toSorted(),
    ['', userIds.alice, userIds.bob, 'without a grant'].toSorted(),
    'one event a user, and one of a grant without a user',
  )
  for (const { facts } of events) t.match(facts, { actor: machine.id, request: /^[\w-]{36}$/ })
  const replayed = await revoke()
  t.strictSame([replayed.headers.get('idempotent-replayed'), replayed.body], ['true', done.body])
  t.match((await call('POST', `/clients/${target.id}/revoke`)).body, { revoked: 0 })
  t.match(await call('POST', '/clients/none/revoke'), { status: 404 })
})

t.test('the grants to a locked client do not come back when it is unlocked', async (t) => {
  const target = await integrate(server)
  const { refresh_token: sent } = await approve(target, alice)
  const setLock = (lockedAt: number | undefined) =>
    store.transact('client', target.id, (found) => {
      const { lockedAt: _, ...client } = found as Client
      return { result: undefined, writes: [update('client', { ...client, ...(lockedAt && { lockedAt }) })] }
    })
  await setLock(clock())
  t.match((await call('POST', `/clients/${target.id}/revoke`)).body, { revoked: 1 })
  await setLock(undefined)
  t.equal((await refresh(server, target, sent)).status, 400)
})

t.test('who may not change a client cannot revoke its grants', async (t) => {
  const scopes = ['openid', 'admin:keys:write']
  const target = await integrate(server, { scope: scopes })
  await approve(target, alice)
  t.match(await call('POST', `/clients/${target.id}/revoke`), {
    status: 403,
    body: { error: 'access_denied' },
  })
  t.match(await everyItem(`/grants?client_id=${target.id}`), [{ state: 'active' }])
})
