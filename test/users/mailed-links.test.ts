import t from 'tap'
import type { User } from '../../src/domain/model.ts'
import { createI18n } from '../../src/pages/i18n/i18n.ts'
import { changeProfile } from '../../src/users/rules/user.ts'
import { authorizationUrl, register } from '../helpers/flow.ts'
import { allSent, startMailbox } from '../helpers/mailbox.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { type Landing, type Page, UserAgent } from '../helpers/user-agent.ts'

const mailbox = await startMailbox(t)
const from = 'Courses <accounts@example.org>'
const server = await startServer(t, {
  mail: { url: mailbox.url, from, replyTo: 'help@example.org', notices: 'off' },
})
const password = 'a password nobody else has'

/** What the catalogue of a language has for this. */
function msg(language: string, key: 'mail.reset.subject' | 'mail.verify.subject'): string {
  return createI18n({ service: 'Lychgate' }).in(language).t(key).text
}

function pageOf(landing: Landing): Page {
  if (landing.at !== 'page') throw new Error('sent away')
  return landing.page
}

async function userOf({ deps: { store } }: TestServer, name: string): Promise<User> {
  const user = await store.find('userByLogin', name)
  if (user === undefined) throw new Error(`${name} is not there`)
  return user
}

/** Asks for an email as a user would, in a new browser unless one is given. */
async function ask(username: string, agent = new UserAgent(server.issuer), query = ''): Promise<Page> {
  const page = pageOf(await agent.open(`${server.issuer}/forgot-password${query}`))
  return pageOf(await agent.submit(page, { username }))
}

t.test(
  'a user who forgot the password gets a link by email, which leads back to the pending request',
  async (t) => {
    const client = await register(server)
    const agent = new UserAgent(server.issuer)
    const login = pageOf(await agent.open(authorizationUrl(server, client)))
    const [, href = ''] = /href="([^"]*forgot-password[^"]*)"/.exec(login.html) ?? []
    const forgot = pageOf(await agent.open(new URL(href.replaceAll('&amp;', '&'), login.url).href))
    const sent = pageOf(await agent.submit(forgot, { username: 'alice' }))
    t.match(sent.html, 'Check your email')
    const received = await mailbox.arrived(1)
    t.match(received, { from: 'accounts@example.org', to: ['alice@example.test'] })
    t.equal(received.subject, 'A new password for Lychgate')
    t.match(received.source, /^Reply-To: help@example\.org\r$/m)
    t.match(received.source, /^Auto-Submitted: auto-generated\r$/m)
    t.match(received.text, 'your account alice at Lychgate')
    t.match(received.text, 'for 1 hour')
    t.match(received.html, received.url.replaceAll('&', '&amp;'))
    t.notMatch(received.html, /<img|<link|src=/, 'nothing is fetched')

    const page = pageOf(await agent.open(received.url))
    t.notMatch(page.headers.get('content-security-policy'), 'form-action', 'its form may end at the app')
    const consent = pageOf(await agent.submit(page, { password, repeated: password }))
    const landing = await agent.submit(consent, { decision: 'approve' })
    t.equal(landing.at, 'redirect')
    t.ok(landing.at === 'redirect' && landing.location.searchParams.get('code'))
  },
)

t.test('in another browser the link leads to the account page', async (t) => {
  const interaction = 'i'.repeat(22)
  await ask('bob', undefined, `?interaction=${interaction}`)
  const received = await mailbox.arrived(2)
  t.match(received.url, `interaction=${interaction}`)
  const agent = new UserAgent(server.issuer)
  const page = pageOf(await agent.open(received.url))
  const done = pageOf(await agent.submit(page, { password, repeated: password }))
  t.match(done.url, '/account?done=password-changed')
})

t.test('the response is the same whether the user exists, and does not wait for that', async (t) => {
  const before = mailbox.emails.length
  const pages = [await ask('nobody'), await ask('nobody@example.test'), await ask(''), await ask('alice')]
  const shown = pages.map(({ status, html, headers }) => [status, html, headers.get('content-length')])
  for (const one of shown) t.strictSame(one, shown[3])
  t.equal(shown[0]?.[0], 200)
  t.equal((await mailbox.arrived(before + 1)).to[0], 'alice@example.test')
  await allSent()
  t.equal(mailbox.emails.length, before + 1, 'and nobody else got a letter')
})

t.test(
  'a user gets at most five emails an hour, and the page looks the same to the sender of the form',
  async (t) => {
    server.advance(3600)
    const before = mailbox.emails.length
    for (let count = 0; count < 5; count += 1) {
      await ask('bob@example.test')
      await mailbox.arrived(before + count + 1)
    }
    const page = await ask('bob')
    t.equal(page.status, 200)
    await allSent()
    t.equal(mailbox.emails.length, before + 5)
    server.advance(3600)
    await ask('bob')
    t.ok(await mailbox.arrived(before + 6))
  },
)

t.test('after twenty requests a network has to wait, whichever users they were about', async (t) => {
  server.advance(3600)
  for (let count = 0; count < 20; count += 1) t.equal((await ask(`nobody-${count}`)).status, 200)
  const page = await ask('alice')
  t.equal(page.status, 429)
  t.match(page.headers.get('retry-after'), /^3(600|5\d\d)$/)
  server.advance(3600)
})

t.test('a form from another browser sends nothing', async (t) => {
  const page = pageOf(await new UserAgent(server.issuer).open(`${server.issuer}/forgot-password`))
  const response = await new UserAgent(server.issuer).submit(page, { username: 'alice' })
  t.equal(pageOf(response).status, 403)
})

