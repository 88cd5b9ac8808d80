import t, { type Test } from 'tap'
import { consentKind, endConnection } from '../../src/domain/connections.ts'
import { endSessionsOf, update, type Write } from '../../src/domain/decision.ts'
import { isGrantAlive } from '../../src/domain/grant.ts'
import { interactionKind } from '../../src/domain/interaction.ts'
import type { User } from '../../src/domain/model.ts'
import { hashSecret } from '../../src/domain/secret.ts'
import type { Store } from '../../src/storage/store.ts'
import { systemRandom } from '../../src/system/system.ts'
import { makeLink } from '../../src/users/one-time-links.ts'
import { lockUser, unlockUser } from '../../src/users/rules/user.ts'
import { ask, integrate, pageOf, place, sentAway, signedIn } from '../helpers/authorization.ts'
import { executable } from '../helpers/command.ts'
import { exchange, obtainCode, obtainTokens, refresh } from '../helpers/flow.ts'
import { alice, startServer, type TestServer } from '../helpers/server.ts'
import type { UserAgent } from '../helpers/user-agent.ts'
import { introspect, isAlive } from '../helpers/wire.ts'

const [idle, absolute] = [100, 250]
const server = await startServer(t, {
  lifetimes: { sessionIdleSeconds: idle, sessionAbsoluteSeconds: absolute },
})
// No page asks a signed-in user: the result is a code or the sign-in page.
const client = await integrate(server, { consent: 'skip' })

const silent = async (agent: UserAgent) => sentAway(await ask(server, client, { prompt: 'none' }, agent))
const idOf = (agent: UserAgent) => hashSecret(agent.cookie('session') ?? '')

t.test(
  '[rfc6749-3.1-owner-authenticated-first] a session that was idle for too long leads to the sign-in page',
  async (t) => {
    const [at, before] = [await signedIn(server, client), await signedIn(server, client)]
    server.advance(idle - 5)
    t.match(await silent(before), { code: /./ })
    server.advance(5)
    t.equal((await silent(at))['error'], 'login_required')
    t.equal(place(await ask(server, client, {}, at)), '/login')
    server.advance(idle - 10)
    t.match(await silent(before), { code: /./ }, 'use moved the end of the other one')
  },
)

t.test(
  '[rfc6749-3.1-owner-authenticated-first] a session ends at its absolute expiry, however often it is used',
  async (t) => {
    const agent = await signedIn(server, client)
    for (const seconds of [80, 80, 85]) {
      server.advance(seconds)
      t.match(await silent(agent), { code: /./ })
    }
    const stored = await server.deps.store.find('session', idOf(agent))
    t.equal(stored?.idleExpiresAt, stored?.expiresAt, 'use moves the idle end no further than that')
    server.advance(absolute - 245)
    t.equal((await silent(agent))['error'], 'login_required')
    t.equal(place(await ask(server, client, {}, agent)), '/login')
  },
)

t.test(
  '[rfc6749-3.1-owner-authenticated-first] a session whose idle expiry is later than its absolute expiry ends at the absolute one',
  async (t) => {
    const agent = await signedIn(server, client)
    const [sessionId, idleExpiresAt] = [idOf(agent), server.now() + 10 * absolute]
    await server.deps.store.write({ op: 'extendSession', sessionId, idleExpiresAt })
    server.advance(absolute - 5)
    t.match(await silent(agent), { code: /./ })
    server.advance(5)
    t.equal((await silent(agent))['error'], 'login_required')
  },
)

t.test(
  '[rfc6749-3.1-owner-authenticated-first] an absolute lifetime shorter than the idle one ends a session too',
  async (t) => {
    const brief = await startServer(t, {
      lifetimes: { sessionIdleSeconds: 1000, sessionAbsoluteSeconds: 30 },
    })
    const own = await integrate(brief, { consent: 'skip' })
    const agent = await signedIn(brief, own)
    const stored = await brief.deps.store.find('session', idOf(agent))
    t.equal(stored?.idleExpiresAt, stored?.expiresAt)
    t.match(sentAway(await ask(brief, own, { prompt: 'none' }, agent)), { code: /./ })
    brief.advance(30)
    t.equal(sentAway(await ask(brief, own, { prompt: 'none' }, agent))['error'], 'login_required')
  },
)

