/** The audit log of a server and of the commands: the same file, another process. */
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { AuditEvent } from '../../src/domain/model.ts'
import { newFolder, run } from '../helpers/command.ts'
import {
  authorizationUrl,
  exchange,
  obtainCode,
  obtainTokens,
  post,
  refresh,
  register,
} from '../helpers/flow.ts'
import { alice, bob, startServer } from '../helpers/server.ts'
import { newUser } from '../helpers/user.ts'
import { UserAgent } from '../helpers/user-agent.ts'

const store = `sqlite:${join(newFolder(t), 'lychgate.db')}`
const jwt = 'https://api.example/jwt'
const server = await startServer(t, {
  store,
  resources: [{ identifier: jwt, name: 'Signed', scopes: ['courses:read'], tokenFormat: 'jwt' }],
})
const environment = { LYCHGATE_STORE: store, LYCHGATE_SECRET: 'a secret for tests that is long enough' }
const lychgate = (args: readonly string[], input?: string) =>
  run(args, { environment, ...(input !== undefined && { input }) })
const users = await server.deps.store.list('user')
const subOf = (name: string) => users.find(({ username }) => username === name)?.id

const everything = () => server.deps.store.audit({ since: 0, limit: 1000 })

/** The events that `act` causes. */
async function eventsOf(act: () => Promise<unknown>): Promise<readonly AuditEvent[]> {
  const before = (await everything()).length
  await act()
  return (await everything()).slice(before)
}

const namesOf = (events: readonly AuditEvent[]) => events.map(({ name }) => name)
const from = /^(127\.0\.0\.0\/24|0:0:0:0::\/64)$/

const client = await register(server)

t.test('a server audits the keys it made', async (t) => {
  const made = (await everything()).filter(({ name }) => name === 'key-made')
  t.strictSame(made.map(({ facts }) => facts['algorithm']).sort(), ['ES256', 'EdDSA', 'HS256', 'RS256'])
  t.match(made[0], { by: 'server', from: undefined })
})

t.test('registering, changing and deleting a client are one event each', async (t) => {
  const metadata = { client_name: 'Audited', redirect_uris: ['http://127.0.0.1/callback'] }
  const headers = { 'content-type': 'application/json' }
  let told: Record<string, string> = {}
  const registered = await eventsOf(async () => {
    const url = `${server.issuer}/api/oauth/register`
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(metadata) })
    told = (await response.json()) as Record<string, string>
  })
  const { registration_client_uri: uri = '', registration_access_token: token, client_id: id = '' } = told
  t.match(registered, [{ name: 'registration', by: 'client', clientId: id, from }])
  t.equal(registered.length, 1)
  const authorized = { ...headers, authorization: `Bearer ${token}` }
  const change = (body: object, auth = authorized) =>
    fetch(uri, { method: 'PUT', headers: auth, body: JSON.stringify(body) })
  t.strictSame(await eventsOf(() => change({ ...metadata, client_id: id })), [], 'nothing changed: no event')
  t.match(await eventsOf(() => change({ ...metadata, client_id: id, client_name: 'Changed' })), [
    { name: 'registration-changed', by: 'client', clientId: id, from },
  ])
  t.strictSame(await eventsOf(() => change({ client_id: id, redirect_uris: [] })), [], 'refused: no event')
  t.strictSame(await eventsOf(() => change(metadata, { ...authorized, authorization: 'Bearer x' })), [])
  t.match(await eventsOf(() => fetch(uri, { method: 'DELETE', headers: authorized })), [
    { name: 'registration-deleted', by: 'client', clientId: id, from },
  ])
})

t.test(
  'a sign-in, a consent and a redeemed code are events; refreshing and API calls are none',
  async (t) => {
    const agent = new UserAgent(server.issuer)
    let code = ''
    const approved = await eventsOf(async () => {
      code = await obtainCode(server, client, {
        agent,
        scope: ['openid'],
        fields: { scope: 'openid profile' },
      })
    })
    const who = { userId: subOf('alice'), clientId: client.id, by: 'user', from }
    t.match(approved, [
      { ...who, name: 'sign-in' },
      { ...who, name: 'consent', facts: { scope: 'openid' } },
    ])
    t.equal(approved.length, 2)
    let token = ''
    const redeemed = await eventsOf(async () => {
      const response = await exchange(server, client, code)
      token = ((await response.json()) as { refresh_token: string }).refresh_token
    })
    t.match(redeemed, [
      { ...who, by: 'client', name: 'grant', facts: { scope: 'openid', grant: /^[\w-]{16}$/ } },
    ])
    t.equal(redeemed.length, 1)
    t.strictSame(await eventsOf(() => refresh(server, client, token)), [])
    t.strictSame(await eventsOf(() => exchange(server, client, 'lyc_code_nothing')), [])
  },
)

t.test('a denied consent is an event', async (t) => {
  const user = newUser(server, bob)
  const events = await eventsOf(() => user.deny(authorizationUrl(server, client)))
  t.strictSame(namesOf(events), ['sign-in', 'consent-refused'])
  t.match(events[1], { by: 'user', userId: subOf('bob'), clientId: client.id, from })
})

t.test('a failed sign-in names the user, and never what was typed', async (t) => {
  const agent = new UserAgent(server.issuer)
  const landing = await agent.open(authorizationUrl(server, client))
  if (landing.at !== 'page') throw new Error('no sign-in page')
  const knock = (username: string) => agent.submit(landing.page, { username, password: 'wrong-guess' })
  t.match(await eventsOf(() => knock('alice@example.test')), [
    { name: 'sign-in-failed', userId: subOf('alice'), clientId: client.id, from },
  ])
  const unknown = await eventsOf(() => knock('my-typed-password'))
  t.match(unknown, [{ name: 'sign-in-failed', userId: undefined, facts: {} }])
  t.notMatch(JSON.stringify(await everything()), /wrong-guess|my-typed-password/)
})

