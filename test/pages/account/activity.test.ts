import t from 'tap'
import { insert, remove } from '../../../src/domain/decision.ts'
import { auditEventNames } from '../../../src/domain/model.ts'
import { sentenceOf } from '../../../src/pages/account/activity.ts'
import { obtainTokens, register } from '../../helpers/flow.ts'
import { startServer } from '../../helpers/server.ts'
import { UserAgent } from '../../helpers/user-agent.ts'
import { enter, press, textOf } from './sections.ts'

const server = await startServer(t)
const agent = new UserAgent(server.issuer)
const client = await register(server, { client_name: 'Course <b>Sync</b>' })
await obtainTokens(server, client, { agent, fields: { scope: 'openid courses:read' } })

t.test('events are shown in sentences, newest first', async (t) => {
  await press(agent, await enter(server, agent, '/apps'), 'client', client.id)
  const { html } = await enter(server, agent, '/activity')
  const sentences = [...html.matchAll(/<li>([^\n]*?)<small>/g)].map(([, sentence = '']) =>
    sentence.replaceAll(/<\/?bdi>/g, ''),
  )
  const app = 'Course &lt;b&gt;Sync&lt;/b&gt;'
  t.strictSame(sentences, [
    `You disconnected ${app}.`,
    `${app} connected to your account.`,
    `You allowed ${app} to use your account.`,
    `You signed in to continue to ${app}.`,
  ])
  t.match(html, /<small>1 second ago, from this computer · \d+ \w+ \d{4}, \d\d:\d\d UTC<\/small>/)
})

t.test('a failed sign-in is shown, and a deleted app is shown with its id', async (t) => {
  const stranger = new UserAgent(server.issuer)
  await enter(server, stranger, '/apps', { username: 'alice', password: 'a guess' })
  await server.deps.store.write(remove('client', client.id))
  const text = textOf(await enter(server, agent, '/activity'))
  t.match(text, /Someone tried to sign in as you and failed\./)
  t.ok(text.includes(`You allowed ${client.id} to use your account.`))
})

t.test('of many events the newest fifty are shown, with where to find the others', async (t) => {
  const page = textOf(await enter(server, agent, '/activity'))
  t.notMatch(page, /Older events/)
  const user = await server.deps.store.find('userByLogin', 'alice')
  const event = {
    name: 'sign-out',
    at: server.now(),
    by: 'user',
    userId: user?.id ?? '',
    facts: {},
  } as const
  await server.deps.store.write(...Array.from({ length: 60 }, () => insert('auditEvent', event)))
  const full = await enter(server, agent, '/activity')
  t.equal(full.html.match(/<li>You signed out/g)?.length, 50)
  t.match(full.html, /Older events are in <a href="\/account\/privacy">the copy of your data<\/a>/)
})

t.test('every event about a user has its own sentence, whichever party caused it', async (t) => {
  const others =
    /^(key|client|registration|store|scope|resource)-|^group-(created|changed|deleted)$|^upstream-(added|changed|deleted)$|^registration$|^user-removed$/
  for (const name of auditEventNames) {
    for (const by of ['user', 'operator', 'client', 'server'] as const) {
      const { key } = sentenceOf({ name, at: 1, by, facts: {} })
      t.equal(key === 'activity.other', others.test(name), `${name} by ${by}`)
    }
  }
})
