/**
 * The result of `npm run package`, installed into an empty folder: the command line, and the guard for JavaScript and
 * TypeScript.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { newFolder, printed } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'
import { digestsOf, filesOfTree } from './tree.ts'
import { linkOfFirstUser, walk } from './walk.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = newFolder(t)
const installed = join(folder, 'node_modules/lychgate')

/** npm sets variables for the scripts it runs, and reads them as its own settings. */
const environment = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^(npm|LYCHGATE)_/i.test(name)),
)

function npm(cwd: string, ...args: string[]): string {
  const result = spawnSync('npm', args, { cwd, env: environment, encoding: 'utf8' })
  if (result.status !== 0) throw new Error(`npm ${args[0]}: ${result.stderr}`)
  return result.stdout
}

function node(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' })
  return { status, stdout, stderr }
}

t.setTimeout(300_000)
writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'someone-elses', private: true }))
npm(root, 'run', 'package', '--', '--pack-destination', folder)
const [tarball = ''] = readdirSync(folder).filter((name) => name.endsWith('.tgz'))
npm(folder, 'install', `./${tarball}`, '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund')
// The reader's application has Fastify and TypeScript; here those of this checkout are used.
for (const name of ['fastify', 'typescript', '@types']) {
  symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
}

t.test('it contains the bundle, and neither sources nor tests', async (t) => {
  const recipes = readdirSync('src/clients/recipes').map((name) => `clients/recipes/${name}`)
  t.strictSame(readdirSync(join(installed, 'src'), { recursive: true }).sort(), [
    'clients',
    'clients/recipes',
    ...recipes.sort(),
    'dev.js',
    'guard.js',
    'lychgate.js',
    'users',
    'users/common-passwords.txt',
  ])
  t.notOk(existsSync(join(installed, 'dist/lychgate')))
  t.notOk(existsSync(join(installed, 'test')))
  for (const name of ['README.md', 'LICENSE', 'dist/licences.txt'])
    t.ok(existsSync(join(installed, name)), name)
  const packages = readdirSync(join(folder, 'node_modules'))
  t.ok(packages.includes('better-sqlite3') && packages.includes('pg'))
  t.notOk(packages.includes('drizzle-orm'), 'what is in the bundle is not installed as well')
})

t.test('it contains every file of the tree that the code reads, byte for byte', async (t) => {
  // Its manifest is another one.
  const { 'package.json': _, ...wanted } = filesOfTree()
  t.ok(Object.keys(wanted).length > 100)
  const paths = Object.keys(wanted).filter((path) => existsSync(join(installed, path)))
  t.strictSame(
    digestsOf(paths, (path) => readFileSync(join(installed, path))),
    wanted,
  )
})

t.test('npx lychgate dev serves', async (t) => {
  const port = await freePort()
  const child = spawn('npx', ['lychgate', 'dev', '--port', String(port)], {
    cwd: folder,
    env: { ...environment, LYCHGATE_DRAIN_SECONDS: '0' },
    detached: true,
  })
  t.teardown(() => endGroup(child))
  let said = ''
  child.stderr.on('data', (text) => {
    said += text
  })
  const discovery = () =>
    fetch(`http://localhost:${port}/.well-known/openid-configuration`).catch(() => undefined)
  let response = await discovery()
  while (response === undefined) {
    if (child.exitCode !== null) throw new Error(said)
    await new Promise((resolve) => setTimeout(resolve, 50))
    response = await discovery()
  }
  t.match(await response.json(), { issuer: `http://localhost:${port}` })
  for (const path of ['/', '/openapi.json', '/assets/style.css']) {
    t.equal((await fetch(`http://localhost:${port}${path}`)).status, 200, path)
  }
})

t.test('npx lychgate init and serve lead to an administrator who has added an app', async (t) => {
  const port = await freePort()
  const issuer = `http://localhost:${port}`
  mkdirSync(join(folder, 'server'))
  npm(folder, 'exec', '--', 'lychgate', 'init', '--yes', '--issuer', issuer, '--folder', 'server')
  const child = spawn('npx', ['lychgate', 'serve', '--config', 'server/lychgate.yaml'], {
    cwd: folder,
    env: environment,
    detached: true,
  })
  t.teardown(() => endGroup(child))
  await walk(t, { name: 'package', issuer, link: await printed(child, linkOfFirstUser) })
})

