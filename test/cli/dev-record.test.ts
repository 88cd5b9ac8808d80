/** `lychgate dev record`: what a client did at a misbehaving issuer, as files, and the tests among them. */
import { spawn } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { start } from '../../src/dev/start.ts'
import { entry, newFolder, run } from '../helpers/command.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const server = await start({ config: { dev: { autoSignIn: 'alice', autoConsent: 'on' } } })
t.teardown(server.stop)
const folder = newFolder(t)
const record = (...flags: string[]) => run(['dev', 'record', ...flags, '--issuer', server.issuer])

/** A client that compares iss with its issuer only if it is a sound one. */
const client = join(folder, 'client.mjs')
writeFileSync(
  client,
  `
const [issuer, redirectUri] = [process.env.ISSUER, 'http://127.0.0.1/callback']
const send = (path, body) => fetch(issuer + path, { method: 'POST', body })
const registration = { method: 'POST', headers: { 'content-type': 'application/json' } }
const metadata = JSON.stringify({ redirect_uris: [redirectUri] })
const { client_id } = await (await fetch(issuer + '/api/oauth/register', { ...registration, body: metadata })).json()
const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
const asked = { response_type: 'code', client_id, redirect_uri: redirectUri, scope: 'openid courses:read', state: 'x',
  code_challenge: challenge, code_challenge_method: 'S256' }
let at = new URL(issuer + '/oauth/authorize?' + new URLSearchParams(asked))
let cookie = ''
while (!at.href.startsWith(redirectUri)) {
  const response = await fetch(at, { redirect: 'manual', headers: { cookie } })
  cookie = [cookie, ...response.headers.getSetCookie().map((line) => line.split(';')[0])].filter(Boolean).join('; ')
  const location = response.headers.get('location')
  if (location === null) throw new Error(at + ' ' + response.status)
  at = new URL(location, at)
}
if (process.argv[2] === 'sound' && at.searchParams.get('iss') !== issuer) process.exit(1)
const exchange = { grant_type: 'authorization_code', code: at.searchParams.get('code'), redirect_uri: redirectUri,
  client_id, code_verifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk' }
const { access_token: token } = await (await send('/api/oauth/token', new URLSearchParams(exchange))).json()
await fetch(issuer + '/api/courses', { headers: { authorization: 'Bearer ' + token } })
`,
)
const issuerOf = (id: string) => `${server.issuer}/_dev/issuers/${id}`
const command = (how: string) => `${process.execPath} ${client} ${how}`

/** Runs a program to its end, while the server of this process responds. */
async function ended(program: string, args: readonly string[], env: NodeJS.ProcessEnv) {
  const child = spawn(program, args, { cwd: folder, env })
  const exit = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const [status, stdout, stderr] = await Promise.all([exit, text(child.stdout), text(child.stderr)])
  return { status, stdout, stderr }
}

t.test('a flow becomes a HAR, curl lines and two tests, without its secrets', async (t) => {
  const there = await record('iss-missing', '--to', folder)
  t.equal(there.code, 1, 'no client was there')
  t.match(there.stderr, `no client was at ${issuerOf('iss-missing')}`)
  const ran = await ended(process.execPath, [client, 'careless'], { ISSUER: issuerOf('iss-missing') })
  t.strictSame(ran, { status: 0, stdout: '', stderr: '' })
  const { code, stdout, stderr } = await record('iss-missing', '--to', folder, '--run', command('careless'))
  t.strictSame({ code, stderr }, { code: 0, stderr: '' })
  const names = ['iss-missing.har', 'iss-missing.sh', 'iss-missing.test.mjs', 'test_iss_missing.py']
  t.strictSame(
    stdout.split('\n').filter(Boolean),
    names.map((name) => join(folder, name)),
  )
  const [har = '', curl = '', node = '', python = ''] = names.map((name) =>
    readFileSync(join(folder, name), 'utf8'),
  )
  const { entries } = JSON.parse(har).log
  t.match(
    entries.map(({ request }: { request: { url: string } }) =>
      new URL(request.url).pathname.split('/').at(-1),
    ),
    ['register', 'authorize', 'login', 'consent', 'token', 'courses'],
  )
  t.match(
    curl,
    /^# registration: 201\ncurl '.*\/register' -H 'content-type: application\/json' .*--data-raw '\{/,
  )
  t.match(curl, new RegExp(`curl '${issuerOf('iss-missing')}/oauth/authorize\\?response_type=code&`))
  for (const text of [har, curl, node, python]) t.notMatch(text, /lyc_|eyJ|alice-in-/)
  for (const text of [node, python]) {
    t.match(text, 'iss is missing from the authorization response')
    t.match(text, 'The client that was recorded did not: POST /api/oauth/token authorization_code 200')
  }
  t.strictSame(readdirSync(folder).sort(), ['client.mjs', ...names].sort())
})

t.test('the test for node fails for as long as the client is fooled', async (t) => {
  mkdirSync(join(folder, 'node_modules'), { recursive: true })
  symlinkSync(root, join(folder, 'node_modules/lychgate'), 'dir')
  const tested = (how: string) => {
    // What tap puts into its processes would run in this one, too.
    const { NODE_OPTIONS: _, NODE_TEST_CONTEXT: __, ...environment } = process.env
    const env = { ...environment, CLIENT: command(how) }
    return ended(process.execPath, ['--test', 'iss-missing.test.mjs'], env)
  }
  const careless = await tested('careless')
  t.equal(careless.status, 1)
  t.match(
    careless.stdout,
    /iss is missing from the authorization response.*, and then: POST \/api\/oauth\/token/,
  )
  const sound = await tested('sound')
  t.equal(sound.status, 0, sound.stdout)
})

t.test('so does the one for pytest', async (t) => {
  const tested = (how: string) =>
    ended('python3', ['-c', 'import test_iss_missing; test_iss_missing.test_iss_missing()'], {
      PATH: process.env['PATH'],
      CLIENT: command(how),
      LYCHGATE: `exec ${process.execPath} ${entry}`,
    })
  const careless = await tested('careless')
  t.equal(careless.status, 1)
  t.match(careless.stderr, /AssertionError: iss is missing from .*, and then: POST \/api\/oauth\/token/)
  const sound = await tested('sound')
  t.equal(sound.status, 0, sound.stderr)
})

t.test('a flow is named by its id, and an issuer by its name', async (t) => {
  const unknown = await record('nothing', '--to', folder)
  t.equal(unknown.code, 64)
  t.match(unknown.stderr, 'there is no issuer nothing')
  const other = await record('iss-missing', '--to', folder, '--flow', 'ffff')
  t.equal(other.code, 1)
  t.match(other.stderr, 'iss-missing has no flow ffff')
})
