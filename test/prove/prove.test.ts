/** `lychgate prove` against ourselves, as a command. */
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import Database from 'better-sqlite3'
import t from 'tap'
import { start } from '../../src/dev/start.ts'
import { nameOf } from '../../src/prove/check.ts'
import { checksOf, profileNamed } from '../../src/prove/profiles.ts'
import { makeClientKey } from '../helpers/assertions.ts'
import { ended, newFolder, run, start as startCommand } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'
import { startStandInDocuments } from '../helpers/stand-in-documents.ts'

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

const redirectUri = 'http://127.0.0.1:47999/callback'
const folder = newFolder(t)

/** A client with a key, as the server has it and as a file for the command. */
function signing(name: string, more: Readonly<Record<string, unknown>> = {}) {
  const key = makeClientKey('ES256')
  const client = {
    client_id: name,
    client_name: name,
    redirect_uris: [redirectUri, `${redirectUri}?kept=1%2B2&kept=3`],
    token_endpoint_auth_method: 'private_key_jwt',
    jwks: { keys: [key.jwk] },
    ...more,
  }
  const file = join(folder, `${name}.json`)
  const jwks = { keys: [{ ...key.privateKey.export({ format: 'jwk' }), kid: key.jwk['kid'] }] }
  writeFileSync(file, JSON.stringify({ ...client, jwks }))
  return { client, file }
}

const strict = { security_profile: 'fapi2', id_token_signed_response_alg: 'ES256', id_token_claims: 'none' }
const signed = {
  ...strict,
  security_profile: 'fapi2-message-signing',
  require_signed_request_object: true,
  response_modes: ['jwt', 'query.jwt', 'form_post.jwt'],
  authorization_signed_response_alg: 'ES256',
}
const [plain, ...others] = [
  signing('plain'),
  ...['a', 'b'].map((name) => signing(name, strict)),
  ...['c', 'd'].map((name) => signing(name, signed)),
] as const
const server = await start({ clients: [plain, ...others].map(({ client }) => client) })
t.teardown(server.stop)

const files = [plain, ...others].map(({ file }) => file)
for (const [profile, clients] of [
  // What oauth21 and mcp-2026-07-28 have is in it.
  ['all', files.slice(0, 1)],
  ['oidc-basic', files.slice(0, 1)],
  ['fapi2', files.slice(1, 3)],
  ['fapi2-ms', files.slice(3)],
] as const) {
  t.test(`we do what every clause of ${profile} wants, and our clients are deleted afterwards`, async (t) => {
    const file = join(folder, 'report.json')
    const flags = ['--profile', profile, '--client', ...clients, '--report', file]
    const { code, stdout, stderr } = await run(['prove', server.issuer, ...flags])
    t.equal(stderr, '')
    t.equal(code, 0, stdout)
    const report: Report = JSON.parse(readFileSync(file, 'utf8'))
    t.strictSame(
      report.results.filter(({ verdict }) => !['pass', 'not applicable', 'not run'].includes(verdict)),
      [],
    )
    t.ok(report.results.every(({ verdict, observations }) => verdict !== 'pass' || observations.length > 0))
    t.strictSame(report.remaining_clients, [])
    t.match(stdout, /0 fail, 0 warning, .* 0 not testable/)
    const text = readFileSync(file, 'utf8')
    t.notMatch(text, 'alice-in-dev')
    t.notMatch(text, /lyc_(?:at|rt|registration)_/)
  })
}

t.test(
  'what only the operator can add is not run without --client, and nothing else is left open',
  async (t) => {
    const { code, stdout } = await run(['prove', server.issuer, '--profile', 'oauth21'])
    t.equal(code, 0)
    t.match(stdout, /0 fail, 0 warning, 0 not applicable, 0 not testable, \d+ not run/)
    t.match(stdout, /rfc9101-6\.2-signature: .*\n +needs --client FILE for private_key_jwt\n/)
  },
)

t.test('each profile on its own is a part of what was checked', async (t) => {
  const ids = (profile: string) => checksOf(profileNamed(profile)).map(nameOf)
  const all = new Set(ids('all'))
  for (const profile of ['oauth21', 'mcp-2026-07-28'])
    t.strictSame(
      ids(profile).filter((name) => !all.has(name)),
      [],
    )
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

t.test(
  'with --cimd the clauses of metadata documents are checked, and without it they are not run',
  async (t) => {
    const site = await startStandInDocuments(t)
    const { client } = site.publish({ redirect_uris: [redirectUri] })
    const only = ['--profile', 'all', '--only', '^cimd-4']
    const without = await run(['prove', server.issuer, ...only])
    t.match(without.stdout, /: 0 pass, .* 4 not run\n/)
    t.match(without.stdout, 'needs --cimd URL')
    const sound = await run(['prove', server.issuer, ...only, '--cimd', client.id])
    t.match(sound.stdout, /: 4 pass, 0 fail, 0 warning, .* 0 not run\n/)
    t.equal(sound.code, 0, sound.stderr)
    t.ok(site.requests.length > 0, 'the server fetched the document')
    // A document with the identifier of another client is none.
    const { client: other } = site.publish({
      client_id: `${site.origin}/x.json`,
      redirect_uris: [redirectUri],
    })
    const wrong = await run(['prove', server.issuer, ...only, '--cimd', other.id])
    t.notMatch(wrong.stdout, /: 4 pass/)
  },
)

t.test('Ctrl-C ends a run with a report of what was judged, and its clients are deleted', async (t) => {
  const [data, port] = [newFolder(t), await freePort()]
  const serving = startCommand(['dev', '--port', `${port}`], {
    LYCHGATE_DATA: data,
    LYCHGATE_RATE_LIMITS: 'off',
  })
  t.teardown(() => serving.kill('SIGKILL'))
  const issuer = `http://localhost:${port}`
  while ((await fetch(`${issuer}/readyz`).catch(() => undefined))?.ok !== true) await setTimeout(50)
  const registered = () => {
    const database = new Database(join(data, 'lychgate.db'), { readonly: true })
    const { count } = database.prepare('SELECT count(*) AS count FROM clients').get() as { count: number } // one row
    database.close()
    return count
  }
  t.equal(registered(), 0)
  const proving = startCommand(['prove', issuer, '--profile', 'oauth21'])
  const end = ended(proving)
  while (registered() < 2) await setTimeout(20)
  proving.kill('SIGINT')
  const { code, stdout, stderr } = await end
  t.equal(code, 1)
  t.match(stderr, 'interrupted')
  t.match(stdout, / requests in [\d.]+ s, interrupted\n/)
  t.notMatch(stdout, 'remain at the server')
  t.equal(registered(), 0)
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
