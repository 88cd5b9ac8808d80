import t from 'tap'
import { endSession, insert, put, remove, update } from '../../../src/domain/decision.ts'
import { passkeyKind } from '../../../src/users/rules/passkey.ts'
import { secondFactorKind } from '../../../src/users/rules/second-factor.ts'
import { pageOf, place, title } from '../../helpers/authorization.ts'
import { obtainTokens, register } from '../../helpers/flow.ts'
import { allSent, startMailbox } from '../../helpers/mailbox.ts'
import { alice, bob, startServer } from '../../helpers/server.ts'
import { type Page, UserAgent } from '../../helpers/user-agent.ts'
import { isAlive } from '../../helpers/wire.ts'
import { doneOf, enter, press, textOf } from './sections.ts'

const mailbox = await startMailbox(t)
const server = await startServer(t, {
  mail: { url: mailbox.url, from: 'accounts@example.org', notices: 'off' },
})
const { store } = server.deps
const user = async () => {
  const found = await store.find('userByLogin', 'alice')
  if (found === undefined) throw new Error('alice is there')
  return found
}
const stored = async () => (await user()).claims
const problemOf = ({ html }: Page) => /role="alert">([^<]*)</.exec(html)?.[1]

/** Enters another address, with the current password unless another is given. */
async function ask(agent: UserAgent, email: string, current = alice.password, user = alice): Promise<Page> {
  const page = await enter(server, agent, '/email', user)
  return pageOf(await agent.submit(page, { email, current }))
}

/** Opens a link in another browser and submits its form. */
async function use(url: string, fields: Record<string, string> = {}): Promise<Page> {
  const agent = new UserAgent(server.issuer)
  const page = pageOf(await agent.open(url))
  return page.status === 404 ? page : pageOf(await agent.submit(page, fields))
}

const sent = () => mailbox.emails.map(({ to, subject }) => `${to} ${subject}`)

t.beforeEach(() => {
  server.advance(3601)
  mailbox.emails.length = 0
})

t.test('a new address replaces the old one when the link sent to it is used', async (t) => {
  const agent = new UserAgent(server.issuer)
  t.match(doneOf(await ask(agent, 'alice@new.example')), /^An email is on its way/)
  const received = await mailbox.arrived(1)
  t.strictSame(received.to, ['alice@new.example'])
  t.match(await stored(), { email: 'alice@example.test', email_verified: true }, 'nothing changed yet')
  const link = pageOf(await new UserAgent(server.issuer).open(received.url))
  t.match(textOf(link), 'Confirm that alice@new.example belongs to the account alice')
  t.match(await stored(), { email: 'alice@example.test' }, 'opening it changes nothing')
  t.match((await use(received.url)).html, 'Your address is confirmed')
  t.match(await stored(), { email: 'alice@new.example', email_verified: true })
  const notice = await mailbox.arrived(2)
  t.strictSame(notice.to, ['alice@example.test'], 'the old address gets an email')
  t.equal((await use(received.url)).status, 404, 'once')
  const user = { username: 'Alice@New.example', password: alice.password }
  const page = await enter(server, new UserAgent(server.issuer), '/apps', user)
  t.equal(new URL(page.url).pathname, '/account/apps', 'it signs in')
})

t.test('text that is no email address is rejected', async (t) => {
  const agent = new UserAgent(server.issuer)
  for (const email of ['alice', 'a@b@c']) {
    const page = await ask(agent, email)
    t.equal(page.status, 400)
    t.match(problemOf(page), 'That is not an email address.')
  }
})

