import t from 'tap'
import { insert } from '../../src/domain/decision.ts'
import { hashSecret } from '../../src/domain/secret.ts'
import { createUser } from '../../src/users/rules/user.ts'
import { ask, integrate, pageOf, pick, sentAway, signedIn, title } from '../helpers/authorization.ts'
import { claimsOf, exchange, type Tokens } from '../helpers/flow.ts'
import { alice, bob, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'

const server = await startServer(t)
const portal = await integrate(server, { consent: 'skip' })
const { store, random } = server.deps
const select = { prompt: 'select_account' }

async function subOf(parameters: Record<string, string>): Promise<unknown> {
  const tokens = (await (await exchange(server, portal, parameters['code'] ?? '')).json()) as Tokens
  return claimsOf(tokens.id_token)['sub']
}

async function idOf(name: string): Promise<string> {
  return (await store.find('userByLogin', name))?.id ?? ''
}

/** Signs another user in in the same browser. */
async function alsoSignIn(agent: UserAgent, user: typeof alice): Promise<void> {
  const choice = pageOf(await ask(server, portal, select, agent))
  const login = pageOf(await agent.submit(choice, { decision: 'switch' }))
  sentAway(await agent.submit(login, user))
}

const both = await signedIn(server, portal)
await alsoSignIn(both, bob)

t.test('two users are signed in in one browser, and either continues without a password', async (t) => {
  t.equal(
    await subOf(sentAway(await ask(server, portal, {}, both))),
    await idOf('bob'),
    'the last who signed in',
  )
  for (const name of ['alice', 'bob', 'alice']) {
    const choice = pageOf(await ask(server, portal, select, both))
    t.match(choice.html, /<bdi>alice<\/bdi>/)
    t.match(choice.html, /<bdi>bob<\/bdi>/)
    t.equal(await subOf(sentAway(await both.submit(choice, pick(choice, `>${name}<`)))), await idOf(name))
    t.equal(
      await subOf(sentAway(await ask(server, portal, { prompt: 'none' }, both))),
      await idOf(name),
      'and stays',
    )
  }
})

t.test('each user has a separate session, and the cookies contain nothing else', async (t) => {
  const value = (kind: 'session' | 'others') => both.cookie(kind) ?? ''
  t.match(value('session'), /^lyc_session_[\w-]{43}$/)
  t.match(value('others'), /^lyc_session_[\w-]{43}$/)
  t.not(value('session'), value('others'))
  const other = new UserAgent(server.issuer)
  other.setCookie('others', `${value('session')}x.nonsense.${'.'.repeat(500)}`)
  const login = pageOf(await ask(server, portal, {}, other))
  t.equal(title(login), 'Sign in')
})

t.test('a request looks up at most as many sessions as the server writes into its cookies', async (t) => {
  const lookedUp: string[] = []
  const { find } = store
  store.find = (kind, key) => {
    if (kind === 'session') lookedUp.push(key)
    return find(kind, key)
  }
  t.teardown(() => void Object.assign(store, { find }))
  const made = Array.from({ length: 270 }, () => `lyc_session_${random(32).toString('base64url')}`)
  const stranger = new UserAgent(server.issuer)
  stranger.setCookie('session', made[0] ?? '')
  stranger.setCookie('others', made.slice(1).join('.'))
  t.equal(pageOf(await ask(server, portal, select, stranger)).status, 200)
  t.equal(new Set(lookedUp).size, 5)
})

t.test('only users of this browser can be chosen', async (t) => {
  const stranger = await signedIn(server, portal)
  const choice = pageOf(await ask(server, portal, select, stranger))
  const back = pageOf(await stranger.submit(choice, { account: await idOf('bob') }))
  t.equal(title(back), 'Choose an account')
  t.notMatch(back.html, 'bob')
  t.equal(await subOf(sentAway(await ask(server, portal, { prompt: 'none' }, stranger))), await idOf('alice'))
})

t.test('a chosen user who signed in too long ago is asked for their own password', async (t) => {
  server.advance(100)
  const again = pageOf(await ask(server, portal, { prompt: 'login' }, both))
  t.equal(await subOf(sentAway(await both.submit(again, bob))), await idOf('bob'))
  const choice = pageOf(await ask(server, portal, { ...select, max_age: '50' }, both))
  const login = pageOf(await both.submit(choice, pick(choice, '>alice<')))
  t.equal(title(login), 'Confirm that it is you')
  t.match(login.html, 'value="alice"')
  t.equal(await subOf(sentAway(await both.submit(login, alice))), await idOf('alice'))
})

t.test('signing one user out keeps the other, who is offered but not chosen', async (t) => {
  const agent = await signedIn(server, portal)
  await alsoSignIn(agent, bob)
  const out = pageOf(await agent.open(`${server.issuer}/oauth/logout`))
  await agent.submit(out, { decision: 'sign-out' })
  const silent = sentAway(await ask(server, portal, { prompt: 'none' }, agent))
  t.equal(silent['error'], 'login_required')
  const choice = pageOf(await ask(server, portal, {}, agent))
  t.equal(title(choice), 'Choose an account')
  t.notMatch(choice.html, /<bdi>bob<\/bdi>/)
  t.equal(await subOf(sentAway(await agent.submit(choice, pick(choice)))), await idOf('alice'))
})

t.test('a browser keeps five users, and drops the one who signed in first', async (t) => {
  const agent = await signedIn(server, portal)
  const first = hashSecret(agent.cookie('session') ?? '')
  t.ok(await store.find('session', first))
  const passwordHash = (await store.find('userByLogin', 'bob'))?.passwordHash ?? ''
  for (const username of ['carol', 'dave', 'erin', 'frank', 'grace']) {
    const user = createUser({ username, passwordHash }, random(16), server.now())
    await store.write(insert('user', user))
    await alsoSignIn(agent, { username, password: bob.password })
  }
  const choice = pageOf(await ask(server, portal, select, agent))
  const names = [...choice.html.matchAll(/<small><bdi>(\w+)<\/bdi><\/small>/g)].map(([, name]) => name)
  t.strictSame(names, ['grace', 'frank', 'erin', 'dave', 'carol'])
  t.equal(await store.find('session', first), undefined, 'and that session has ended')
  const carol = await store.listOf('session', await idOf('carol'))
  t.equal(carol.length, 1)
  await alsoSignIn(agent, { username: 'carol', password: bob.password })
  t.equal(
    (await store.listOf('session', await idOf('carol'))).length,
    1,
    'signing in again is no second session',
  )
})
