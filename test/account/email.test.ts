import t from 'tap'
import { pageOf, title } from '../helpers/authorization.ts'
import { startMailbox } from '../helpers/mailbox.ts'
import { startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { doneOf, enter, press, textOf } from './rooms.ts'

const mailbox = await startMailbox(t)
const server = await startServer(t, { mail: { url: mailbox.url, from: 'accounts@example.org' } })
const stored = async () => (await server.deps.store.find('accountByLogin', 'alice'))?.claims
const agent = new UserAgent(server.issuer)

t.test('a new address is proven by the link that is sent there', async (t) => {
  const page = await enter(server, agent, '/email')
  const after = pageOf(await agent.submit(page, { email: 'alice@new.example' }))
  t.match(doneOf(after), /^An e-mail is on its way/)
  t.equal((await stored())?.['email_verified'], false)
  const letter = await mailbox.arrived(1)
  t.strictSame(letter.to, ['alice@new.example'])
  const link = pageOf(await new UserAgent(server.issuer).open(letter.url))
  const proven = pageOf(await agent.open(letter.url))
  await agent.submit(proven, {})
  t.equal((await stored())?.['email_verified'], true)
  t.ok(link.forms.length > 0, 'a look alone proves nothing')
  t.match(
    textOf(await enter(server, agent, '/profile')),
    /alice@new\.example You have shown that it is yours/,
  )
})

t.test('the link is sent again on request, and never for an address that is proven', async (t) => {
  await agent.submit(await enter(server, agent, '/email'), { email: 'alice@newer.example' })
  await mailbox.arrived(2)
  const after = pageOf(await press(agent, await enter(server, agent, '/profile'), 'verify', '1'))
  t.match(doneOf(after), /^An e-mail is on its way/)
  const letter = await mailbox.arrived(3)
  await agent.submit(pageOf(await agent.open(letter.url)), {})
  const profile = await enter(server, agent, '/profile')
  t.notMatch(profile.html, /name="verify"/)
  await agent.submit(profile, { verify: '1' }, profile.forms[0])
  t.equal(mailbox.letters.length, 3)
})

t.test('a link to a new password that went to the old address is worthless', async (t) => {
  const stranger = new UserAgent(server.issuer)
  const forgot = pageOf(await stranger.open(`${server.issuer}/forgot-password`))
  await stranger.submit(forgot, { username: 'alice' })
  const { url, to } = await mailbox.arrived(4)
  t.strictSame(to, ['alice@newer.example'])
  await agent.submit(await enter(server, agent, '/email'), { email: 'alice@newest.example' })
  const page = pageOf(await stranger.open(url))
  t.equal(page.status, 404)
  t.equal(title(page), 'This link does not work any more')
})
