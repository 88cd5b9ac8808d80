import type { ChildProcess } from 'node:child_process'
import { connect, createServer } from 'node:net'
import pg from 'pg'
import t from 'tap'
import { type Ended, ended, run, start } from '../helpers/command.ts'
import {
  callApi,
  exchange,
  obtainCode,
  obtainTokens,
  postAs,
  refresh,
  register,
  type Tokens,
} from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { startRoundRobin } from '../helpers/round-robin.ts'
import { alice, type TestServer } from '../helpers/server.ts'
import { startPostgres } from '../storage/postgres-server.ts'

// Like compose.postgres.yaml: two nodes that start together on an empty database, and a proxy that uses them in turn.
const postgres = await startPostgres(t)
const ports = [await freePort(), await freePort()]
const origin = `http://localhost:${await freePort()}`
const environment = {
  LYCHGATE_STORE: await postgres.createDatabase(),
  LYCHGATE_SECRET: 's'.repeat(40),
  LYCHGATE_ISSUER: origin,
}
const nodes = ports.map((port) => start(['serve', '--port', String(port)], environment))
const ends = nodes.map(ended)
t.teardown(() => nodes.map((node) => node.kill('SIGKILL')))

const fields = { scope: 'openid courses:read' }
await startRoundRobin(t, Number(new URL(origin).port), ports)

const healthcheck = (port: number | undefined) => run(['healthcheck', '--url', `http://127.0.0.1:${port}`])
// `as`: as much of a test server as the flow needs.
const server = { issuer: origin, origin } as TestServer

t.test('two nodes that start together on an empty database become ready with the same keys', async (t) => {
  for (const [index, port] of ports.entries()) {
    await untilReady(port, nodes[index], ends[index])
  }
  const jwks = await Promise.all(
    ports.map(async (port) => (await fetch(`http://127.0.0.1:${port}/api/oauth/jwks`)).json()),
  )
  t.strictSame(jwks[0], jwks[1])
  const { username, password } = alice
  t.match(await run(['user', 'add', username], { environment, input: password }), { code: 0 })
})

t.test('a flow that alternates between the nodes succeeds, and what ends at one ends at both', async (t) => {
  const client = await register(server)
  for (const offset of [0, 1]) {
    // One request more, and every request goes to the other node.
    if (offset === 1) await fetch(`${origin}/livez`)
    const tokens = await obtainTokens(server, client, { fields })
    const next = (await (await refresh(server, client, tokens.refresh_token)).json()) as Tokens
    t.equal((await callApi(server, '/api/courses', next.access_token)).status, 200)
    t.equal((await callApi(server, '/api/courses', next.access_token)).status, 200)
    t.equal((await postAs(server, client, '/api/oauth/revoke', { token: next.refresh_token })).status, 200)
    for (const _port of ports) t.equal((await callApi(server, '/api/courses', next.access_token)).status, 401)
  }
  const code = await obtainCode(server, client)
  const responses = await Promise.all(Array.from({ length: 10 }, () => exchange(server, client, code)))
  t.equal(
    responses.filter(({ status }) => status === 200).length,
    1,
    'of ten redemptions at two nodes one wins',
  )
})

t.test('a node that starts while another session locks the keys logs it, and waits', async (t) => {
  const operator = new pg.Client(environment.LYCHGATE_STORE)
  await operator.connect()
  t.teardown(() => operator.end())
  await operator.query('begin; lock table keys in access exclusive mode')
  const port = await freePort()
  const node = start(['serve', '--port', String(port)], environment)
  t.teardown(() => node.kill('SIGKILL'))
  const end = ended(node)
  const said = new Promise<string>((resolve) => node.stderr?.once('data', (text) => resolve(String(text))))
  t.equal(
    await said,
    'lychgate: the store is unavailable: canceling statement due to lock timeout; trying again for 30 seconds\n',
  )
  t.equal(node.exitCode, null)
  await operator.query('rollback')
  await untilReady(port, node, end)
  node.kill('SIGTERM')
  t.match(await end, { code: 0 })
})

t.test('a node that starts before its database is up logs it, and waits', async (t) => {
  const [port, databasePort] = [await freePort(), await freePort()]
  const database = new URL(environment.LYCHGATE_STORE)
  const address = new URL(database)
  address.port = String(databasePort)
  const node = start(['serve', '--port', String(port)], { ...environment, LYCHGATE_STORE: address.href })
  t.teardown(() => node.kill('SIGKILL'))
  const end = ended(node)
  const said = new Promise<string>((resolve) => node.stderr?.once('data', (text) => resolve(String(text))))
  t.match(
    await said,
    /^lychgate: store: the PostgreSQL database cannot be used: .*ECONNREFUSED.*; trying again for 30 seconds\n$/,
  )
  const proxy = createServer((near) => {
    const far = connect(Number(database.port), database.hostname)
    near.pipe(far).pipe(near)
    for (const end of [near, far]) end.on('error', () => [near, far].map((each) => each.destroy()))
  })
  t.teardown(() => proxy.close())
  proxy.listen(databasePort, database.hostname)
  await untilReady(port, node, end)
  node.kill('SIGTERM')
  const { code, stderr } = await end
  t.equal(code, 0)
  t.equal(stderr.split('trying again').length, 2, 'it says so once')
})

t.test('an error that waiting cannot fix ends the start at once', async (t) => {
  const wrong = environment.LYCHGATE_STORE.replace(':test@', ':another@')
  const { code, stderr } = await run(['serve', '--port', String(await freePort())], {
    environment: { ...environment, LYCHGATE_STORE: wrong },
  })
  t.equal(code, 1)
  t.match(
    stderr,
    /^lychgate: store: the PostgreSQL database cannot be used: password authentication failed.*\n$/,
  )
  t.notMatch(stderr, 'trying again')
})

async function untilReady(
  port: number | undefined,
  node: ChildProcess | undefined,
  end: Promise<Ended> | undefined,
): Promise<void> {
  while (!(await fetch(`http://127.0.0.1:${port}/readyz`).catch(() => undefined))?.ok) {
    if (node?.exitCode !== null) throw new Error(`it ended: ${(await end)?.stderr}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

/** The database had no users when they started; the second node may have waited for the first. */
const onlyAnInvitation =
  /^(?:lychgate: .*; trying again for 30 seconds\n)?lychgate: No users yet\. .*\n\S+\/link\?code=\S+\n\s*$/

t.test('a stopping node is not ready and exits with 0, and the other one continues', async (t) => {
  nodes[0]?.kill('SIGTERM')
  t.match(await ends[0], { code: 0, stderr: onlyAnInvitation })
  t.match(await healthcheck(ports[0]), { code: 1 })
  t.match(await healthcheck(ports[1]), { code: 0 })
  ports.splice(0, 1)
  const client = await register(server)
  t.equal(
    (await callApi(server, '/api/courses', (await obtainTokens(server, client, { fields })).access_token))
      .status,
    200,
  )
})
