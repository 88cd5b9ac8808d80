import t from 'tap'
import { ConfigError } from '../../src/config/error.ts'
import { start } from '../../src/dev/start.ts'
import { callApi, claimsOf, exchange, obtainCode, refresh } from '../helpers/flow.ts'

const web = {
  client_name: 'Web app',
  client_id: 'web',
  client_secret: 'a secret for tests',
  redirect_uris: ['https://app.example.test/callback'],
  token_endpoint_auth_method: 'client_secret_basic',
} as const
const native = { client_name: 'Command line', redirect_uris: ['http://127.0.0.1/callback'] } as const

interface Credentials {
  readonly client_id: string
  readonly client_secret: string
}

const carol = {
  username: 'carol',
  email: 'carol@example.test',
  claims: { name: 'Carol Cooper', address: { locality: 'Ulm' } },
} as const
const server = await start({ users: [carol], clients: [web, native] })
t.teardown(() => server.stop())

t.test('a server with defaults has alice and bob, and its own port and store', async (t) => {
  await using other = await start()
  t.not(other.issuer, server.issuer)
  t.match(other.issuer, /^http:\/\/localhost:\d+$/)
  t.equal((await fetch(`${other.issuer}/.well-known/openid-configuration`)).status, 200)
  for (const user of ['alice', 'bob']) t.ok((await other.token({ user })).access_token)
  await t.rejects(server.token({ user: 'alice' }), { message: 'unknown user' })
})

t.test('a stopped server accepts no requests, and its port is free', async (t) => {
  const one = await start()
  const { port } = new URL(one.issuer)
  await one.stop()
  await t.rejects(fetch(one.issuer))
  await using two = await start({ port: Number(port) })
  t.equal(two.issuer, one.issuer)
})

t.test('its clients and users are the given ones, and sign in as usual', async (t) => {
  t.match(server.clients, [
    { client_id: 'web', client_secret: 'a secret for tests' },
    { client_id: /^client_[\w-]{22}$/, client_secret: undefined },
  ])
  const client = {
    id: 'web',
    secret: web.client_secret,
    method: 'client_secret_basic',
    redirectUri: web.redirect_uris[0],
  }
  const user = { username: 'carol', password: 'carol-in-dev' }
  const code = await obtainCode(server, client, { user, fields: { scope: 'openid profile' } })
  const tokens = (await (await exchange(server, client, code)).json()) as { access_token: string }
  const userinfo = await callApi(server, '/api/oauth/userinfo', tokens.access_token)
  t.match(await userinfo.json(), { name: 'Carol Cooper' })
})

t.test('tokens, time and faults are functions', async (t) => {
  const [, { client_id: id } = { client_id: '' }] = server.clients
  const tokens = await server.token({ user: 'carol', client_id: id, scope: 'openid', expires_in: '5m' })
  t.match(claimsOf(tokens.id_token ?? ''), { iss: server.issuer, aud: id, sub: tokens.sub })
  t.equal((await callApi(server, '/api/oauth/userinfo', tokens.access_token)).status, 200)
  const before = server.now()
  const { now } = await server.advance('6m')
  t.ok(now >= before + 360)
  t.equal((await callApi(server, '/api/oauth/userinfo', tokens.access_token)).status, 401)
  const client = { id, method: 'none', redirectUri: '' }
  await server.fault({ endpoint: 'token', fault: 'drop-after-commit', requests: 2 })
  await t.rejects(refresh(server, client, tokens.refresh_token ?? ''))
  await server.clearFaults()
  t.equal((await refresh(server, client, tokens.refresh_token ?? '')).status, 200)
  await t.rejects(server.fault({ endpoint: 'tokens', fault: '503' }), { message: /^endpoint must be / })
  t.equal((await server.time({ set: '2030-01-01T00:00:00Z', freeze: true })).iso, '2030-01-01T00:00:00Z')
  t.equal(server.now(), 1_893_456_000)
  t.equal((await server.time({ reset: true })).offset_seconds, 0)
})

t.test('snapshots are functions', async (t) => {
  const { access_token: token } = await server.token({ user: 'carol', scope: 'openid' })
  await server.snapshot('base')
  const { issuer } = await server.fork('base')
  await server.advance('2h')
  t.equal((await callApi(server, '/api/oauth/userinfo', token)).status, 401)
  await server.restore('base')
  t.equal((await callApi(server, '/api/oauth/userinfo', token)).status, 200)
  t.equal((await callApi({ issuer }, '/api/oauth/userinfo', token)).status, 200)
  await t.rejects(server.restore('none'), { message: 'there is no such snapshot' })
})

