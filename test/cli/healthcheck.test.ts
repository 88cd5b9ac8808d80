import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { readinessUrl } from '../../src/cli/healthcheck.ts'
import { run } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'
import { startServer } from '../helpers/server.ts'

async function respondingWith(t: Test, listener: RequestListener): Promise<string> {
  const server = createServer(listener)
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const port = await freePort()
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  return `http://127.0.0.1:${port}`
}

t.test('a running server is ready, asked on its own port whatever its issuer is', async (t) => {
  const { issuer, origin } = await startServer(t, { issuerPath: '/t' })
  const port = new URL(origin).port
  const environment = {
    LYCHGATE_PORT: port,
    LYCHGATE_HOST: '0.0.0.0',
    LYCHGATE_ISSUER: 'https://a.example/t',
  }
  const [own, asked, json] = await Promise.all([
    run(['healthcheck'], { environment }),
    run(['healthcheck', '--url', issuer]),
    run(['healthcheck', '--json'], { environment }),
  ])
  const url = `http://127.0.0.1:${port}/readyz`
  t.match(own, { code: 0, stdout: `${url}: ready\n`, stderr: '' })
  t.match(asked, { code: 0, stdout: `http://localhost:${port}/readyz: ready\n`, stderr: '' })
  t.strictSame(JSON.parse(json.stdout), { url, ready: true })
})

t.test('a server that is not ready, not running, silent or another one is one line and 1', async (t) => {
  const stopping = await respondingWith(t, (_request, response) => {
    response.writeHead(503, { 'content-type': 'application/json' }).end('{"status":"stopping"}')
  })
  const other = await respondingWith(t, (_request, response) => response.end('<h1>It works!</h1>'))
  const elsewhere = await respondingWith(t, (_request, response) => {
    response.writeHead(302, { location: 'https://a.example/' }).end()
  })
  const mute = await respondingWith(t, () => undefined)
  const nothing = `http://127.0.0.1:${await freePort()}`
  const cases: [string, string][] = [
    [stopping, 'it responds with 503 (stopping)'],
    [other, 'it responds with 200, unlike Lychgate'],
    [elsewhere, 'it responds with 302, unlike Lychgate'],
    [mute, 'no response within 3 seconds'],
    [nothing, 'nothing listens there; is the server running?'],
  ]
  const results = await Promise.all(cases.map(([url]) => run(['healthcheck', '--url', url])))
  for (const [index, [url, why]] of cases.entries()) {
    t.match(results[index], {
      code: 1,
      stdout: '',
      stderr: `lychgate: ${url}/readyz: not ready: ${why}\n`,
    })
  }
  const { code, stdout } = await run(['healthcheck', '--json', '--url', stopping])
  t.equal(code, 1)
  t.match(JSON.parse(stdout), { ready: false, reason: 'it responds with 503 (stopping)' })
})

t.test('an invalid option is rejected before anything is sent', async (t) => {
  t.match(await run(['healthcheck', '--url', 'localhost:9400']), {
    code: 64,
    stderr: /^lychgate: option '--url <url>' argument 'localhost:9400' is invalid/,
  })
  t.match(await run(['healthcheck'], { environment: { LYCHGATE_PORT: '0' } }), {
    code: 78,
    stderr: /^lychgate: port: 0 [^\n]+ --url\n$/,
  })
})

t.test('a server on every address is asked on the loopback one', async (t) => {
  const urls: [string, string][] = [
    ['127.0.0.1', 'http://127.0.0.1:9400/readyz'],
    ['0.0.0.0', 'http://127.0.0.1:9400/readyz'],
    ['::', 'http://[::1]:9400/readyz'],
    ['fd00::7', 'http://[fd00::7]:9400/readyz'],
    ['auth.internal', 'http://auth.internal:9400/readyz'],
  ]
  for (const [host, url] of urls) t.equal(readinessUrl({ host, port: 9400 }), url)
})

t.test('the health check loads no database driver, no server and no cryptography', async (t) => {
  const folder = t.testdir({
    'trace.mjs': `import { appendFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
const list = new URL('loaded', import.meta.url)
registerHooks({ load: (url, context, next) => (appendFileSync(list, url + '\\n'), next(url, context)) })
`,
  })
  const environment = {
    NODE_OPTIONS: `--import ${join(folder, 'trace.mjs')}`,
    LYCHGATE_PORT: String(await freePort()),
  }
  t.match(await run(['healthcheck'], { environment }), { code: 1 })
  const loaded = readFileSync(join(folder, 'loaded'), 'utf8')
  t.match(loaded, 'cli/healthcheck.ts')
  t.notMatch(loaded, /node_modules\/(better-sqlite3|pg|drizzle-orm|fastify)\//)
})
