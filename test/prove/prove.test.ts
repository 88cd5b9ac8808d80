/** `lychgate prove` against ourselves, as a command. */
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { start } from '../../src/dev/start.ts'
import { makeClientKey } from '../helpers/assertions.ts'
import { newFolder, run } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'

interface Report {
  readonly counts: Readonly<Record<string, number>>
  readonly remaining_clients: readonly string[]
  readonly results: readonly {
    readonly check: string
    readonly verdict: string
    readonly because?: string
    readonly observations: readonly { readonly sent: string; readonly came: string }[]
  }[]
}

const key = makeClientKey('ES256')
const redirectUri = 'https://app.example/callback'
const signing = {
  client_id: 'signing',
  client_name: 'signing',
  redirect_uris: [redirectUri],
  jwks: { keys: [key.jwk] },
}
const server = await start({ clients: [{ ...signing, token_endpoint_auth_method: 'private_key_jwt' }] })
t.teardown(server.stop)
const folder = newFolder(t)

t.test('we do what every checked clause wants, and our clients are deleted afterwards', async (t) => {
  const file = join(folder, 'report.json')
  const client = join(folder, 'client.json')
  const jwks = { keys: [{ ...key.privateKey.export({ format: 'jwk' }), kid: key.jwk['kid'] }] }
  const metadata = { ...signing, token_endpoint_auth_method: 'private_key_jwt', jwks }
  writeFileSync(client, JSON.stringify(metadata))
  const flags = ['--profile', 'all', '--client', client, '--report', file]
  const { code, stdout, stderr } = await run(['prove', server.issuer, ...flags])
  t.equal(stderr, '')
  t.equal(code, 0, stdout)
  const report: Report = JSON.parse(readFileSync(file, 'utf8'))
  t.strictSame(
    report.results.filter(({ verdict }) => !['pass', 'not applicable'].includes(verdict)),
    [],
  )
  t.ok(report.results.every(({ verdict, observations }) => verdict !== 'pass' || observations.length > 0))
  t.strictSame(report.remaining_clients, [])
  t.match(stdout, /0 fail, 0 warning, .* 0 not testable/)
  const text = readFileSync(file, 'utf8')
  t.notMatch(text, 'alice-in-dev')
  t.notMatch(text, /lyc_(?:at|rt|registration)_/)
})

t.test('a server without metadata is no pass', async (t) => {
  const port = await freePort()
  const empty = createServer((_request, response) => response.writeHead(404).end())
  await new Promise<void>((resolve) => empty.listen(port, '127.0.0.1', resolve))
  t.teardown(() => empty.close())
  const { code, stderr } = await run(['prove', `http://127.0.0.1:${port}`])
  t.equal(code, 1)
  t.match(stderr, /has no metadata/)
})

t.test('a server on the internet is not asked unless it is yours', async (t) => {
  const { code, stderr } = await run(['prove', 'http://9.9.9.9'])
  t.equal(code, 1)
  t.match(stderr, /--i-own-this/)
})

t.test('with a baseline only new failures count', async (t) => {
  const wrong = `${server.issuer}/`
  const only = ['--only', '^rfc8414-3.3-issuer-identical']
  const before = await run(['prove', wrong, ...only, '--json'])
  t.equal(before.code, 1)
  t.match(before.stderr, '1 failed')
  const file = join(folder, 'baseline.json')
  writeFileSync(file, before.stdout)
  const after = await run(['prove', wrong, ...only, '--baseline', file])
  t.equal(after.code, 0)
  t.match(after.stdout, /found: +issuer is/)
})

t.test('a file or an expression that cannot be used is named, and nothing is judged', async (t) => {
  const file = join(folder, 'wrong.json')
  writeFileSync(file, '{}')
  for (const [flags, says] of [
    [['--forms', file], `${file}: signIn is missing`],
    [['--client', file], `${file}: client_id is missing`],
    [['--only', 'rfc0000'], '--only matches no clause of the profile'],
  ] as const) {
    const { code, stdout, stderr } = await run(['prove', server.issuer, ...flags])
    t.equal(code, 64, stderr)
    t.match(stderr, says)
    t.equal(stdout, '')
  }
})
