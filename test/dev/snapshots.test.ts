import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import t from 'tap'
import { remove, update } from '../../src/domain/decision.ts'
import {
  authorizationUrl,
  callApi,
  claimsOf,
  exchange,
  type Issuer,
  obtainCode,
  obtainTokens,
  redirectUri,
  refresh,
  register,
  signInAndApprove,
  type TestClient,
  type Tokens,
} from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'

const server = await startServer(t, { mode: 'dev' })

async function dev(method: string, path: string, body?: object, at: Issuer = server) {
  const response = await fetch(`${at.issuer}/_dev${path}`, {
    method,
    ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>) }
}

/** Added by an operator, as its consent is remembered. */
async function addOperatorClient(): Promise<TestClient> {
  const { id } = await register(server)
  await server.deps.store.transact('client', id, (client) => {
    if (client === undefined) throw new Error('it was just registered')
    const operatorClient = { ...client, origin: 'integration', consent: 'remember' } as const
    return { result: undefined, writes: [update('client', operatorClient)] }
  })
  return { id, method: 'none', redirectUri }
}

/** Where an authorization request leads this browser: `redirect` if no page is needed. */
async function landing(agent: UserAgent, client: TestClient, at: Issuer = server): Promise<string> {
  return (await agent.open(authorizationUrl(at, client))).at
}

t.test('a test can start signed in with consent given, any number of times', async (t) => {
  const client = await addOperatorClient()
  const agent = new UserAgent(server.issuer)
  await signInAndApprove(agent, await agent.open(authorizationUrl(server, client)))
  const taken = await dev('POST', '/snapshots/signed-in')
  t.equal(taken.status, 201)
  t.match(taken.body, { name: 'signed-in', users: 2, sessions: 1, grants: 1 })
  for (const _ of [1, 2]) {
    t.equal(await landing(agent, client), 'redirect')
    await server.deps.store.write(remove('client', client.id))
    await dev('POST', '/clock', { advance: '8d' })
    t.equal(await landing(agent, client), 'page')
    t.match(await dev('POST', '/snapshots/signed-in/restore'), {
      status: 200,
      body: { clock: { offset_seconds: 0 } },
    })
  }
  t.equal(await landing(agent, client), 'redirect')
})

t.test('restored tokens are valid again', async (t) => {
  const client = await register(server)
  const before = await obtainTokens(server, client)
  await dev('POST', '/snapshots/tokens')
  t.equal((await refresh(server, client, before.refresh_token)).status, 200)
  await dev('POST', '/clock', { advance: '1m' })
  t.equal((await refresh(server, client, before.refresh_token)).status, 400, 'a reuse, and all is revoked')
  t.equal((await callApi(server, '/api/oauth/userinfo', before.access_token)).status, 401)
  await dev('POST', '/snapshots/tokens/restore')
  t.equal((await callApi(server, '/api/oauth/userinfo', before.access_token)).status, 200)
  t.equal((await refresh(server, client, before.refresh_token)).status, 200)
})

t.test('the keys are those of the snapshot, though they were rotated since', async (t) => {
  const kids = async () => {
    const { keys } = (await (await fetch(`${server.issuer}/api/oauth/jwks`)).json()) as {
      keys: { kid: string }[]
    }
    return keys.map(({ kid }) => kid).sort()
  }
  const client = await register(server)
  const before = await kids()
  await dev('POST', '/snapshots/keys')
  await dev('POST', '/clock', { advance: '200d' })
  t.strictNotSame(await kids(), before)
  await dev('POST', '/snapshots/keys/restore')
  t.strictSame(await kids(), before)
  const { id_token: token } = await obtainTokens(server, client)
  const { kid } = JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString())
  t.ok(before.includes(kid))
})

t.test('the time can be left unchanged', async (t) => {
  await dev('POST', '/snapshots/now')
  await dev('POST', '/clock', { advance: '1h' })
  const { body } = await dev('POST', '/snapshots/now/restore', { keep_time: true })
  t.match(body, { clock: { offset_seconds: 3600 } })
  await dev('POST', '/clock', { set: '2027-01-01T00:00:00Z', freeze: true })
  await dev('POST', '/snapshots/frozen')
  await dev('POST', '/clock', { reset: true })
  const frozen = await dev('POST', '/snapshots/frozen/restore')
  t.match(frozen.body, { clock: { iso: '2027-01-01T00:00:00Z', frozen: true } })
  await dev('POST', '/clock', { reset: true })
})

t.test('requests see the store from before or after a restore, never a mixture', async (t) => {
  const client = await register(server)
  const { access_token: token } = await obtainTokens(server, client)
  await dev('POST', '/snapshots/busy')
  const statuses = await Promise.all(
    Array.from({ length: 60 }, async (_, index) => {
      if (index % 20 === 10) return (await dev('POST', '/snapshots/busy/restore')).status
      return (await callApi(server, '/api/oauth/userinfo', token)).status
    }),
  )
  t.ok(statuses.every((status) => status === 200))
})

