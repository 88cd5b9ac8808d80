/** The executable itself: `npm run check:build` builds it, and runs this with its path in TEST_EXECUTABLE. */
import {
  chmodSync,
  chownSync,
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { packageAssets } from '../../scripts/build/packages-on-demand.ts'
import { docsAssets } from '../../src/dev/docs.ts'
import { version } from '../../src/system/version.ts'
import { ended, executable, newFolder, run, spawnFile, start } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'
import { startPostgres } from '../storage/postgres-server.ts'
import { filesOfTree } from './tree.ts'

const file = executable ?? ''

t.test('it has at most 123 MB and states what it was built from', async (t) => {
  t.ok(statSync(file).size <= 123_000_000, `${statSync(file).size} bytes`)
  t.match(await run(['--version']), { code: 0, stdout: `${version()}\n`, stderr: '' })
})

t.test('it is packed with the licences of its dependencies', async (t) => {
  const licences = readFileSync(`${file}.licences.txt`, 'utf8')
  for (const name of ['fastify', 'jose', 'better-sqlite3', 'pg']) {
    t.match(licences, new RegExp(`^${name} \\d.*\\n\\n[^=]*(Permission|Apache License)`, 'm'), name)
  }
  t.match(licences, /^@fastify\/swagger-ui[\s\S]*SmartBear Software Inc\./m)
})

/** Runs in the executable before the server: writes the digest of every file in it. */
const listAssets = `
const { getAssetKeys, getRawAsset } = require('node:sea')
const digest = (name) => require('node:crypto').hash('sha256', new Uint8Array(getRawAsset(name)))
const digests = Object.fromEntries(getAssetKeys().sort().map((name) => [name, digest(name)]))
require('node:fs').writeFileSync(__dirname + '/assets.json', JSON.stringify(digests))
`

t.test(
  'it contains every file of the tree that the code reads, byte for byte, and what it makes',
  async (t) => {
    const folder = t.testdir({ 'list.cjs': listAssets })
    t.match(await run(['--version'], { environment: { NODE_OPTIONS: `--require=${folder}/list.cjs` } }), {
      code: 0,
    })
    const contained: Record<string, string> = JSON.parse(readFileSync(`${folder}/assets.json`, 'utf8'))
    const wanted = filesOfTree()
    t.ok(Object.keys(wanted).length > 100)
    const made = Object.keys(contained).filter((name) => !(name in wanted))
    for (const name of made) delete contained[name]
    t.strictSame(contained, wanted)
    t.strictSame(
      made,
      [
        'better_sqlite3.node',
        'lychgate.cache',
        'lychgate.cjs',
        ...docsAssets.map((name) => `dist/docs/${name}.gz`),
        ...packageAssets,
      ].toSorted(),
    )
  },
)

t.test(
  'in an empty folder with an empty environment it serves every page, style, script and document',
  async (t) => {
    const [folder, temporary, port] = [newFolder(t), newFolder(t), await freePort()]
    const child = start(['dev', '--port', String(port)], { TMPDIR: temporary }, folder)
    t.teardown(() => child.kill('SIGKILL'))
    const end = ended(child)
    const get = (path: string) => fetch(`http://localhost:${port}${path}`)
    while (!(await get('/readyz').catch(() => undefined))?.ok) {
      if (child.exitCode !== null) throw new Error((await end).stderr)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    const home = await (await get('/')).text()
    const assets = [...home.matchAll(/"(\/assets\/[^"]+)"/g)].map(([, path]) => String(path))
    t.ok(assets.length >= 2)
    const paths = [
      '/openapi.json',
      '/docs',
      '/docs/swagger-ui.css',
      '/docs/swagger-ui-bundle.js',
      '/docs/oauth2-redirect.js',
      '/docs/images/0',
      '/.well-known/openid-configuration',
      '/api/oauth/jwks',
      '/assets/form-post.js',
    ]
    for (const path of [...paths, ...assets]) {
      t.equal((await get(path)).status, 200, path)
    }
    t.match(await (await get('/oauth/authorize')).text(), '<!doctype html>')
    t.strictSame(readdirSync(folder), ['data'], 'it writes into its data folder only')
    t.strictSame(readdirSync(temporary), [], 'the file of the driver is gone as soon as it is loaded')
    t.equal(poolThreads(child.pid), Math.min(4, Math.max(2, availableParallelism())), 'each keeps 19 MiB')
    child.kill('SIGTERM')
    t.match(await end, { code: 0, stderr: '' })
  },
)

t.test('its commands on what a store holds work on a running server, too', async (t) => {
  const [folder, port] = [newFolder(t), await freePort()]
  const issuer = `http://localhost:${port}`
  const child = start(['dev', '--port', String(port)], { LYCHGATE_ADMIN_API: 'on' }, folder)
  t.teardown(() => child.kill('SIGKILL'))
  const end = ended(child)
  while (!(await fetch(`${issuer}/readyz`).catch(() => undefined))?.ok) {
    if (child.exitCode !== null) throw new Error((await end).stderr)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  const onStore = ['--data', join(folder, 'data')]
  const scope = 'admin:users:read admin:users:write admin:clients:read admin:clients:write'
  const client = ['client', 'add', '--name', 'CI', '--grant-type', 'client_credentials', '--scope', scope]
  const added = await run([...client, '--json', ...onStore])
  t.equal(added.code, 0, added.stderr)
  const { client_id, client_secret } = JSON.parse(added.stdout)
  writeFileSync(join(folder, 'secret'), client_secret)
  const app = ['--name', 'App', '--redirect-uri', 'https://app.example/callback']
  const { client_id: id } = JSON.parse((await run(['client', 'add', ...app, '--json', ...onStore])).stdout)
  const onServer = ['--server', issuer, '--client-id', client_id, '--secret-file', join(folder, 'secret')]
  for (const line of [
    ['user', 'invite', 'ada@example.com', '--username', 'ada'],
    ['group', 'create', 'choir'],
    ['group', 'add', 'choir', 'ada'],
    ['user', 'lock', 'ada', '--yes'],
    ['session', 'end', '--yes', '--user', 'ada'],
    ['grant', 'revoke', '--yes', '--user', 'ada'],
    ['client', 'add', '--name', 'Other', '--redirect-uri', 'https://other.example/callback'],
    ['client', 'set', id, '--client-uri', 'https://app.example', '--contact', ''],
    ['client', 'access', id, '--allow', 'choir'],
  ])
    t.match(await run([...line, ...onServer]), { code: 0, stderr: '' }, line.join(' '))
  for (const line of [
    ['user', 'list'],
    ['user', 'show', 'ada'],
    ['user', 'links', 'ada'],
    ['group', 'show', 'choir'],
    ['grant', 'list', '--user', 'ada', '--json'],
    ['session', 'list'],
    ['client', 'list'],
    ['client', 'show', id],
    ['client', 'access', id],
  ]) {
    const { code, stdout } = await run([...line, ...onStore])
    t.strictSame(await run([...line, ...onServer]), { code, stdout, stderr: '' }, line.join(' '))
  }
  child.kill('SIGTERM')
  t.match(await end, { code: 0 })
})

/** Threads of the pool that checks passwords, as Linux names them. */
function poolThreads(pid: number | undefined): number {
  const names = readdirSync(`/proc/${pid}/task`).map((task) =>
    readFileSync(`/proc/${pid}/task/${task}/comm`, 'utf8'),
  )
  return names.filter((name) => name.startsWith('libuv-worker')).length
}

t.test('a temporary folder it cannot load code from is one line that names the variable', async (t) => {
  const data = newFolder(t)
  const environment = { TMPDIR: join(data, 'missing') }
  const result = await run(['user', 'list', '--data', data], { environment })
  t.match(result, { code: 1, stdout: '', stderr: /^lychgate: store: [^\n]*set TMPDIR to [^\n]*\n$/ })
})

t.test('it loads the driver that root installed next to it, if it is the same', async (t) => {
  const [folder, data] = [newFolder(t), newFolder(t)]
  for (const path of ['bin', 'lib/lychgate']) mkdirSync(join(folder, path), { recursive: true })
  copyFileSync(file, join(folder, 'bin/lychgate'))
  const driver = join(folder, 'lib/lychgate/better_sqlite3.node')
  const list = () =>
    ended(
      spawnFile(join(folder, 'bin/lychgate'), ['user', 'list', '--data', data], {
        TMPDIR: join(data, 'missing'),
      }),
    )
  const failed = { code: 1, stderr: /set TMPDIR/ }
  t.match(await list(), failed)
  copyFileSync(`node_modules/better-sqlite3/prebuilds/linux-${process.arch}.node`, driver)
  chmodSync(driver, 0o644)
  t.match(await list(), { code: 0, stderr: '' })
  chmodSync(driver, 0o666)
  t.match(await list(), failed, 'others can write it')
  chmodSync(driver, 0o644)
  chownSync(driver, 1, 1)
  t.match(await list(), failed, 'it belongs to another user')
  chownSync(driver, 0, 0)
  writeFileSync(driver, 'x', { flag: 'a' })
  t.match(await list(), failed, 'it has other bytes')
})

t.test('PostgreSQL works like SQLite', async (t) => {
  const environment = { LYCHGATE_STORE: await (await startPostgres(t)).createDatabase() }
  const added = await run(['user', 'add', 'carol', '--email', 'carol@example.com'], {
    environment,
    input: 'a password for carol\n',
  })
  t.match(added, { code: 0, stderr: /^lychgate: no administrator can sign in, [^\n]*\n$/ })
  t.match(await run(['user', 'list'], { environment }), { code: 0, stdout: /carol/ })
})
