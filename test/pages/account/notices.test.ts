import { TOTP } from 'otpauth'
import t from 'tap'
import { auditEvent } from '../../../src/domain/audit.ts'
import { accept, insert, put } from '../../../src/domain/decision.ts'
import { composeNotice, type NoticeKind } from '../../../src/pages/emails/emails.ts'
import { announcing } from '../../../src/pages/emails/notices.ts'
import { shippedLanguages } from '../../../src/pages/i18n/i18n.ts'
import { makeLink } from '../../../src/users/one-time-links.ts'
import { passkeyKind } from '../../../src/users/rules/passkey.ts'
import { integrate, pageOf, title } from '../../helpers/authorization.ts'
import { newFolder } from '../../helpers/command.ts'
import { runAll, runHere } from '../../helpers/commands.ts'
import { postAs } from '../../helpers/flow.ts'
import { allSent, startMailbox } from '../../helpers/mailbox.ts'
import { alice, bob, startServer } from '../../helpers/server.ts'
import { UserAgent } from '../../helpers/user-agent.ts'
import { json } from '../../helpers/wire.ts'
import { passkey } from '../../storage/samples.ts'
import { doneOf, enter, press } from './sections.ts'

const mailbox = await startMailbox(t)
const data = newFolder(t)
const mail = { url: mailbox.url, from: 'accounts@example.org' }
const server = await startServer(t, { mail, admin: { api: 'on' }, store: `sqlite:${data}/lychgate.db` })
const { config, store, random } = server.deps
const password = 'seven green umbrellas'

async function userOf(name: string) {
  const user = await store.find('userByLogin', name)
  if (user === undefined) throw new Error(`${name} is not there`)
  return user
}

/** Waits for all emails. Returns the address and the first sentence of each. */
async function sent() {
  await allSent()
  return mailbox.emails.map(({ to, text }) => [to[0], text.split(/\r?\n\r?\n/)[1]])
}

const about = (what: string, name = 'alice') => `The ${what} of your account ${name} at Lychgate was changed.`

t.beforeEach(() => {
  server.advance(3601)
  mailbox.emails.length = 0
})