/** Runs an action on the user between the decision of a request and its write. */
async function beforeWrite(
  t: Test,
  { deps: { store } }: TestServer,
  end: (store: Store) => Promise<unknown>,
) {
  const { write, transact } = store
  let isDue = true
  const once = async () => {
    if (!isDue) return
    isDue = false
    Object.assign(store, { write, transact })
    await end(store)
  }
  const isGrant = (writes: readonly Write[]) => writes.some(({ op }) => op === 'insertGrant')
  const delayed: Pick<Store, 'write' | 'transact'> = {
    write: async (...writes) => {
      if (isGrant(writes)) await once()
      return write(...writes)
    },
    transact: async (kind, key, decide) => {
      if (kind === interactionKind || kind === 'sessionConsent') await once()
      return transact(kind, key, decide)
    },
  }
  Object.assign(store, delayed)
  t.teardown(() => Object.assign(store, { write, transact }))
}

const userIdOf = async (agent: UserAgent) =>
  (await server.deps.store.find('session', idOf(agent)))?.userId ?? ''
const lock = (userId: string) => (store: Store) =>
  store.transact('user', userId, (user) => lockUser(user as User, { by: 'operator', at: server.now() }))
const unlock = (userId: string) =>
  server.deps.store.transact('user', userId, (user) =>
    unlockUser(user as User, { by: 'operator', at: server.now() }),
  )
const grantsOf = async (userId: string) =>
  (await server.deps.store.listOf('grant', userId)).filter((grant) => isGrantAlive(grant, server.now()))

const inProcess = executable === undefined ? {} : { skip: 'the store of another process cannot be delayed' }

t.test('a user who is locked during a request gets no grant', inProcess, async (t) => {
  const agent = await signedIn(server, client)
  const userId = await userIdOf(agent)
  await beforeWrite(t, server, lock(userId))
  t.equal((await silent(agent))['error'], 'login_required')
  await unlock(userId)
  t.strictSame(await grantsOf(userId), [], 'also once the user is unlocked')
  t.equal((await silent(agent))['error'], 'login_required')
})

t.test('a session that ends during a request gives no grant', inProcess, async (t) => {
  const agent = await signedIn(server, client)
  const userId = await userIdOf(agent)
  const before = (await grantsOf(userId)).length
  await beforeWrite(t, server, (store) => store.write(endSessionsOf(userId, 0)))
  t.equal(place(await ask(server, client, {}, agent)), '/login')
  t.equal((await grantsOf(userId)).length, before)
})

t.test('an app that is disconnected during a prompt=none request gets no grant', inProcess, async (t) => {
  const portal = await integrate(server)
  const agent = await signedIn(server, portal)
  const userId = await userIdOf(agent)
  await obtainCode(server, portal, { agent })
  const asks = async () => sentAway(await ask(server, portal, { prompt: 'none' }, agent))
  t.match(await asks(), { code: /./ })
  const context = { by: 'user', at: server.now(), from: '127.0.0.1', userId } as const
  await beforeWrite(t, server, (store) => store.write(...endConnection({ clientId: portal.id }, context)))
  t.equal((await asks())['error'], 'consent_required')
  const left = await grantsOf(userId)
  t.notOk(left.some(({ clientId }) => clientId === portal.id))
})