t.test('a request that starts while a store is replaced waits', async (t) => {
  const events: string[] = []
  let end = () => {}
  const work = new Promise<void>((resolve) => {
    end = resolve
  })
  const held = server.app.holdRequests(() => work)
  const arrived = new Promise<void>((resolve) => {
    const listen = () => {
      unsubscribe('http.server.request.start', listen)
      resolve()
    }
    subscribe('http.server.request.start', listen)
  })
  const waiting = fetch(`${server.issuer}/livez`).then(() => events.push('answered'))
  await arrived
  // Turns of the event loop in which a response would arrive.
  for (let turn = 0; turn < 1000; turn++) await new Promise((resolve) => setImmediate(resolve))
  events.push('replaced')
  end()
  await Promise.all([held, waiting])
  t.strictSame(events, ['replaced', 'answered'])
  await t.rejects(server.app.holdRequests(() => Promise.reject(new Error('it failed'))))
  t.equal((await fetch(`${server.issuer}/livez`)).status, 200, 'a failure lets them go on')
})

t.test('a fork is a separate issuer that continues from the snapshot', async (t) => {
  const client = await addOperatorClient()
  const agent = new UserAgent(server.issuer)
  await signInAndApprove(agent, await agent.open(authorizationUrl(server, client)))
  await dev('POST', '/snapshots/base')
  const { status, body } = await dev('POST', '/snapshots/base/fork', { as: 'one' })
  t.equal(status, 201)
  const fork = { issuer: `${server.issuer}/_dev/forks/one` }
  t.strictSame(body, { name: 'one', issuer: fork.issuer })
  const discovery = await fetch(`${fork.issuer}/.well-known/openid-configuration`)
  t.match(await discovery.json(), { issuer: fork.issuer, token_endpoint: `${fork.issuer}/api/oauth/token` })

  t.equal(await landing(agent, client, fork), 'redirect', 'signed in, and consent given')
  const code = await obtainCode(fork, client, { agent })
  const tokens = (await (await exchange(fork, client, code)).json()) as Tokens
  t.equal(claimsOf(tokens.id_token)['iss'], fork.issuer)
  t.equal((await callApi(fork, '/api/oauth/userinfo', tokens.access_token)).status, 200)
  t.equal((await callApi(server, '/api/oauth/userinfo', tokens.access_token)).status, 401)

  await server.deps.store.write(remove('client', client.id))
  t.equal((await refresh(fork, client, tokens.refresh_token)).status, 200, 'what one forgets the other knows')
  const minted = await dev('POST', '/token', { user: 'bob' }, fork)
  t.equal(minted.status, 200)
  t.equal((await dev('POST', '/snapshots/base/fork', {}, fork)).status, 404, 'no forks of forks')

  t.match((await dev('GET', '/forks')).body, { forks: [{ name: 'one', issuer: fork.issuer }] })
  t.equal((await dev('DELETE', '/forks/one')).status, 204)
  t.equal((await fetch(`${fork.issuer}/.well-known/openid-configuration`)).status, 404)
})

t.test('snapshots are listed, replaced and deleted by name', async (t) => {
  await dev('POST', '/snapshots/listed')
  await dev('POST', '/snapshots/listed')
  const { snapshots } = (await dev('GET', '/snapshots')).body as { snapshots: { name: string }[] }
  t.equal(snapshots.filter(({ name }) => name === 'listed').length, 1)
  t.equal((await dev('DELETE', '/snapshots/listed')).status, 204)
  for (const path of ['/snapshots/listed/restore', '/snapshots/listed/fork']) {
    t.match(await dev('POST', path), {
      status: 404,
      body: { error_description: 'there is no such snapshot' },
    })
  }
  t.equal((await dev('POST', '/snapshots/not%20a%20name')).status, 400)
  t.equal((await dev('DELETE', '/forks/none')).status, 404)
})

t.test('a browser gets snapshots, faults and misbehaving issuers as pages', async (t) => {
  const own = await startServer(t, { mode: 'dev' })
  const read = async (path: string, accept: string) => {
    const response = await fetch(`${own.issuer}/_dev/${path}`, { headers: { accept } })
    t.equal(response.headers.get('vary')?.includes('Accept'), true, path)
    return response.text()
  }
  t.match(await read('snapshots', 'text/html'), 'No snapshot was taken.')
  await fetch(`${own.issuer}/_dev/snapshots/before`, { method: 'POST' })
  t.match(
    await read('snapshots', 'text/html'),
    /<h2>before<\/h2>\n<p>\d+ users, \d+ clients, \d+ sessions, \d+ grants<\/p>/,
  )
  t.match(JSON.parse(await read('snapshots', '*/*')), { snapshots: [{ name: 'before' }] })
  t.match(await read('faults', 'text/html'), 'No fault was requested.')
  t.match(await read('issuers', 'text/html'), `href="${own.issuer}/_dev/issuers/reference/_dev/try"`)
})