t.test('a sign-in from a browser that is new to the user is an email, the next one is not', async (t) => {
  const agent = new UserAgent(server.issuer)
  const began = server.now()
  await enter(server, agent, '/apps')
  const reason = 'Your account alice at Lychgate was signed in to from a browser that was not seen before.'
  t.strictSame(await sent(), [['alice@example.test', reason]])
  const [email] = mailbox.emails
  t.equal(email?.subject, 'A new sign-in to your account at Lychgate')
  t.equal(email?.url, `${server.issuer}/account`)
  const inUtc = { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' } as const
  const minute = new Intl.DateTimeFormat('en-GB', inUtc)
  // A minute may have ended between the sign-in and this line, or several on a machine that stands still.
  const times = new Set<string>()
  for (let at = began; at < server.now() + 60; at += 60)
    times.add(`Time: ${minute.format(Math.min(at, server.now()) * 1000)} UTC`)
  const { text = '' } = email ?? {}
  t.ok(
    [...times].some((time) => text.includes(time)),
    text,
  )
  t.notMatch(email?.source, alice.password)
  t.notMatch(email?.html, /<img|<link|src=/, 'nothing is fetched')
  t.match((await store.audit({ since: 0, name: 'sign-in', limit: 9 })).at(-1), { facts: { browser: 'new' } })
  server.advance(86_400)
  await enter(server, agent, '/apps')
  t.equal((await sent()).length, 1)
  for (let n = 0; n < 8; n += 1) await enter(server, new UserAgent(server.issuer), '/apps')
  t.equal((await sent()).length, 1 + 5, 'an attacker fills no mailbox')
  await enter(server, agent, '/apps')
  const page = await enter(server, agent, '/password')
  await agent.submit(page, { current: alice.password, password, repeated: password }, page.forms[0])
  t.strictSame((await sent()).at(-1), ['alice@example.test', about('password')], 'other emails still arrive')
})

t.test('each factor that is added or removed is an email, in the language of the profile', async (t) => {
  const agent = new UserAgent(server.issuer)
  const begun = pageOf(
    await press(agent, await enter(server, agent, '/one-time-codes', bob), 'decision', 'begin'),
  )
  await agent.submit(begun, { language: 'de' }, begun.languageForm)
  await sent()
  mailbox.emails.length = 0
  const [, secret = ''] = /<code>([A-Z2-7 ]+)<\/code>/.exec(begun.html) ?? []
  const totp = new TOTP({ secret: secret.replaceAll(' ', '') })
  const form = begun.forms.find(({ fields }) => fields.some(({ name }) => name === 'code'))
  const code = totp.generate({ timestamp: server.now() * 1000 })
  await agent.submit(begun, { code, decision: 'confirm' }, form)
  await sent()
  t.strictSame(
    mailbox.emails.map(({ to, subject }) => [to[0], subject]),
    [['bob@example.test', 'Eine Änderung an Ihrem Konto bei Lychgate']],
  )
  t.notMatch(mailbox.emails[0]?.source, secret)
  await store.write(put(passkeyKind, { ...passkey, userId: (await userOf('bob')).id }))
  await runAll([
    ['user', 'set', 'bob', '--locale', 'en', '--data', data],
    ['user', 'remove-second-factor', 'bob', '--yes', '--data', data],
  ])
  t.equal((await sent()).length, 1, 'a command without a mail server sends none')
})

t.test('a change of address is an email to both addresses', async (t) => {
  const machine = await integrate(server, {
    grantTypes: ['client_credentials'],
    scope: ['admin:users:write'],
    redirectUris: [],
  })
  const response = await postAs(server, machine, '/api/oauth/token', {
    grant_type: 'client_credentials',
    scope: 'admin:users:write',
  })
  const authorization = `Bearer ${(await json(response))['access_token']}`
  const { id } = await userOf('bob')
  const changed = await fetch(`${server.issuer}/api/admin/v1/users/${id}`, {
    method: 'PATCH',
    headers: { authorization, 'content-type': 'application/json', 'if-match': '*' },
    body: JSON.stringify({ email: 'bob@new.example' }),
  })
  t.equal(changed.status, 200)
  t.strictSame((await sent()).toSorted(), [
    ['bob@example.test', about('email address', 'bob')],
    ['bob@new.example', about('email address', 'bob')],
  ])
  t.match(mailbox.emails[0]?.text, 'The people who run Lychgate did this.')
  t.notMatch(mailbox.emails.find(({ to }) => to[0] === 'bob@example.test')?.source, 'bob@new.example')
  mailbox.emails.length = 0
  const name = await fetch(`${server.issuer}/api/admin/v1/users/${id}`, {
    method: 'PATCH',
    headers: { authorization, 'content-type': 'application/json', 'if-match': '*' },
    body: JSON.stringify({ claims: { name: 'Bob B.' } }),
  })
  t.equal(name.status, 200)
  t.strictSame(await sent(), [], 'a name is none')
})

t.test('a password that is set by a link or a command is an email', async (t) => {
  const { id } = await userOf('bob')
  const link = await makeLink(
    { config, store, random },
    { purpose: 'password-reset', userId: id },
    { by: 'operator', at: server.now() },
  )
  const agent = new UserAgent(server.issuer)
  await agent.submit(pageOf(await agent.open(link.url)), { password, repeated: password })
  t.strictSame(await sent(), [['bob@new.example', about('password', 'bob')]])
  mailbox.emails.length = 0
  const environment = { LYCHGATE_MAIL_URL: mailbox.url, LYCHGATE_MAIL_FROM: mail.from }
  const passwd = ['user', 'passwd', 'bob', '--data', data]
  const set = await runHere(passwd, { environment, input: 'nine green umbrellas\n' })
  t.match(set, { code: 0, stdout: /^changed +bob\n$/ })
  t.equal(mailbox.emails.length, 1, 'sent before the command ends')
  const quiet = { ...environment, LYCHGATE_MAIL_NOTICES: 'off' }
  t.equal((await runHere(passwd, { environment: quiet, input: `${password}\n` })).code, 0)
  t.equal(mailbox.emails.length, 1, 'none where they are off')
})

t.test('the first password of a user who was invited is no email: nothing was changed', async (t) => {
  const environment = { LYCHGATE_MAIL_URL: mailbox.url, LYCHGATE_MAIL_FROM: mail.from }
  const invite = ['user', 'invite', 'grace@example.test', '--data', data]
  t.equal((await runHere(invite, { environment })).code, 0)
  const [invitation, ...more] = mailbox.emails
  t.strictSame(more, [])
  const agent = new UserAgent(server.issuer)
  const { pathname, search } = new URL(invitation?.url ?? '')
  const page = pageOf(await agent.open(server.issuer + pathname + search))
  await agent.submit(page, { password, repeated: password })
  t.equal((await sent()).length, 1)
  const { passwordHash } = await userOf('grace@example.test')
  t.type(passwordHash, 'string')
})

t.test(
  'a mail server that rejects emails fails no request, and none is sent where notices are off',
  async (t) => {
    const broken = await startMailbox(t, { reject: true })
    const own = await startServer(t, { mail: { ...mail, url: broken.url } })
    const agent = new UserAgent(own.issuer)
    const page = await enter(own, agent, '/password')
    t.equal(title(page), 'Change password')
    const after = pageOf(
      await agent.submit(page, { current: alice.password, password, repeated: password }, page.forms[0]),
    )
    t.match(doneOf(after), 'Your password is changed')
    const environment = { LYCHGATE_MAIL_URL: broken.url, LYCHGATE_MAIL_FROM: mail.from }
    const passwd = ['user', 'passwd', 'bob', '--data', data]
    const set = await runHere(passwd, { environment, input: 'nine green umbrellas\n' })
    t.match(set, { code: 0, stderr: /mail: .* did not accept the email/ })
    const off = await startServer(t, { mail: { ...mail, notices: 'off' } })
    await enter(off, new UserAgent(off.issuer), '/apps')
    t.strictSame(await sent(), [])
  },
)

t.test('a change that is not committed is no email, however it is written', async (t) => {
  const notices = announcing(config, store, (line) => t.fail(line))
  if (notices === undefined) throw new Error('emails can be sent')
  const { id: userId } = await userOf('bob')
  const event = auditEvent('user-password-changed', { by: 'operator', at: server.now() }, { userId })
  const taken = insert('user', await userOf('alice'))
  await t.rejects(notices.store.transact('user', userId, () => accept(undefined, event, taken)))
  await t.rejects(notices.store.write(event, taken))
  await notices.settled()
  t.strictSame(await sent(), [])
  await notices.store.write(event)
  await notices.settled()
  t.strictSame(await sent(), [[(await userOf('bob')).email, about('password', 'bob')]])
})

t.test('every notice has its words in every language, with the browser and the time', async (t) => {
  const user = await userOf('alice')
  const notices: readonly NoticeKind[] = ['password', 'codes', 'passkey', 'address', 'browser']
  const texts = new Set<string>()
  for (const locale of shippedLanguages)
    for (const notice of notices) {
      const known = { ...user, claims: { ...user.claims, locale } }
      const facts = {
        notices: [notice],
        user: known,
        to: 'x@example.org',
        at: 1_800_000_000,
        by: 'user',
      } as const
      const { subject, text, html } = composeNotice(config, { ...facts, browser: 'Firefox, <Linux>' })
      t.match(text, 'Firefox, <Linux>')
      t.match(html, 'Firefox, &lt;Linux&gt;')
      t.match(text, '2027')
      t.match(text, `${server.issuer}/account`)
      texts.add(`${subject} ${text}`)
    }
  t.equal(texts.size, 35)
})
