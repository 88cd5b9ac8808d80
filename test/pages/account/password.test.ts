import t, { type Test } from 'tap'
import { update } from '../../../src/domain/decision.ts'
import { pageOf, place } from '../../helpers/authorization.ts'
import { obtainTokens, refresh, register } from '../../helpers/flow.ts'
import { alice, bob, startServer, type TestServer } from '../../helpers/server.ts'
import { type Page, UserAgent } from '../../helpers/user-agent.ts'
import { assertRejected, isAlive } from '../../helpers/wire.ts'
import { doneOf, enter, textOf } from './sections.ts'

const good = 'seven green umbrellas'

async function form(server: TestServer, agent = new UserAgent(server.issuer), user = alice) {
  return { agent, page: await enter(server, agent, '/password', user) }
}

const change = (agent: UserAgent, page: Page, current: string, password: string, rest = {}) =>
  agent.submit(page, { current, password, repeated: password, ...rest }, page.forms[0]).then(pageOf)

/** Whether a user can sign in with this password. */
async function opens(server: TestServer, username: string, password: string): Promise<boolean> {
  const agent = new UserAgent(server.issuer)
  const page = await enter(server, agent, '/apps', { username, password })
  return new URL(page.url).pathname === '/account/apps'
}

const problemOf = ({ html }: Page) => /role="alert">([^<]*)</.exec(html)?.[1]

