/** `npm run openid-suite` without the suite: what it needs, what it registers, how it drives a module, what it writes. */
import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { configurationOf } from '../../scripts/openid-suite/configuration.ts'
import { plansOf } from '../../scripts/openid-suite/plans.ts'
import {
  isUnexpected,
  type PlanResult,
  tableOf,
  unexplained,
  withResults,
} from '../../scripts/openid-suite/results.ts'
import { runModule } from '../../scripts/openid-suite/run-plan.ts'
import { startServer as startLychgate } from '../../scripts/openid-suite/server.ts'
import { signInWith } from '../../scripts/openid-suite/sign-in.ts'
import { startTlsFront } from '../../scripts/openid-suite/tls-front.ts'
import { makeCertificates } from '../helpers/certificates.ts'
import { newFolder } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'
import { startWithUpstream } from '../helpers/stand-in-upstream.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const [plan] = plansOf('https://suite.example')
if (plan === undefined) throw new Error('there is no plan')

async function listen(t: Test, respond: RequestListener): Promise<number> {
  const server = createServer(respond)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port // of a listening server
}

t.test('what is missing is one line: a jar, Java, a Java that is new enough, a plan', async (t) => {
  const folder = newFolder(t)
  const jar = join(folder, 'suite.jar')
  writeFileSync(jar, '')
  const withJava = (version: string) => {
    const bin = join(folder, version, 'bin')
    mkdirSync(bin, { recursive: true })
    const java = join(bin, 'java')
    writeFileSync(java, `#!/bin/sh\necho 'openjdk version "${version}" 2026-10-20' >&2\n`)
    chmodSync(java, 0o755)
    return { JAVA_HOME: dirname(bin) }
  }
  const said = (args: readonly string[], environment: Readonly<Record<string, string>>) =>
    new Promise<readonly unknown[]>((resolve) => {
      const script = [join(root, 'scripts/openid-suite.ts'), ...args]
      // Only this: a child of tap inherits what would slow it down.
      const env = { PATH: folder, ...environment }
      execFile(process.execPath, script, { env }, (error, stdout, stderr) =>
        resolve([error?.code, stdout, stderr]),
      )
    })
  const lineOf = (text: string) => [64, '', `openid-suite: ${text}\n`]
  t.strictSame(
    await said([], {}),
    lineOf('name the jar of the conformance suite: npm run openid-suite -- JAR'),
  )
  t.strictSame(await said(['no.jar'], {}), lineOf('there is no jar at no.jar'))
  const needs = 'the suite needs Java 21 or newer: '
  t.strictSame(await said([jar], {}), lineOf(`${needs}none in JAVA_HOME or PATH`))
  t.strictSame(await said([jar], withJava('17.0.2')), lineOf(`${needs}JAVA_HOME or PATH has 17`))
  t.match(await said([jar, 'basics'], withJava('25')), [
    64,
    '',
    /^openid-suite: there is no plan basics, but basic, /,
  ])
})

t.test('the lines of docs/testing.md register what every configuration needs', async (t) => {
  const folder = newFolder(t)
  const port = await freePort()
  const issuer = `http://localhost:${port}`
  writeFileSync(join(folder, 'cert.pem'), '')
  const server = await startLychgate({
    kind: 'default',
    issuer,
    port,
    folder,
    callbacks: 'https://localhost:9522/test/a/lychgate',
    certificate: join(folder, 'cert.pem'),
    upstreams: [],
  })
  t.teardown(() => server.stop())
  for (const { name, configuration, before } of plansOf('https://localhost:9522/test/a/lychgate')) {
    for (const client of before?.clients ?? []) {
      const id = server.registered.clients[client]?.id
      t.type(id, 'string', client)
      for (const command of before?.commands ?? []) await server.lychgate('client', ...command(id ?? ''))
    }
    if (configuration === undefined) continue
    const made = JSON.parse(JSON.stringify(configurationOf(configuration, server.registered)))
    t.match(made.server.discoveryUrl, issuer, name)
    const isDynamic = configuration === 'dynamic'
    for (const client of [made.client, made.client2].filter((client) => client !== undefined))
      t.match(client, isDynamic ? { initial_access_token: /^\S{20,}$/ } : { client_id: /^client_/ }, name)
    if (configuration === 'basic') t.match(made.client_secret_post, { client_secret: /^lyc_secret_/ })
    if (configuration === 'fapi2')
      t.match(made.client, { scope: /^openid /, jwks: { keys: [{ kid: 'one', d: String }] } })
  }
})