t.test('signing out is an event, once', async (t) => {
  const { agent } = newUser(server)
  const { id_token: hint } = await obtainTokens(server, client, { agent })
  const out = () => agent.open(`${server.issuer}/oauth/logout?id_token_hint=${hint}`)
  t.match(await eventsOf(out), [
    { name: 'sign-out', by: 'user', userId: subOf('alice'), clientId: client.id },
  ])
  t.strictSame(await eventsOf(out), [])
})

t.test('every revocation of a grant is one event with its rule', async (t) => {
  const { agent } = newUser(server)
  const revoke = (token: string) => post(server, '/api/oauth/revoke', { token, client_id: client.id })
  const granted = () => obtainTokens(server, client, { agent, fields: { scope: 'openid courses:read' } })
  const signed = () =>
    obtainTokens(server, client, { agent, fields: { scope: 'courses:read', resource: jwt } })
  const ofRule = (t: Test, events: readonly AuditEvent[], by: string, rule: string) => {
    t.match(events, [{ name: 'revocation', by, userId: subOf('alice'), clientId: client.id, from }])
    t.strictSame(
      events.map(({ facts }) => facts['rule']),
      [rule],
    )
  }
  const first = await granted()
  const alone = 'rfc7009-2-access-revocation'
  ofRule(t, await eventsOf(() => revoke(first.access_token)), 'client', alone)
  t.strictSame(await eventsOf(() => revoke(first.access_token)), [], 'dead already')
  ofRule(t, await eventsOf(() => revoke(first.refresh_token)), 'client', 'rfc7009-2.1-refresh-cascades')
  const { access_token: jws } = await signed()
  ofRule(t, await eventsOf(() => revoke(jws)), 'client', alone)

  const code = await obtainCode(server, client, { agent })
  await exchange(server, client, code)
  const replay = await eventsOf(() => exchange(server, client, code))
  ofRule(t, replay, 'server', 'rfc6749-4.1.2-code-replay-revokes')

  const { refresh_token: used } = await granted()
  const next = ((await (await refresh(server, client, used)).json()) as { refresh_token: string })
    .refresh_token
  await refresh(server, client, next)
  const reuse = await eventsOf(() => refresh(server, client, used))
  ofRule(t, reuse, 'server', 'rfc9700-4.14.2-reuse-revokes-family')
})

t.test(
  "an operator's action is audited with the operator and the machine, and without a secret",
  async (t) => {
    const operator = { by: 'operator', from: /^[^@]+@.+$/ }
    const steps: readonly [string[], string | undefined, object[]][] = [
      [['user', 'add', 'carol'], 'a password for carol', [{ name: 'user-added', userId: /^user_/ }]],
      [['user', 'passwd', 'carol'], 'another for carol', [{ name: 'user-password-changed' }]],
      [['user', 'remove', 'carol', '--yes'], undefined, [{ name: 'user-removed' }]],
      [
        ['keys', 'rotate', '--algorithm', 'ES256'],
        undefined,
        [{ name: 'key-rotated' }, { name: 'key-made' }],
      ],
    ]
    for (const [args, input, expected] of steps) {
      const events = await eventsOf(() => lychgate(args, input))
      t.equal(events.length, expected.length, args.join(' '))
      for (const [n, event] of events.entries())
        t.match(event, { ...operator, ...expected[n] }, args.join(' '))
    }
    const add = [
      'client',
      'add',
      '--name',
      'Course site',
      '--redirect-uri',
      'https://courses.example/cb',
      '--json',
    ]
    let added: Record<string, string> = {}
    const events = await eventsOf(async () => {
      added = JSON.parse((await lychgate(add)).stdout) as Record<string, string>
      const { client_id: id = '' } = added
      await lychgate(['client', 'rotate-secret', id, '--yes'])
      await lychgate(['client', 'remove', id, '--yes'])
    })
    t.strictSame(namesOf(events), ['client-added', 'client-secret-changed', 'client-removed'])
    t.match(events[0], { ...operator, clientId: added['client_id'], facts: { name: 'Course site' } })
    t.notMatch(JSON.stringify(await everything()), /lyc_|a password for|another for/)
  },
)

t.test('lychgate audit prints the newest last, and filters by user, client, event and time', async (t) => {
  const { stdout } = await lychgate([
    'audit',
    '--since',
    '1d',
    '--user',
    alice.username,
    '--event',
    'consent',
  ])
  const lines = stdout.trimEnd().split('\n')
  for (const line of lines)
    t.match(line, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC {2}consent {2}user {2}\S+ {2}alice /)
  const all = await everything()
  const consents = all.filter(({ name, userId }) => name === 'consent' && userId === subOf('alice'))
  t.equal(lines.length, consents.length)
  const asJson = await lychgate(['audit', '--client', client.id, '--limit', '3', '--json'])
  const printed = JSON.parse(asJson.stdout) as Record<string, unknown>[]
  const last = all.filter(({ clientId }) => clientId === client.id).slice(-3)
  t.strictSame(
    printed.map(({ at, event, client_id: id, from }) => ({ at, event, id, from })),
    last.map(({ at, name, clientId, from }) => ({ at, event: name, id: clientId, from })),
  )
  t.match(printed[2], { sub: subOf('alice'), username: 'alice' })
  t.match(await lychgate(['audit', '--user', 'nobody']), { code: 1, stderr: /no user has this user name/ })
  t.match(await lychgate(['audit', '--since', 'yesterday']), { code: 64, stderr: /such as 12h or 1d/ })
})
