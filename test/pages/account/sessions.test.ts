import t from 'tap'
import { update } from '../../../src/domain/decision.ts'
import { pageOf, place } from '../../helpers/authorization.ts'
import { alice, bob, startServer } from '../../helpers/server.ts'
import { UserAgent } from '../../helpers/user-agent.ts'
import { doneOf, enter, offered, press, textOf } from './sections.ts'

const server = await startServer(t)
const url = `${server.issuer}/account/sessions`

/** Signed in with a browser with this User-Agent. */
async function signedIn(userAgent: string, user = alice): Promise<UserAgent> {
  server.advance(1)
  const agent = new UserAgent(server.issuer, { 'user-agent': userAgent })
  await enter(server, agent, '/sessions', user)
  return agent
}

const firefox = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0'
const safari =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1'

const isIn = async (agent: UserAgent) => place(await agent.open(url)) === '/account/sessions'

t.test('every browser is listed with its name, network and time, this one first', async (t) => {
  const phone = await signedIn(safari)
  server.advance(7200)
  const desk = await signedIn(firefox)
  const page = pageOf(await desk.open(url))
  t.match(
    textOf(page),
    /Firefox, Linux This browser Signed in 1 second ago from this computer, with a password/,
  )
  t.match(textOf(page), /Safari, iOS Signed in 2 hours ago from this computer, with a password/)
  t.notMatch(page.html, /lyc_session_/)
  const stored = await server.deps.store.listOf('session', await idOf('alice'))
  for (const { id } of stored) t.notOk(page.html.includes(id), 'not even the hash of a cookie')
  t.equal(offered(page, 'session').length, 1, 'this one is ended by signing out')
  t.ok(await isIn(phone))
})

t.test('one other browser is signed out, and the rest stay', async (t) => {
  const [desk, phone, other] = [await signedIn(firefox), await signedIn(safari), await signedIn(firefox, bob)]
  const page = pageOf(await desk.open(url))
  const handles = offered(page, 'session')
  const newest = handles[0] ?? ''
  const after = pageOf(await press(desk, page, 'session', newest))
  t.equal(doneOf(after), 'That browser is signed out.')
  t.strictSame(offered(after, 'session'), handles.slice(1))
  t.notOk(await isIn(phone))
  t.ok(await isIn(desk))
  t.ok(await isIn(other))
  const again = pageOf(await desk.submit(page, { session: newest }, page.forms[0]))
  t.match(doneOf(again), /^That had already ended/)
})

t.test('every other browser is signed out at once, those of other users stay', async (t) => {
  const [desk, phone, other] = [await signedIn(firefox), await signedIn(safari), await signedIn(firefox, bob)]
  const after = pageOf(await press(desk, pageOf(await desk.open(url)), 'others', '1'))
  t.match(doneOf(after), /^Every other browser is signed out/)
  t.equal((await server.deps.store.listOf('session', await idOf('alice'))).length, 1)
  t.notOk(await isIn(phone))
  t.ok(await isIn(desk))
  t.ok(await isIn(other))
})

t.test('no user ends a session of another', async (t) => {
  const [desk, other] = [await signedIn(firefox), await signedIn(safari, bob)]
  await signedIn(firefox)
  const page = pageOf(await desk.open(url))
  const theirs = (await server.deps.store.listOf('session', await idOf('bob'))).map(({ id }) => id)
  const otherPage = pageOf(await other.open(url))
  for (const session of [...theirs, ...offered(otherPage, 'session'), '', 'x']) {
    const after = pageOf(await desk.submit(page, { session }, page.forms[0]))
    t.match(doneOf(after), /^That had already ended/)
  }
  t.ok(await isIn(other))
})

t.test('signing out leads to the confirmation page, and then no user is signed in', async (t) => {
  const desk = await signedIn(firefox)
  const page = pageOf(await desk.open(url))
  const link = /<a href="([^"]*)">Sign out<\/a>/.exec(page.html)?.[1] ?? ''
  await desk.submit(pageOf(await desk.open(server.issuer + link)), { decision: 'logout' })
  t.notOk(await isIn(desk))
})

t.test('a browser with two users switches from the account page of one to that of the other', async (t) => {
  const desk = await signedIn(firefox)
  const choice = pageOf(await desk.open(`${server.issuer}/account/switch`))
  const other = pageOf(await press(desk, choice, 'decision', 'switch'))
  const theirs = pageOf(await desk.submit(other, bob, other.forms[0]))
  t.equal(new URL(theirs.url).pathname, '/account')
  t.match(textOf(theirs), / bob Switch account Sign out /)
  const back = pageOf(await desk.open(`${server.issuer}/account/switch`))
  t.match(textOf(back), /Alice Ångström alice/)
})

t.test('a locked user sees no account page, whatever session is left', async (t) => {
  const desk = await signedIn(firefox, bob)
  const user = await server.deps.store.find('user', await idOf('bob'))
  if (user === undefined) throw new Error('nobody')
  await server.deps.store.write(update('user', { ...user, lockedAt: server.now() }))
  t.notOk(await isIn(desk))
})

t.test('the audit log records each end, and who caused it', async (t) => {
  const events = await server.deps.store.audit({ since: 0, name: 'session-ended', limit: 9 })
  t.strictSame(
    events.map(({ by, facts }) => [by, facts['which']]),
    [
      ['user', 'one'],
      ['user', 'others'],
    ],
  )
})

async function idOf(username: string): Promise<string> {
  return (await server.deps.store.find('userByLogin', username))?.id ?? ''
}
