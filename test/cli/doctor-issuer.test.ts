import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { run } from '../helpers/command.ts'
import { faultsOf, startProxied } from '../helpers/doctor.ts'
import { freePort } from '../helpers/free-port.ts'
import { startProxy } from '../helpers/proxy.ts'

const setup = await startProxied(t, { issuerPath: '/auth', trustProxy: [] })
const { certificates, environment, faults, issuer, proxy, server } = setup
const origin = new URL(issuer).origin

t.test('a server behind a proxy that it does not trust is found, with the setting to change', async (t) => {
  t.match(await faults(), [
    {
      check: 'forwarded address',
      level: 'problem',
      said: 'no proxy is trusted: all clients count as the proxy, one network for rate limits',
      found: 'trustProxy is empty',
      change: ['LYCHGATE_TRUST_PROXY=127.0.0.1', 'trustProxy: [127.0.0.1]   (in the file)'],
    },
  ])
})

t.test('all well-known paths of an issuer with a path must be forwarded', async (t) => {
  const findings = await faults({
    responses: (incoming, outgoing) => {
      if (incoming.url?.startsWith('/auth/')) return false
      outgoing.writeHead(404).end('nothing here')
      return true
    },
  })
  const lost = findings.filter(({ check }) => check === 'issuer')
  t.strictSame(
    lost.map(({ said }) => said),
    ['openid-configuration', 'oauth-authorization-server', 'oauth-protected-resource'].map(
      (name) => `${origin}/.well-known/${name}/auth has status 404`,
    ),
  )
  t.match(lost[0]?.change, [/^location \/\.well-known\/openid-configuration\/auth \{ proxy_pass http:/])
})

t.test('untrusted certificates, other names, expired ones and missing TLS are distinguished', async (t) => {
  const self = await startProxy(t, () => server.deps.config.port, certificates.otherName)
  const over = await startProxy(t, () => server.deps.config.port, certificates.expired)
  const plain = await startProxy(t, () => server.deps.config.port)
  const at = (port: number) => ({ LYCHGATE_ISSUER: `https://localhost:${port}` })
  const cases: [number, object][] = [
    [
      self.port,
      { said: 'the certificate is for another name', expected: 'localhost', found: 'DNS:auth.example.org' },
    ],
    [
      over.port,
      {
        said: 'the certificate is not valid at this time',
        found: /until Feb {2}1 .*2020/,
        change: [/^renew/],
      },
    ],
    [plain.port, { said: 'does not use TLS', change: [/^listen 443 ssl;/] }],
    [await freePort(), { said: /^nothing responds at https:\/\/localhost:\d+$/, found: /ECONNREFUSED/ }],
  ]
  for (const [port, finding] of cases) {
    const found = (await faults({}, at(port))).filter(({ check }) => check === 'issuer')
    t.match(found, [{ level: 'problem', ...finding }], JSON.stringify(finding))
  }
  // Another process does not trust the authority of this one.
  const { code, stdout } = await run(['doctor', '--json'], { environment })
  t.equal(code, 1)
  const { findings } = JSON.parse(stdout)
  const found = findings.filter(({ check }: { check: string }) => check === 'issuer')
  t.match(found, [
    {
      said: 'the certificate is from an unknown authority',
      found: /^issued by Test authority \(/,
      change: [/fullchain\.pem/, /^NODE_EXTRA_CA_CERTS=/],
    },
  ])
})

t.test('a host name without an address is found', async (t) => {
  const found = await faults({}, { LYCHGATE_ISSUER: 'https://auth.invalid' })
  t.match(
    found.find(({ check }) => check === 'issuer'),
    { level: 'problem', said: 'the name auth.invalid has no address', change: [/DNS/] },
  )
})

t.test(
  'a server that was started with other settings, and another process on its port, are found',
  async (t) => {
    const [finding] = await faults({}, { LYCHGATE_SERVICE_POLICY: 'https://example.org/privacy' })
    t.match(finding, {
      check: 'server',
      level: 'problem',
      said: /runs with other options: its document differs in op_policy_uri$/,
      change: [/^restart the server .* \(LYCHGATE_ISSUER, LYCHGATE_PORT\)$/],
    })
    const other = createServer((_request, response) => response.end('hello')).listen(0, '127.0.0.1')
    t.teardown(() => other.close())
    await new Promise((resolve) => other.once('listening', resolve))
    // `as`: what a server on a port has.
    const { port } = other.address() as AddressInfo
    const [foreign] = await faults({}, { LYCHGATE_PORT: String(port) })
    t.match(foreign, {
      check: 'server',
      said: /another server listens at/,
      change: ['LYCHGATE_PORT=9401', /^port: 9401/],
    })
  },
)

t.test('a server that follows the Host header is found', async (t) => {
  const { port } = server.deps.config
  const following = await startProxy(t, () => port)
  let host = ''
  following.behaviour = {
    responses: (incoming) => {
      host = incoming.headers.host ?? ''
      return false
    },
    response: (passing) => {
      const text = passing.body.toString()
      return {
        ...passing,
        body: Buffer.from(
          host.startsWith('localhost') || host.startsWith('127')
            ? text
            : text.replaceAll(origin, `https://${host}`),
        ),
      }
    },
  }
  const found = await faults({}, { LYCHGATE_PORT: String(following.port) })
  t.match(
    found.find(({ check }) => check === 'server'),
    { level: 'problem', said: 'follows the Host header' },
  )
})

t.test('while the server does not run, the proxy is not blamed', async (t) => {
  const quiet = { LYCHGATE_PORT: String(await freePort()) }
  const gone = {
    responses: (_: unknown, outgoing: { writeHead(status: number): { end(): void } }) => {
      outgoing.writeHead(502).end()
      return true
    },
  }
  t.match(await faults(gone, quiet), [
    { check: 'server', level: 'not checked', said: /the server does not run here$/ },
    {
      check: 'issuer',
      level: 'not checked',
      said: /responds with 502, as it does while the server does not run/,
    },
  ])
  t.match(await faultsOf({ ...environment, ...quiet }, { offline: true }), [{ check: 'network' }])
  t.equal(proxy.behaviour.responses, gone.responses)
})