/** A suite with one module, whose states are those of the list; the last one lasts. */
async function startSuite(
  t: Test,
  states: readonly object[],
  log: readonly object[] = [],
  browser: object = {},
) {
  const asked: string[] = []
  let polls = 0
  const port = await listen(t, (incoming, outgoing) => {
    const { pathname } = new URL(incoming.url ?? '', 'http://suite')
    asked.push(`${incoming.method} ${pathname}`)
    const state = () => states[Math.min(polls++, states.length - 1)]
    const body = pathname.startsWith('/api/info/')
      ? state()
      : pathname.startsWith('/api/log/')
        ? log
        : pathname.startsWith('/api/runner/browser/')
          ? browser
          : { id: 'a-module' }
    outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  return { api: `http://127.0.0.1:${port}/api/`, asked }
}

const waiting = { status: 'WAITING' }
const drive = { seconds: 30, assist: async () => undefined }

t.test('a module ends with the result of the suite, and with what its log says', async (t) => {
  const log = [
    { result: 'SUCCESS', src: 'A', msg: 'fine' },
    { result: 'FAILURE', src: 'B', msg: 'no', expected: 1, actual: 2, requirements: ['OIDCC-2'] },
    {
      result: 'WARNING',
      src: 'C',
      msg: 'hm',
      body_json: { error: 'invalid_request', error_description: 'x' },
    },
    { msg: 'Show it', page_source: '<main><h1>Sign in</h1>\n<img alt="" src="/a.png"></main>' },
  ]
  const { api } = await startSuite(t, [waiting, { status: 'FINISHED', result: 'FAILED' }], log)
  const assisted: string[] = []
  const assist = async (state: string) => {
    assisted.push(state)
    return 'signed in'
  }
  t.match(await runModule('a-plan', { testModule: 'one' }, { ...drive, api, assist }), {
    module: 'one',
    result: 'FAILED',
    remarks: [
      'signed in',
      'FAILURE: B: no (expected 1, got 2) [OIDCC-2]',
      'WARNING: C: hm (invalid_request: x)',
      'page asked for: Show it',
      'page: Sign in (picture /a.png)',
    ],
  })
  t.strictSame(assisted, ['WAITING'], 'once')
})

t.test('a module that waits for a page which no browser opens is stopped, and did not pass', async (t) => {
  const { api, asked } = await startSuite(t, [waiting], [], { urls: ['https://op.example'], runners: [] })
  const result = await runModule('a-plan', { testModule: 'one' }, { ...drive, api, idleSeconds: 0.1 })
  t.match(result, { result: 'INTERRUPTED', remarks: [/^no end in state WAITING after \d+ s$/] })
  t.ok(asked.includes('DELETE /api/runner/a-module'))
})

t.test('a browser at work, and a module without a page, have the time of the whole module', async (t) => {
  for (const browser of [{ urls: ['https://op.example'], runners: [{}] }, { urls: [] }, {}]) {
    const passed = { status: 'FINISHED', result: 'PASSED' }
    const { api } = await startSuite(t, [waiting, waiting, waiting, passed], [], browser)
    const result = await runModule('a-plan', { testModule: 'one' }, { ...drive, api, idleSeconds: 0.1 })
    t.equal(result.result, 'PASSED', JSON.stringify(browser))
  }
})

t.test('the module that rotates keys is started after that, and no other is started', async (t) => {
  const configured = { status: 'CONFIGURED' }
  for (const [testModule, times] of [
    ['oidcc-server-rotate-keys', 1],
    ['oidcc-server', 0],
  ] as const) {
    const { api, asked } = await startSuite(t, [
      configured,
      configured,
      { status: 'FINISHED', result: 'PASSED' },
    ])
    await runModule('a-plan', { testModule }, { ...drive, api })
    t.equal(asked.filter((request) => request === 'POST /api/runner/a-module').length, times, testModule)
  }
})

t.test('a sign-in with an upstream is made and judged as a browser sees it', async (t) => {
  const { upstream, server } = await startWithUpstream(t, { firstSignIn: 'any' })
  t.equal(await signInWith('work', server.issuer), 'signed in')
  upstream.says = { claims: { nonce: 'another' } }
  t.equal(await signInWith('work', server.issuer), 'rejected')
  await t.rejects(signInWith('other', server.issuer), /no button for other/)
})

t.test('metadata of another issuer ends a sign-in before the browser leaves', async (t) => {
  const { upstream, server } = await startWithUpstream(t, { firstSignIn: 'any' })
  upstream.says = { metadata: { issuer: 'https://other.example' } }
  t.equal(await signInWith('work', server.issuer), 'rejected')
  t.strictSame(upstream.asked, [])
})

t.test('the TLS front passes headers on as they came, except for those about the way', async (t) => {
  const { localhost, authority } = makeCertificates(newFolder(t))
  let seen: readonly string[] = []
  const target = await listen(t, (incoming, outgoing) => {
    seen = incoming.rawHeaders
    outgoing.end('here')
  })
  const port = await freePort()
  const stop = await startTlsFront(localhost, port, target)
  t.teardown(stop)
  const headers = {
    DPoP: ['one', 'two'],
    'X-Forwarded-For': '203.0.113.7',
    Forwarded: 'for=203.0.113.7',
    'X-SSL-Protocol': 'SSLv3',
  }
  const status = await new Promise((resolve, reject) => {
    const options = { host: 'localhost', port, ca: authority, headers, agent: false }
    request(options, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
      .on('error', reject)
      .end()
  })
  t.equal(status, 200)
  const valuesOf = (name: string) => seen.filter((_, index) => seen[index - 1]?.toLowerCase() === name)
  t.strictSame(valuesOf('dpop'), ['one', 'two'])
  t.strictSame(valuesOf('x-forwarded-for'), ['127.0.0.1'])
  t.strictSame(valuesOf('x-forwarded-proto'), ['https'])
  t.strictSame(valuesOf('x-ssl-protocol'), ['TLSv1.3'])
  t.strictSame(valuesOf('forwarded'), [])
})

const run = { version: '5 (a)', date: '2026-11-29', commit: 'b' }
const moduleOf = (module: string, result: string) => ({ module, result, seconds: 1, remarks: [] })

t.test('the table counts how modules ended', async (t) => {
  const expected = { ...plan, title: 'A', note: 'code', expected: { three: 'FAILED' } }
  const modules = ['PASSED', 'REVIEW', 'FAILED'].map((result, index) =>
    moduleOf(['one', 'two', 'three'][index] ?? '', result),
  )
  const results: readonly PlanResult[] = [
    { plan: expected, modules },
    { plan: { ...plan, title: 'B', note: '' }, modules: [moduleOf('three', 'INTERRUPTED')] },
  ]
  t.equal(
    tableOf(run, results),
    `| plan | variant | modules | passed | review | skipped | warning | failed | suite | on | commit |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| A | code | 3 | 1 | 1 | 0 | 0 | 1 | 5 (a) | 2026-11-29 | b |
| B | | 1 | 0 | 0 | 0 | 0 | 1 | 5 (a) | 2026-11-29 | b |`,
  )
  t.strictSame(
    results.flatMap((result) => result.modules.map((module) => isUnexpected(result.plan, module))),
    [false, false, false, true],
  )
  t.strictSame(unexplained('`two` and `…-ree`', results), ['three'])
  t.strictSame(unexplained('`two` and `…ree`', results), [])
})

t.test('the rows of plans that were run take their place in the page, and the others stay', async (t) => {
  const page = readFileSync(join(root, 'test/requirements/openid-suite.md'), 'utf8')
  const linesOf = (text: string) =>
    text.split('\n').filter((line) => line.startsWith('| OpenID Connect Core'))
  const after = withResults(page, run, [{ plan, modules: [moduleOf('one', 'PASSED')] }])
  const [first, ...others] = linesOf(after)
  t.equal(first, `| ${plan.title} | | 1 | 1 | 0 | 0 | 0 | 0 | 5 (a) | 2026-11-29 | b |`)
  t.strictSame(others, linesOf(page).slice(1))
  t.equal(withResults(page, run, []), page)
  t.throws(() => withResults('nothing', run, []))
})

t.test('the ledger and docs/conformance.md have the same table, with a row for each plan', async (t) => {
  const pages = ['test/requirements/openid-suite.md', 'docs/conformance.md'].map((page) =>
    readFileSync(join(root, page), 'utf8'),
  )
  const [first, second] = pages.map((page) => /<!-- suite:start -->[\s\S]*<!-- suite:end -->/.exec(page)?.[0])
  t.equal(first, second)
  for (const { title, note } of plansOf('')) {
    const row = `| ${title} | ${note} |`.replaceAll('|  |', '| |')
    t.ok(first?.includes(row), row)
  }
})