t.test('an address is verified when the form of the link that was sent to it is submitted', async (t) => {
  const { store } = server.deps
  const { id } = await userOf(server, 'alice')
  const move = (email: string) =>
    store.transact('user', id, (user) => changeProfile(user as User, { email }, server.now()))
  const user = await move('alice@new.example')
  t.equal(user.claims['email_verified'], false)
  const before = mailbox.emails.length
  const context = { by: 'user', at: server.now() } as const
  await server.app.emails.verifyEmail(user, context)
  const received = await mailbox.arrived(before + 1)
  t.match(received, { to: ['alice@new.example'] })
  // Alice's locale is sv-SE, which is not translated: the email is in the service's language.
  t.equal(received.subject, 'Confirm your email address for Lychgate')
  const agent = new UserAgent(server.issuer)
  const page = pageOf(await agent.open(received.url))
  t.match(page.html, 'alice@new.example')
  t.equal((await userOf(server, 'alice')).claims['email_verified'], false, 'opening it proves nothing')
  const done = pageOf(await agent.submit(page, {}))
  t.match(done.html, 'Your address is confirmed')
  t.equal((await userOf(server, 'alice')).claims['email_verified'], true)
  t.equal(pageOf(await agent.open(received.url)).status, 404, 'once')

  await server.app.emails.verifyEmail(await move('alice@third.example'), context)
  const old = await mailbox.arrived(before + 2)
  const early = pageOf(await agent.open(old.url))
  await move('alice@fourth.example')
  t.equal(pageOf(await agent.submit(early, {})).status, 404)
  t.equal(
    (await userOf(server, 'alice')).claims['email_verified'],
    false,
    'an old link proves no new address',
  )
})

t.test('an address is one address, whatever characters it contains', async (t) => {
  const { id } = await userOf(server, 'bob')
  const odd = await server.deps.store.transact('user', id, (user) =>
    changeProfile(user as User, { email: 'x,mallory@example.test' }, server.now()),
  )
  const before = mailbox.emails.length
  await server.app.emails.verifyEmail(odd, { by: 'user', at: server.now() }).catch(() => {})
  const to = mailbox.emails.slice(before).flatMap((received) => received.to)
  t.notOk(to.includes('mallory@example.test'))
  const proven = { email: 'bob@example.test', emailVerified: true }
  await server.deps.store.transact('user', id, (user) => changeProfile(user as User, proven, server.now()))
})

t.test('an email is in the language of the user, or else of the browser that asks', async (t) => {
  const { store } = server.deps
  server.advance(3600)
  const { id } = await userOf(server, 'bob')
  await store.transact('user', id, (user) =>
    changeProfile(user as User, { claims: { locale: 'fr-FR' } }, server.now()),
  )
  const before = mailbox.emails.length
  await ask('bob')
  const french = await mailbox.arrived(before + 1)
  t.equal(french.subject, msg('fr', 'mail.reset.subject'))
  t.notMatch(french.subject, 'password')
  t.match(french.html, '<html lang="fr" dir="ltr">')
  t.match(french.text, /1.heure/)
  await store.transact('user', id, (user) =>
    changeProfile(user as User, { claims: { locale: '' } }, server.now()),
  )
  const agent = new UserAgent(server.issuer)
  const arabic = { headers: { 'accept-language': 'ar' } }
  const page = pageOf(await agent.open(`${server.issuer}/forgot-password`, arabic))
  const fields = Object.fromEntries((page.forms[0]?.fields ?? []).map(({ name, value }) => [name, value]))
  const body = new URLSearchParams({ ...fields, username: 'bob' })
  await agent.open(`${server.issuer}/forgot-password`, { ...arabic, method: 'POST', body })
  const received = await mailbox.arrived(before + 2)
  t.match(received.html, '<html lang="ar" dir="rtl">')
  t.equal(received.subject, msg('ar', 'mail.reset.subject'))
})

t.test('a mail server that rejects an email causes one log line and the same response', async (t) => {
  const deaf = await startMailbox(t, { reject: true })
  const other = await startServer(t, { mail: { url: deaf.url, from } })
  const agent = new UserAgent(other.issuer)
  const page = pageOf(await agent.open(`${other.issuer}/forgot-password`))
  t.equal(pageOf(await agent.submit(page, { username: 'alice' })).status, 200)
  const failures = () => other.log.filter((line) => line.includes('did not accept the email'))
  await allSent()
  t.equal(failures().length, 1)
  t.match(failures()[0], `mail: ${new URL(deaf.url).host} did not accept the email (EENVELOPE: `)
  t.notMatch(other.log.join('\n'), /code=lyc_link_|lyc_link_[\w-]{20}/)
  const user = await userOf(other, 'alice')
  await t.rejects(other.app.emails.verifyEmail(user, { by: 'user', at: other.now() }), {
    message: 'the email could not be sent',
  })
})

t.test('without a mail server no page offers an email', async (t) => {
  const silent = await startServer(t)
  const client = await register(silent)
  const page = pageOf(await new UserAgent(silent.issuer).open(authorizationUrl(silent, client)))
  t.notMatch(page.html, 'forgot')
  t.equal((await fetch(`${silent.issuer}/forgot-password`)).status, 404)
  t.equal(silent.app.emails.canSend, false)
  t.equal(pageOf(await new UserAgent(server.issuer).open(`${server.issuer}/forgot-password`)).status, 200)
})