t.test('consent is no use to a user who is locked, or signed out, during a request', inProcess, async (t) => {
  const portal = await integrate(server)
  const agent = await signedIn(server, portal)
  const userId = await userIdOf(agent)
  await obtainCode(server, portal, { agent })
  const before = (await grantsOf(userId)).length
  const asks = async () => sentAway(await ask(server, portal, { prompt: 'none' }, agent))
  await beforeWrite(t, server, (store) => store.write(endSessionsOf(userId, 0)))
  t.equal((await asks())['error'], 'login_required', 'signed out')
  t.equal((await grantsOf(userId)).length, before)
  await obtainCode(server, portal, { agent })
  await beforeWrite(t, server, lock(userId))
  t.equal((await asks())['error'], 'login_required', 'locked')
  await unlock(userId)
  t.strictSame(await grantsOf(userId), [], 'also once the user is unlocked')
})

t.test(
  'a consent page submitted after its user was locked leads to the sign-in page',
  inProcess,
  async (t) => {
    const portal = await integrate(server)
    const agent = await signedIn(server, portal)
    const userId = await userIdOf(agent)
    const consent = pageOf(await ask(server, portal, {}, agent))
    t.equal(new URL(consent.url).pathname, '/consent')
    await beforeWrite(t, server, lock(userId))
    t.equal(place(await agent.submit(consent, { decision: 'approve' })), '/login')
    await unlock(userId)
    t.strictSame(await grantsOf(userId), [])
    t.strictSame(await server.deps.store.listOf(consentKind, userId), [], 'nothing is remembered')
  },
)

t.test('more is approved only on the consent that the page showed', inProcess, async (t) => {
  const portal = await integrate(server)
  const agent = await signedIn(server, portal)
  const userId = await userIdOf(agent)
  await obtainCode(server, portal, { agent, fields: { scope: 'openid' } })
  const consent = pageOf(await ask(server, portal, { scope: 'openid courses:read' }, agent))
  const context = { by: 'user', at: server.now(), from: '127.0.0.1', userId } as const
  await beforeWrite(t, server, (store) => store.write(...endConnection({ clientId: portal.id }, context)))
  t.equal(place(await agent.submit(consent, { decision: 'approve' })), '/consent')
  const left = await grantsOf(userId)
  t.notOk(left.some(({ clientId }) => clientId === portal.id))
})

t.test(
  'a locked user with a remaining session gets the sign-in page, not a redirect loop',
  inProcess,
  async (t) => {
    for (const asking of [client, await integrate(server)]) {
      const agent = await signedIn(server, client)
      const userId = await userIdOf(agent)
      const user = await server.deps.store.find('user', userId)
      if (user === undefined) throw new Error('alice is there')
      await server.deps.store.write(update('user', { ...user, lockedAt: server.now() }))
      t.equal(place(await ask(server, asking, {}, agent)), '/login')
      t.equal(await server.deps.store.find('session', idOf(agent)), undefined)
      await unlock(userId)
    }
  },
)

t.test('no token of a locked user works, though its grant was not revoked', async (t) => {
  const code = await obtainCode(server, client)
  const second = await obtainTokens(server, client)
  const userId = (await server.deps.store.find('userByLogin', alice.username))?.id ?? ''
  const user = await server.deps.store.find('user', userId)
  if (user === undefined) throw new Error('alice is there')
  await server.deps.store.write(update('user', { ...user, lockedAt: server.now() }))
  t.match(await (await exchange(server, client, code)).json(), { error: 'invalid_grant' })
  t.match(await (await refresh(server, client, second.refresh_token)).json(), { error: 'invalid_grant' })
  t.notOk(await isAlive(server, second.access_token))
  t.match(await introspect(server, client, second.access_token), { active: false })
  await server.deps.store.write(update('user', user))
})

t.test('no one-time link is made for a user who is locked in between', async (t) => {
  const user = await server.deps.store.find('userByLogin', alice.username)
  if (user === undefined) throw new Error('alice is there')
  await server.deps.store.write(update('user', { ...user, lockedAt: server.now() }))
  const whom = { purpose: 'password-reset', userId: user.id } as const
  const made = makeLink({ ...server.deps, random: systemRandom }, whom, { by: 'operator', at: server.now() })
  await t.rejects(made, { code: 'access_denied' })
  await server.deps.store.write(update('user', user))
})