t.test('the old address undoes the change, whatever was done since', async (t) => {
  const [thief, owner] = [new UserAgent(server.issuer), new UserAgent(server.issuer)]
  const client = await register(server)
  await ask(thief, 'thief@evil.example')
  await use((await mailbox.arrived(1)).url)
  const { url: undo } = await mailbox.arrived(2)
  const tokens = await obtainTokens(server, client, { agent: thief })
  // A new password, with the new address; a passkey and codes; and another new address.
  const forgot = pageOf(await thief.open(`${server.issuer}/forgot-password`))
  await thief.submit(forgot, { username: 'alice' })
  const stolen = { password: 'of the thief now', repeated: 'of the thief now' }
  await use((await mailbox.arrived(3)).url, stolen)
  const { id: userId } = await user()
  const passkey = { userId, publicKey: 'AAAA', counter: 0, transports: [], name: '', backedUp: false }
  const at = server.now()
  await store.write(
    insert(passkeyKind, { ...passkey, id: 'older', createdAt: at - 90_000, usedAt: at }),
    insert(passkeyKind, { ...passkey, id: 'just before', createdAt: at - 600, usedAt: at }),
    insert(passkeyKind, { ...passkey, id: 'added', createdAt: at, usedAt: at }),
    put(secondFactorKind, {
      userId,
      sealedSecret: 'x',
      confirmedAt: at,
      recoveryHashes: [],
      createdAt: at - 600,
    }),
  )
  const changed = { ...(await user()), email: 'thief@other.example' }
  await store.write(update('user', changed))

  const page = pageOf(await owner.open(undo))
  t.match(textOf(page), 'alice@new.example becomes the address of the account alice again')
  const password = 'mine again at last'
  t.match(pageOf(await owner.submit(page, { password, repeated: password })).html, 'Your password is saved')
  t.match(await stored(), { email: 'alice@new.example', email_verified: true })
  t.strictSame(await store.listOf('session', userId), [])
  t.notOk(await isAlive(server, tokens.access_token))
  t.strictSame(
    (await store.listOf(passkeyKind, userId)).map(({ id }) => id),
    ['older'],
  )
  t.equal(await store.find(secondFactorKind, userId), undefined)
  await store.write(remove(passkeyKind, 'older'))
  t.equal(place(await thief.open(`${server.issuer}/account/apps`)), '/login')
  const signedIn = await enter(server, owner, '/apps', { username: 'alice', password })
  t.equal(new URL(signedIn.url).pathname, '/account/apps')
  t.equal((await use(undo, { password, repeated: password })).status, 404, 'once')
  const events = await store.audit({ since: 0, userId, name: 'user-password-changed', limit: 9 })
  t.strictSame(
    events.map(({ facts }) => facts['link']),
    ['password-reset', 'email-undo'],
  )
  await use((await resetLink(owner)).url, { password: alice.password, repeated: alice.password })
})

async function resetLink(agent: UserAgent) {
  const before = mailbox.emails.length
  const forgot = pageOf(await agent.open(`${server.issuer}/forgot-password`))
  await agent.submit(forgot, { username: 'alice' })
  return mailbox.arrived(before + 1)
}

t.test('the link that undoes a change expires', async (t) => {
  await ask(new UserAgent(server.issuer), 'alice@third.example')
  await use((await mailbox.arrived(1)).url)
  const { url } = await mailbox.arrived(2)
  server.advance(server.deps.config.lifetimes.emailUndoSeconds)
  t.equal((await use(url)).status, 404)
})

t.test('a change needs the current password, and a sign-in of the last minutes', async (t) => {
  const agent = new UserAgent(server.issuer)
  for (const [current, problem] of [
    ['', 'That is not your current password'],
    ['a guess', 'That is not your current password'],
  ] as const) {
    const page = await ask(agent, 'alice@evil.example', current)
    t.equal(page.status, 400)
    t.match(problemOf(page), problem)
  }
  const page = await enter(server, agent, '/email')
  server.advance(601)
  const login = pageOf(await agent.submit(page, { email: 'alice@evil.example', current: alice.password }))
  t.equal(title(login), 'Confirm that it is you')
  await allSent()
  t.strictSame(sent(), [])
  const { id } = await user()
  const failed = await store.audit({ since: 0, userId: id, name: 'sign-in-failed', limit: 9 })
  t.equal(failed.length, 2, 'the owner sees the guess')
})

t.test('a session that began with a passkey needs no password', async (t) => {
  const agent = new UserAgent(server.issuer)
  await enter(server, agent, '/apps')
  const { id } = await user()
  for (const session of await store.listOf('session', id))
    await store.write(endSession(session.id, 0), insert('session', { ...session, methods: ['pop', 'user'] }))
  const page = await enter(server, agent, '/email')
  t.notMatch(page.html, 'name="current"')
  t.match(doneOf(pageOf(await agent.submit(page, { email: 'alice@key.example' }))), /^An email is on its way/)
  t.ok(await mailbox.arrived(1))
})

t.test('a session of the password that a passkey confirmed still asks for the password', async (t) => {
  const agent = new UserAgent(server.issuer)
  await enter(server, agent, '/apps')
  const { id } = await user()
  for (const session of await store.listOf('session', id))
    await store.write(
      endSession(session.id, 0),
      insert('session', { ...session, methods: ['pwd', 'pop', 'mfa'] }),
    )
  const page = await enter(server, agent, '/email')
  t.match(page.html, 'name="current"')
  const rejected = pageOf(await agent.submit(page, { email: 'alice@key.example' }))
  t.match(problemOf(rejected), 'That is not your current password')
})

t.test('an address of another user looks the same, and its owner gets an email', async (t) => {
  const free = await ask(new UserAgent(server.issuer), 'nobody@free.example')
  await mailbox.arrived(1)
  const taken = await ask(new UserAgent(server.issuer), 'bob@example.test')
  const notice = await mailbox.arrived(2)
  const shown = (page: Page) => [page.status, page.url, textOf(page), page.headers.get('content-length')]
  t.strictSame(shown(taken), shown(free))
  t.strictSame(notice.to, ['bob@example.test'])
  t.match(notice.subject, 'Your email address at Lychgate')
  t.notMatch(notice.source, /link\?code=|Alice|alice@/, 'no link, and nothing of who asked')
  t.match(await stored(), { email: 'alice@third.example' })
  // The address is registered between the request and the use of the link.
  await ask(new UserAgent(server.issuer), 'soon@taken.example')
  const { url } = await mailbox.arrived(3)
  const other = await store.find('userByLogin', 'bob')
  if (other === undefined) throw new Error('bob is there')
  await store.write(update('user', { ...other, email: 'soon@taken.example' }))
  const late = await use(url)
  t.equal(late.status, 404)
  t.equal(title(late), 'This link no longer works')
  await store.write(update('user', other))
})

