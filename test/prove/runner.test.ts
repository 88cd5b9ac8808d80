/** A run goes on and ends, whatever the server and its own checks do. */
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import t, { type Test } from 'tap'
import type { Check } from '../../src/prove/check.ts'
import { judge } from '../../src/prove/observation.ts'
import { presets } from '../../src/prove/presets.ts'
import { profileNamed } from '../../src/prove/profiles.ts'
import { terminalReport } from '../../src/prove/reports/terminal.ts'
import { prove } from '../../src/prove/runner.ts'
import { runRow } from '../../src/prove/table.ts'
import { openWire } from '../../src/prove/wire.ts'

async function listen(t: Test, server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  // `as`: of a server that listens on a port.
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}

const limits = {
  allowedHosts: [],
  isOwn: false,
  mostRequests: 100,
  perSecond: 0,
  signal: new AbortController().signal,
}

/** Runs these checks against a server with registration. */
async function runOn(
  t: Test,
  checks: readonly Pick<Check, 'run'>[],
  answer: RequestListener = () => {},
  deletes = 204,
) {
  const deleted: string[] = []
  const host = await listen(
    t,
    createServer((request, response) => {
      const { method = '', url = '' } = request
      const issuer = `http://${host}`
      const send = (members: object) => response.end(JSON.stringify(members))
      if (url.endsWith('/oauth-authorization-server'))
        return send({
          issuer,
          authorization_endpoint: `${issuer}/answer`,
          registration_endpoint: `${issuer}/register`,
          token_endpoint: 'no URL',
        })
      if (method === 'DELETE') deleted.push(url)
      if (url === '/register')
        return send({
          client_id: 'one',
          registration_client_uri: `${issuer}/register/one`,
          registration_access_token: 'token',
        })
      if (url.startsWith('/register/')) return response.writeHead(deletes).end()
      return url === '/answer' ? answer(request, response) : response.writeHead(404).end()
    }),
  )
  const { traits } = profileNamed('all')
  const plan = checks.map(({ run }, at): Check => ({ id: `${at}`, level: 'MUST', wants: 'nothing', run }))
  const found = await prove({
    ...limits,
    issuer: `http://${host}`,
    plan: () => ({ checks: plan, traits, profile: 'own' }),
    provided: [],
    recordings: presets,
    credentials: undefined,
  })
  return { ...found, deleted }
}

t.test('a check that throws is not testable, the next one runs, and clients are deleted', async (t) => {
  const { results, remaining, deleted } = await runOn(t, [
    {
      async run(lab) {
        await lab.clients.post({})
        throw new TypeError('this is a fault of the check')
      },
    },
    { run: async (lab) => judge(await lab.post('token_endpoint', {})) },
    { run: async (lab) => judge(lab.server.oauth?.seen ?? (await lab.clients.post({}))) },
  ])
  t.match(results, [
    { verdict: 'not testable', because: /itself failed: TypeError: this is a fault of the check/ },
    { verdict: 'not testable', because: /no URL: no URL/ },
    { verdict: 'pass' },
  ])
  t.strictSame(remaining, [])
  t.strictSame(deleted, ['/register/one'])
})

t.test('a client that the server does not delete is listed', async (t) => {
  const post: Check['run'] = async (lab) => judge(await lab.clients.post({}))
  const found = await runOn(t, [{ run: post }], undefined, 403)
  t.strictSame(found.remaining, ['one'])
  t.match(terminalReport(found), /^clients that remain at the server: one$/m)
})

t.test('that a wrong request gets no code shows nothing where a correct one gets none', async (t) => {
  const row = { send: 'authorize', with: { response_type: 'token' }, gets: 'no code' }
  const { results } = await runOn(
    t,
    [{ run: (lab) => runRow(lab, { level: 'MUST', wants: 'no code', ...row }) }],
    (_request, response) => response.writeHead(400).end(),
  )
  t.match(results, [{ verdict: 'not testable', because: /a correct request gets no code/ }])
})

t.test('a body without end is not read to its end', async (t) => {
  const [result] = (
    await runOn(
      t,
      [
        {
          run: async ({ wire, server }) => judge(await wire.send({ url: `${server.issuer}/answer` })),
        },
      ],
      (_request, response) => {
        const more = () => response.write('x'.repeat(100_000))
        response.on('drain', more)
        more()
      },
    )
  ).results
  t.match(result, { verdict: 'not testable', because: /more than 1000000 bytes/ })
})

t.test('requests go to the origin of the issuer, and to the hosts that were allowed', async (t) => {
  const wire = openWire({
    ...limits,
    issuer: new URL('https://id.example'),
    allowedHosts: ['a.example', 'b.example:8443'],
  })
  for (const url of [
    'https://id.example/x',
    'https://id.example:443/',
    'https://a.example:9/',
    'https://b.example:8443/',
  ])
    t.ok(wire.allows(url), url)
  for (const url of [
    'http://id.example/',
    'https://id.example:8443/',
    'https://id.example.evil.example/',
    'https://b.example/',
    'javascript:alert(1)',
    '/relative',
  ])
    t.notOk(wire.allows(url), url)
  await t.rejects(wire.send({ url: 'https://id.example:8443/' }), { message: /--allow-host id.example:8443/ })
  t.equal(wire.count(), 0)
})

t.test('a redirect to another host is not followed', async (t) => {
  let reached = 0
  const other = await listen(
    t,
    createServer((_request, response) => {
      reached += 1
      response.end()
    }),
  )
  const { results } = await runOn(
    t,
    [
      {
        async run(lab) {
          const visit = { redirectUri: 'http://127.0.0.1/callback' }
          const { seen } = await lab.browser.visit({ url: `${lab.server.issuer}/answer` }, visit)
          return judge(seen)
        },
      },
    ],
    (_request, response) => response.writeHead(302, { location: `http://${other}/` }).end(),
  )
  t.match(results, [{ verdict: 'pass', seen: [{ status: 302 }] }])
  t.equal(reached, 0)
})