t.test('a new password replaces the old one and signs every other browser out', async (t) => {
  const server = await startServer(t)
  const elsewhere = new UserAgent(server.issuer)
  await enter(server, elsewhere, '/apps')
  const client = await register(server)
  const tokens = await obtainTokens(server, client)
  const { agent, page } = await form(server)
  const after = await change(agent, page, alice.password, good)
  t.equal(doneOf(after), 'Your password is changed, and every other browser is signed out.')
  t.equal(place(await agent.open(`${server.issuer}/account/apps`)), '/account/apps', 'this one stays')
  t.equal(place(await elsewhere.open(`${server.issuer}/account/apps`)), '/login')
  t.notOk(await opens(server, 'alice', alice.password))
  t.ok(await opens(server, 'alice', good))
  t.ok(await isAlive(server, tokens.access_token), 'apps are another matter')
  const user = await server.deps.store.find('userByLogin', 'alice')
  t.match(user?.passwordHash, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
  const events = await server.deps.store.audit({ since: 0, name: 'user-password-changed', limit: 9 })
  t.strictSame(
    events.map(({ by, userId }) => [by, userId]),
    [['user', user?.id]],
  )
})

t.test('[rfc9700-4.14.2-revoke-on-event] with one checkbox a new password revokes every app', async (t) => {
  const server = await startServer(t)
  const client = await register(server)
  const mine = await obtainTokens(server, client)
  const theirs = await obtainTokens(server, client, { user: bob })
  const { agent, page } = await form(server)
  const after = await change(agent, page, alice.password, good, { disconnect: '1' })
  t.match(doneOf(after), /every app is disconnected\.$/)
  await assertRejected(t, await refresh(server, client, mine.refresh_token), 'invalid_grant')
  t.notOk(await isAlive(server, mine.access_token))
  t.ok(await isAlive(server, theirs.access_token), 'those of others stay')
  const [event] = await server.deps.store.audit({ since: 0, name: 'revocation', limit: 9 })
  t.equal(event?.clientId, client.id)
  t.equal(event?.facts['rule'], 'rfc9700-4.14.2-revoke-on-event')
})

t.test('an invalid new password is rejected with the reason, and nothing changes', async (t) => {
  const server = await startServer(t)
  const { agent, page } = await form(server)
  const rejected: readonly (readonly [string, string, string, RegExp])[] = [
    [alice.password, 'short', 'short', /^A password has 8 to 256 characters/],
    [alice.password, 'x'.repeat(257), 'x'.repeat(257), /^A password has 8 to 256 characters/],
    [alice.password, 'password123', 'password123', /^That password is too common/],
    [alice.password, good, `${good}s`, /^The two new passwords are not the same/],
    ['not my password', good, good, /^That is not your current password/],
    ['', good, good, /^That is not your current password/],
  ]
  for (const [current, password, repeated, problem] of rejected) {
    const after = await change(agent, page, current, password, { repeated })
    t.equal(after.status, 400)
    t.match(problemOf(after), problem)
    t.notMatch(after.html, good, 'what was typed does not come back')
  }
  t.ok(await opens(server, 'alice', alice.password))
  const failed = await server.deps.store.audit({ since: 0, name: 'sign-in-failed', limit: 9 })
  t.equal(failed.length, 2, 'its owner can see the guess')
})

t.test('guesses at the current password are throttled like those at the sign-in', async (t) => {
  const server = await startServer(t, { signInThrottle: { failuresPerAccountAndPrefix: 3 } })
  const { agent, page } = await form(server)
  for (let guess = 0; guess < 3; guess += 1) t.equal((await change(agent, page, 'a guess', good)).status, 400)
  const slowed = await change(agent, page, alice.password, good)
  t.equal(slowed.status, 429)
  t.equal(Number(slowed.headers.get('retry-after')) > 800, true)
  t.match(problemOf(slowed), /^Too many failed attempts\. Try again in 15 minutes/)
  server.advance(901)
  const stale = await change(agent, page, alice.password, good)
  t.equal(new URL(stale.url).pathname, '/login', 'and by then the sign-in is not recent')
})

t.test('a user who signed in more than ten minutes ago must sign in again first', async (t) => {
  const server = await startServer(t)
  const { agent, page } = await form(server)
  server.advance(590)
  t.equal(place(await agent.open(page.url)), '/account/password', 'almost ten minutes are fine')
  server.advance(11)
  const again = pageOf(await agent.open(page.url))
  t.equal(new URL(again.url).pathname, '/login')
  t.match(textOf(again), /Confirm that it is you/)
  const asked = await change(agent, page, alice.password, good)
  t.equal(new URL(asked.url).pathname, '/login', 'nor does the form go through')
  const back = pageOf(await agent.submit(asked, { username: 'alice', password: alice.password }))
  t.equal(new URL(back.url).pathname, '/account/password')
  t.match(doneOf(back), /^You had to sign in first/)
  t.equal((await change(agent, page, alice.password, good)).status, 403, 'an old page is out of date')
  t.match(doneOf(await change(agent, back, alice.password, good)), /^Your password is changed/)
})

t.test('a user without a password chooses their first', async (t) => {
  const server = await startServer(t)
  const { agent, page } = await form(server)
  const { store } = server.deps
  const user = await store.find('userByLogin', 'alice')
  if (user === undefined) throw new Error('nobody')
  const { passwordHash: _, ...without } = user
  await store.write(update('user', without))
  const first = pageOf(await agent.open(page.url))
  t.match(textOf(first), /Choose a password/)
  t.strictSame(
    first.forms[0]?.fields.map(({ name }) => name).filter((name) => name === 'current'),
    [],
  )
  t.match(doneOf(await change(agent, first, '', good)), /^Your password is changed/)
  t.ok(await opens(server, 'alice', good))
})

t.test(
  'of two tabs that change it at the same time, the second needs the password set by the first',
  async (t) => {
    const server = await startServer(t)
    const { agent, page } = await form(server)
    const both = await Promise.all(
      [good, `${good} again`].map((password) => change(agent, page, alice.password, password)),
    )
    t.equal(both.filter((each) => doneOf(each) !== undefined).length, 1)
    const other = both.find((each) => doneOf(each) === undefined)
    t.match(other && problemOf(other), /somewhere else in the meantime|not your current password/)
    await assertOne(t, server, [good, `${good} again`])
  },
)

async function assertOne(t: Test, server: TestServer, passwords: readonly string[]): Promise<void> {
  const working = []
  for (const password of passwords) if (await opens(server, 'alice', password)) working.push(password)
  t.equal(working.length, 1)
}
