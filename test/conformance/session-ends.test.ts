import t from 'tap'
import { hashSecret } from '../../src/domain/secret.ts'
import { ask, integrate, place, sentAway, signedIn } from '../helpers/authorization.ts'
import { startServer } from '../helpers/server.ts'
import type { UserAgent } from '../helpers/user-agent.ts'

const [idle, absolute] = [100, 250]
const server = await startServer(t, {
  lifetimes: { sessionIdleSeconds: idle, sessionAbsoluteSeconds: absolute },
})
// Nothing is asked of a person who is signed in: a code or the sign-in page is the whole answer.
const client = await integrate(server, { consent: 'skip' })

const silent = async (agent: UserAgent) => sentAway(await ask(server, client, { prompt: 'none' }, agent))
const idOf = (agent: UserAgent) => hashSecret(agent.cookies.get('lychgate_session') ?? '')

t.test(
  '[rfc6749-3.1-owner-authenticated-first] a login that was not used for its idle time leads to the sign-in page',
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
  '[rfc6749-3.1-owner-authenticated-first] a login ends after its absolute time, however often it is used',
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
  '[rfc6749-3.1-owner-authenticated-first] a login whose idle end was moved past its absolute end ends at the absolute one',
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
  '[rfc6749-3.1-owner-authenticated-first] an absolute time below the idle one ends a login all the same',
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
