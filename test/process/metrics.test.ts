/** The management listener of a running server, as Prometheus reads it. */
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { pageOf } from '../helpers/authorization.ts'
import { newFolder, run } from '../helpers/command.ts'
import { authorizationUrl, callApi, obtainTokens, refresh, register } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { startLogoutReceiver } from '../helpers/logout-receiver.ts'
import { devAlice, startProcess } from '../helpers/process.ts'
import { sendBytes } from '../helpers/raw.ts'
import { UserAgent } from '../helpers/user-agent.ts'

const [data, port] = [newFolder(t), await freePort()]
const environment = {
  LYCHGATE_MANAGEMENT_PORT: port,
  LYCHGATE_MANAGEMENT_HOSTS: 'node-1',
  LYCHGATE_SWEEP_SECONDS: 1,
  LYCHGATE_SIGN_IN_THROTTLE_FAILURES_PER_ACCOUNT_AND_PREFIX: 2,
}
const { server, stop } = await startProcess(t, data, environment)
const management = `http://127.0.0.1:${port}`
const client = await register(server)

/** The sample with this name and, among others, these labels. */
async function sample(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
  const lines = (await (await fetch(`${management}/metrics`)).text()).split('\n')
  const found = lines.filter((line) => {
    const [, own, told = ''] = /^([\w:]+)(?:\{(.*)\})? /.exec(line) ?? []
    return (
      own === name && Object.entries(labels).every(([label, value]) => told.includes(`${label}="${value}"`))
    )
  })
  return found.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

async function until(t: Test, isSo: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    if (await isSo()) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  t.fail('it never came to pass')
}

t.test('a Host that is not listed is rejected (DNS rebinding)', async (t) => {
  const statusFor = (host: string) =>
    new Promise((resolve, reject) => {
      const asked = request(`${management}/metrics`, { headers: { host } }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      asked.on('error', reject)
      asked.end()
    })
  for (const host of [
    'evil.example',
    `evil.example:${port}`,
    'localhost.evil.example',
    'node-1.evil.example',
  ])
    t.equal(await statusFor(host), 403, host)
  for (const host of [`127.0.0.1:${port}`, 'localhost', '10.9.9.9:9464', '[fd00::1]:9464', 'node-1:9464'])
    t.equal(await statusFor(host), 200, host)
})

t.test('requests are counted by the route, its outcome and its error code', async (t) => {
  const { access_token: access, refresh_token: token } = await obtainTokens(server, client, {
    user: devAlice,
  })
  const { refresh_token: next } = (await (
    await refresh(server, client, token)
  ).json()) as typeof Response.prototype & {
    refresh_token: string
  }
  await refresh(server, client, next)
  await callApi(server, '/api/oauth/userinfo', access)
  await refresh(server, client, token)
  await fetch(`${server.issuer}/no/such/path/${client.id}`)
  const requests = 'lychgate_http_requests_total'
  const tokens = { method: 'POST', route: '/api/oauth/token' }
  await until(t, async () => (await sample(requests, { ...tokens, error: 'invalid_grant' })) === 1)
  t.equal(await sample(requests, { ...tokens, outcome: '2xx', error: '' }), 3)
  t.equal(await sample(requests, { ...tokens, outcome: '4xx', error: 'invalid_grant' }), 1)
  t.equal(await sample(requests, { route: '/api/oauth/userinfo', outcome: '2xx' }), 1)
  t.equal(await sample(requests, { method: 'GET', route: 'none', outcome: '4xx' }), 1)
  t.equal(await sample('lychgate_http_request_seconds_count', tokens), 4)
  t.ok((await sample('lychgate_http_request_seconds_sum', tokens)) > 0)
  const page = await (await fetch(`${management}/metrics`)).text()
  t.notMatch(page, client.id, 'no path and no identifier becomes a label')
})

t.test('an error sent by redirect is counted with its error code, too', async (t) => {
  await new UserAgent(server.issuer).send(authorizationUrl(server, client, { scope: 'no:such' }))
  const rejected = { route: '/oauth/authorize', outcome: '3xx', error: 'invalid_scope' }
  await until(t, async () => (await sample('lychgate_http_requests_total', rejected)) === 1)
})

t.test('throttled sign-ins are counted', async (t) => {
  const agent = new UserAgent(server.issuer)
  const landing = await agent.open(authorizationUrl(server, client))
  if (landing.at !== 'page') throw new Error('no sign-in page')
  for (let attempt = 0; attempt < 4; attempt += 1) {
    await agent.submit(landing.page, { username: 'bob', password: 'wrong' })
  }
  await until(t, async () => (await sample('lychgate_sign_ins_throttled_total')) === 2)
})

t.test(
  'the store reports commits, calls, active grants, rejection records and the age of the keys',
  async (t) => {
    await until(t, async () => (await sample('lychgate_refusals_kept')) >= 3)
    await obtainTokens(server, client, { user: devAlice })
    await until(t, async () => (await sample('lychgate_grants_active')) === 1)
    t.ok((await sample('lychgate_store_commit_jobs_count')) > 5)
    t.ok((await sample('lychgate_store_commit_seconds_sum')) > 0)
    for (let n = 0; n < 20; n += 1) await register(server)
    t.ok((await sample('lychgate_store_checkpoint_seconds_count')) >= 1)
    t.ok(
      (await sample('lychgate_store_operation_seconds_count', { operation: 'transact', kind: 'grant' })) >= 4,
    )
    t.ok((await sample('lychgate_store_operation_seconds_count', { operation: 'find', kind: 'client' })) >= 4)
    t.equal(await sample('lychgate_store_unavailable_total'), 0)
    t.equal(await sample('lychgate_keys', { state: 'active' }), 4)
    t.ok((await sample('lychgate_key_age_seconds', { algorithm: 'ES256' })) < 600)
    t.ok((await sample('process_resident_memory_bytes')) > 1e7)
  },
)

t.test('the listener serves health and metrics, and nothing else', async (t) => {
  const metrics = await fetch(`${management}/metrics`)
  t.equal(metrics.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  t.strictSame(await (await fetch(`${management}/livez`)).json(), { status: 'live' })
  t.strictSame(await (await fetch(`${management}/readyz?now`)).json(), { status: 'ready' })
  t.equal((await fetch(`${management}/api/courses`)).status, 404)
  t.equal((await fetch(`${management}/toString`)).status, 404)
  const malformed = await fetch(`${management}/%zz`)
  t.equal(malformed.status, 400)
  t.equal(await malformed.text(), 'the path is not valid\n')
  t.equal((await fetch(`${management}/metrics`, { method: 'POST', body: 'x' })).status, 405)
  t.equal((await fetch(`${server.issuer}/metrics`)).status, 404, 'the public port has none')
})

t.test('logout requests to clients are counted by their result', async (t) => {
  const receiver = await startLogoutReceiver(t)
  const redirectUri = 'https://portal.example/callback'
  const { stdout } = await run(
    ['client', 'add', '--data', data, '--name', 'Portal', '--redirect-uri', redirectUri, '--json'].concat(
      ['--consent', 'skip', '--auth', 'client_secret_basic'],
      ['--backchannel-logout-uri', receiver.uri, '--backchannel-logout-session-required', 'true'],
    ),
  )
  const { client_id: id, client_secret: secret, backchannel_logout_uri: uri } = JSON.parse(stdout)
  t.equal(uri, receiver.uri)
  const agent = new UserAgent(server.issuer)
  const portal = { id, secret, method: 'client_secret_basic', redirectUri }
  const signOut = async () => {
    await obtainTokens(server, portal, { agent, user: devAlice })
    await agent.submit(pageOf(await agent.open(`${server.issuer}/oauth/logout`)), { decision: 'logout' })
    await receiver.next()
  }
  const deliveries = 'lychgate_logout_deliveries_total'
  await signOut()
  await until(t, async () => (await sample(deliveries, { outcome: 'delivered' })) === 1)
  receiver.conduct = 500
  await signOut()
  await until(t, async () => (await sample(deliveries, { outcome: 'retried' })) === 1)
  t.equal(await sample(deliveries), 2)
})

t.test('the rules of Prometheus and the dashboard of Grafana ask for what this server has', async (t) => {
  const page = await (await fetch(`${management}/metrics`)).text()
  const kinds = new Map(
    [...page.matchAll(/^# TYPE (\w+) (\w+)$/gm)].map(([, name = '', kind]) => [name, kind]),
  )
  /** Of Prometheus itself, and of node_exporter. */
  const foreign = ['up', 'node_filesystem_avail_bytes', 'node_time_seconds']
  /** Written by Prometheus, and chosen by the histogram. */
  const added = ['job', 'instance', 'le']
  const { panels } = JSON.parse(readFileSync('deploy/grafana-dashboard.json', 'utf8'))
  const { groups } = parse(readFileSync('deploy/prometheus-rules.yaml', 'utf8'))
  const expressions: readonly string[] = [...panels, ...groups].flatMap(({ targets, rules }) =>
    (targets ?? rules).map(({ expr }: { expr: string }) => expr),
  )
  t.ok(expressions.length > 25)
  for (const expression of expressions) {
    const names = [...expression.matchAll(/\b(?:up\b|(?:lychgate|process|nodejs|node)_\w+)(?:\{([^}]*)\})?/g)]
    t.ok(names.length > 0, expression)
    for (const [whole, matchers = ''] of names) {
      const name = whole.replace(/\{.*/, '')
      if (foreign.includes(name)) continue
      const histogram = /^(.*)_bucket$/.exec(name)?.[1]
      t.ok(histogram === undefined ? kinds.has(name) : kinds.get(histogram) === 'histogram', name)
      const labels = [...matchers.matchAll(/(\w+)(?:=|!=|=~)"/g)].map(([, label = '']) => label)
      const samples = page.split('\n').filter((line) => line.startsWith(`${name}{`))
      for (const label of labels.filter((one) => !added.includes(one)))
        t.ok(
          samples.some((line) => line.includes(`${label}="`)),
          `${name} has ${label}`,
        )
    }
  }
})

t.test('a request that is not HTTP, and a wrong Host, get a reason there too', async (t) => {
  const ask = (text: string) => sendBytes({ ...server, origin: management }, text)
  const close = 'Connection: close\r\n\r\n'
  for (const [about, text] of Object.entries({
    'no Host': `GET /metrics HTTP/1.1\r\n${close}`,
    'two of them': `GET /metrics HTTP/1.1\r\nHost: a\r\nHost: b\r\n${close}`,
    'no HTTP': 'hello\r\n\r\n',
  })) {
    const response = await ask(text)
    t.equal(response.status, 400, about)
    t.match(response.body, /Host header|not valid HTTP/, about)
  }
  const expecting = await ask(`GET /metrics HTTP/1.1\r\nHost: a\r\nExpect: nonsense\r\n${close}`)
  t.match(expecting, { status: 417, body: /100-continue/ })
})

t.test('a port in use ends the start in one line', async (t) => {
  const other = await freePort()
  const { code, stderr } = await run(['dev', '--data', newFolder(t), '--port', String(other)], {
    environment: { LYCHGATE_MANAGEMENT_PORT: String(port) },
  })
  t.equal(code, 78)
  t.match(
    stderr,
    /^lychgate: management\.port: cannot listen on 127\.0\.0\.1 port \d+ \(EADDRINUSE\); choose another\n$/,
  )
})

t.test('the listener closes with the server', async (t) => {
  t.equal((await stop('SIGTERM')).code, 0)
  await t.rejects(fetch(`${management}/livez`))
})