t.test('only the address requested last can be confirmed', async (t) => {
  const agent = new UserAgent(server.issuer)
  await ask(agent, 'mistyped@stranger.example')
  const first = await mailbox.arrived(1)
  await ask(agent, 'alice@fourth.example')
  await mailbox.arrived(2)
  t.equal((await use(first.url)).status, 404)
  t.match(await stored(), { email: 'alice@third.example' })
})

t.test('no email to an unverified address contains text that the user chose', async (t) => {
  const agent = new UserAgent(server.issuer)
  const profile = await enter(server, agent, '/profile')
  const form = profile.forms.find(({ fields }) => fields.some(({ name }) => name === 'name'))
  await agent.submit(profile, { name: 'Win a prize at evil.example' }, form)
  await ask(agent, 'victim@anywhere.example')
  const received = await mailbox.arrived(1)
  t.strictSame(received.to, ['victim@anywhere.example'])
  t.notMatch(received.source, /prize|evil/)
  t.match(received.text, 'Hello alice,')
  const reset = await resetLink(agent)
  t.match(reset.text, 'Hello Win a prize', 'their own address may')
})

t.test('a password reset goes only to a verified address, and the page does not reveal which', async (t) => {
  const agent = new UserAgent(server.issuer)
  const now = await user()
  await store.write(update('user', { ...now, claims: { ...now.claims, email_verified: false } }))
  const forgot = pageOf(await agent.open(`${server.issuer}/forgot-password`))
  const unproven = pageOf(await agent.submit(forgot, { username: 'alice' }))
  const proven = pageOf(await agent.submit(forgot, { username: 'bob' }))
  await mailbox.arrived(1)
  await allSent()
  t.strictSame(
    mailbox.emails.map(({ to }) => to),
    [['bob@example.test']],
  )
  t.equal(unproven.html, proven.html)
  // The profile offers to verify it; afterwards it works.
  mailbox.emails.length = 0
  t.match(
    doneOf(pageOf(await press(agent, await enter(server, agent, '/profile'), 'verify', '1'))),
    /on its way/,
  )
  await use((await mailbox.arrived(1)).url)
  t.equal((await stored())['email_verified'], true)
  t.ok(await resetLink(agent))
  const profile = await enter(server, agent, '/profile')
  t.notMatch(profile.html, /name="verify"/)
})

t.test('an address is removed with the current password, and its owner can undo that', async (t) => {
  const agent = new UserAgent(server.issuer)
  t.equal((await ask(agent, '', 'a guess')).status, 400)
  t.match(doneOf(await ask(agent, '')), 'Your email address is removed.')
  t.equal((await user()).email, undefined)
  const { url, to } = await mailbox.arrived(1)
  t.strictSame(to, ['alice@third.example'])
  await use(url, { password: alice.password, repeated: alice.password })
  t.match(await stored(), { email: 'alice@third.example', email_verified: true })
})

t.test('if the old address cannot be notified, nothing changes', async (t) => {
  const deaf = await startMailbox(t, { reject: true })
  const other = await startServer(t, { mail: { url: deaf.url, from: 'accounts@example.org' } })
  const agent = new UserAgent(other.issuer)
  const page = await enter(other, agent, '/email')
  const after = pageOf(await agent.submit(page, { email: '', current: alice.password }))
  t.equal(after.status, 503)
  t.match(problemOf(after), 'Nothing was changed')
  t.equal((await other.deps.store.find('userByLogin', 'alice'))?.email, 'alice@example.test')
})

t.test('more than five requests an hour have to wait', async (t) => {
  const agent = new UserAgent(server.issuer)
  for (let n = 0; n < 5; n += 1) {
    await ask(agent, `bob${n}@many.example`, bob.password, bob)
    await mailbox.arrived(n + 1)
  }
  const page = await ask(agent, 'bob5@many.example', bob.password, bob)
  t.equal(page.status, 429)
  t.match(problemOf(page), 'Too many emails')
})

t.test('without a mail server users do not change their address', async (t) => {
  const silent = await startServer(t)
  const agent = new UserAgent(silent.issuer)
  const profile = await enter(silent, agent, '/profile')
  t.notMatch(profile.html, '/account/email')
  t.equal(pageOf(await agent.open(`${silent.issuer}/account/email`)).status, 404)
})