const test = (load: string) => `${load}
start({ clients: [{ client_name: 'App', redirect_uris: ['http://127.0.0.1/callback'] }] }).then(async (server) => {
  const { access_token } = await server.token({ user: 'alice', scope: 'openid' })
  const headers = { authorization: 'Bearer ' + access_token }
  const before = await fetch(server.issuer + '/api/oauth/userinfo', { headers })
  await server.advance('1d')
  const after = await fetch(server.issuer + '/api/oauth/userinfo', { headers })
  console.log(before.status, after.status)
  await server.stop()
})
`

t.test('the development server starts in a test by import, and by require', async (t) => {
  writeFileSync(join(folder, 'test.mjs'), test("import { start } from 'lychgate/dev'"))
  writeFileSync(join(folder, 'test.cjs'), test("const { start } = require('lychgate/dev')"))
  for (const file of ['test.mjs', 'test.cjs'])
    t.match(node(file), { status: 0, stdout: '200 401\n', stderr: '' })
})

t.test('the types of the development server declare its options and results', async (t) => {
  const typed = `import { start, type Flow, type IssuedTokens } from 'lychgate/dev'
export async function run(): Promise<readonly Flow[]> {
  await using server = await start({ port: 0, users: [{ username: 'carol' }], clock: { freeze: true } })
  const tokens: IssuedTokens = await server.token({ user: 'carol', expires_in: '5m' })
  console.log(tokens.access_token, server.issuer)
  return server.flows()
}
`
  writeFileSync(join(folder, 'library.ts'), typed)
  const wrong = "import { start } from 'lychgate/dev'\nvoid start({ prot: 0 })\n"
  writeFileSync(join(folder, 'wrong.ts'), wrong)
  const tsc = (file: string) =>
    node(
      join(root, 'node_modules/typescript/bin/tsc'),
      ...['--noEmit', '--strict', '--target', 'es2023', '--lib', 'es2024,esnext.disposable'],
      ...['--module', 'nodenext', '--types', 'node', file],
    )
  t.match(tsc('library.ts'), { status: 0, stdout: '' })
  t.match(tsc('wrong.ts'), { status: 2, stdout: /prot/ })
})

const application = (load: string) => `${load}
const options = { resource: 'https://api.example.com', verifyToken: async () => undefined, anonymous: 'challenge' }
const app = Fastify()
app.register(guard, options)
app.after(() => app.get('/notes', { preHandler: app.requireScope('notes:read') }, async () => []))
app.inject('/notes').then(({ statusCode }) => {
  console.log(statusCode, typeof introspectedBy, typeof signedBy, typeof protectedResourceMetadata)
})
`

t.test('lychgate/guard guards an application in JavaScript, imported or required', async (t) => {
  const names = '{ guard, introspectedBy, protectedResourceMetadata, signedBy }'
  const forms = {
    'app.mjs': `import Fastify from 'fastify'\nimport ${names} from 'lychgate/guard'`,
    'app.cjs': `const Fastify = require('fastify')\nconst ${names} = require('lychgate/guard')`,
  }
  for (const [file, load] of Object.entries(forms)) {
    writeFileSync(join(folder, file), application(load))
    t.match(node(file), { status: 0, stdout: '401 function function function\n', stderr: '' }, file)
  }
})

t.test('its declarations check an application in TypeScript', async (t) => {
  const app = (option: string) => `import Fastify from 'fastify'
import { type Access, guard, introspectedBy } from 'lychgate/guard'
const app = Fastify()
const verifyToken = introspectedBy({ endpoint: 'https://auth.example.com/i', clientId: 'a', clientSecret: 'b' })
await app.register(guard, { resource: 'https://api.example.com', verifyToken, anonymous: '${option}' })
app.get('/', { preHandler: app.requireScope('notes:read') }, async ({ access }) => {
  const caller: Access | undefined = access
  return caller?.scope
})
`
  const check = (option: string) => {
    writeFileSync(join(folder, 'app.mts'), app(option))
    const options = ['--noEmit', '--strict', '--target', 'es2023', '--module', 'nodenext', '--types', 'node']
    return node('node_modules/typescript/bin/tsc', ...options, 'app.mts')
  }
  t.match(check('challenge'), { status: 0, stdout: '' })
  t.match(check('sometimes'), { status: 2, stdout: /"sometimes"/ }, 'and reject a wrong option')
})

function endGroup({ pid, exitCode }: ChildProcess): void {
  if (pid !== undefined && exitCode === null) process.kill(-pid, 'SIGKILL')
}