t.test('it emits events', async (t) => {
  const flows = await server.flows()
  t.ok(flows.some((flow) => flow.exchanges.some(({ step }) => step === 'code exchange')))
})

t.test('its clock is the given one', async (t) => {
  let now = 1_800_000_000
  await using own = await start({ clock: () => now })
  const { issued_at: at } = await own.token({ user: 'alice' })
  t.equal(at, 1_800_000_000)
  now += 86_400
  t.equal(own.now(), 1_800_086_400)
  await using still = await start({ clock: { set: '2027-01-01T00:00:00Z', freeze: true } })
  t.equal(still.now(), 1_798_761_600)
})

t.test('machines, resource servers and receivers of logout tokens can be among its clients', async (t) => {
  const resources = ['https://api.example']
  const scopes = ['courses:read']
  await using own = await start({
    config: { resources: [{ identifier: resources[0], name: 'API', scopes }] },
    clients: [
      { client_name: 'Import', grant_types: ['client_credentials'], scope: scopes.join(' '), resources },
      { client_name: 'API', resources },
      { ...native, backchannel_logout_uri: 'http://127.0.0.1:1/logout', refresh_tokens: 'session' },
    ],
  })
  const [machine, api] = own.clients as [Credentials, Credentials]
  const call = async (path: string, as: Credentials, fields: Record<string, string>) => {
    const authorization = `Basic ${btoa(`${as.client_id}:${as.client_secret}`)}`
    const body = new URLSearchParams(fields)
    const response = await fetch(`${own.issuer}/api/oauth/${path}`, {
      method: 'POST',
      headers: { authorization },
      body,
    })
    return (await response.json()) as Record<string, unknown>
  }
  t.equal(own.clients.length, 3)
  const got = await call('token', machine, { grant_type: 'client_credentials' })
  t.match(got, { scope: 'courses:read' })
  const token = String(got['access_token'])
  t.match(await call('introspect', api, { token }), { active: true, client_id: machine.client_id })
})

t.test('its configuration has the structure of the file', async (t) => {
  const lines: string[] = []
  const config = { lifetimes: { accessTokenSeconds: 120 }, service: { name: 'Course site' } }
  await using own = await start({ config, log: (line) => void lines.push(line) })
  t.equal((await own.token({ user: 'alice' })).expires_in, 120)
  t.ok(lines.some((line) => line.includes('/_dev/token')))
})

t.test('an invalid option is rejected by name before the server listens', async (t) => {
  const cases: [Parameters<typeof start>[0], RegExp][] = [
    [{ config: { lifetimes: { acessTokenSeconds: 1 } } }, /did you mean accessTokenSeconds/],
    [{ config: { issuer: 'https://auth.example.com' } }, /^issuer: lychgate dev /],
    [{ users: [{ username: 'a b' }] }, /username must have/],
    [{ clients: [{ client_name: 'x', redirect_uris: ['nonsense'] }] }, /^clients\.0: /],
    [{ clients: [{ ...native, scope: 'courses:sell' }] }, /^clients\.0: /],
  ]
  for (const [options, message] of cases) {
    const rejected = await start(options).catch((error: unknown) => error)
    t.ok(rejected instanceof ConfigError)
    t.match((rejected as Error).message, message)
  }
})

t.test('an attribute with a scope is in UserInfo of every client that has the scope', async (t) => {
  const attributes = [
    { name: 'department', type: 'choice', values: ['physics'], scope: 'profile', visible: 'user' },
    { name: 'level', type: 'number', visible: 'user' },
  ]
  const server = await start({ config: { accounts: { attributes } } })
  t.teardown(() => server.stop())
  const userInfo = async (scope: string) => {
    const { access_token: token } = await server.token({ user: 'alice', scope })
    const headers = { authorization: `Bearer ${token}` }
    const response = await fetch(`${server.issuer}/api/oauth/userinfo`, { headers })
    return (await response.json()) as Record<string, unknown>
  }
  const profile = await userInfo('openid profile')
  t.match(profile, { name: 'Alice Mary Archer', department: 'physics' })
  t.notOk('level' in profile, 'no scope names it')
  t.notOk('department' in (await userInfo('openid')))
  const metadata = await fetch(`${server.issuer}/.well-known/openid-configuration`)
  t.match(await metadata.text(), '"department"')
  const unknown = attributes.map((one) => ({ ...one, scope: 'none' }))
  await t.rejects(start({ config: { accounts: { attributes: unknown } } }), {
    message: /accounts\.attributes\.0\.scope: none is not in the scope catalogue/,
  })
})
