/**
 * The compose files: each service runs in the networks of its file, with the image of this commit in TEST_BUNDLE, and a
 * browser elsewhere goes through a flow. And the pod of a manifest for Kubernetes. test/build/image.ts runs this in network and mount namespaces of its own. Caddy
 * is the one of Debian, with the libraries of our image; PostgreSQL is the one of the tests.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { setDefaultCACertificates } from 'node:tls'
import pg from 'pg'
import t, { type Test } from 'tap'
import { parseAllDocuments } from 'yaml'
import type { ContainerPrograms } from '../../scripts/cluster/packages.ts'
import { addBridge, addNamespace, beginNetworks } from '../helpers/bridges.ts'
import { type Ended, ended, newFolder } from '../helpers/command.ts'
import { type ComposeOptions, composeUp, copyOfDeploy, type Stack } from '../helpers/compose.ts'
import { type Container, runContainers } from '../helpers/container.ts'
import { callApi, obtainTokens, postAs, refresh, register, type Tokens } from '../helpers/flow.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { startPostgres } from '../storage/postgres-server.ts'

const bundle = process.env['TEST_BUNDLE'] ?? ''
const programs: ContainerPrograms = JSON.parse(process.env['TEST_PROGRAMS'] ?? '{}')
const ends = new Map<Container, Promise<Ended>>()
const user = { username: 'ada', password: 'a password nobody else has' }
const hosts = join(newFolder(t), 'hosts')
writeFileSync(hosts, '127.0.0.1 localhost\n')
execFileSync('mount', ['--bind', hosts, '/etc/hosts'])
beginNetworks()

/** Docker gives a new volume the owner and the mode that its folder has in the image. */
function newVolume(t: Test, image: string): string {
  const folder = newFolder(t)
  if (image !== 'lychgate') return folder
  chownSync(folder, 10_001, 0)
  chmodSync(folder, 0o770)
  return folder
}

const lychgate = runContainers(t, programs, bundle)
const caddy = runContainers(t, programs, caddyBundle())

function caddyBundle(): string {
  const folder = newFolder(t)
  const rootfs = join(folder, 'rootfs')
  cpSync('dist/image/base', rootfs, { recursive: true, verbatimSymlinks: true })
  mkdirSync(`${rootfs}/usr/bin`, { recursive: true })
  cpSync(programs.caddy, `${rootfs}/usr/bin/caddy`)
  const needed = execFileSync('ldd', [programs.caddy], { env: { ...programs.environment }, encoding: 'utf8' })
  for (const [, name = '', path = ''] of needed.matchAll(/(\S+) => (\/\S+)/g))
    copyFileSync(path, `${rootfs}/usr/lib/${name}`)
  const spec = JSON.parse(readFileSync(`${bundle}/config.json`, 'utf8'))
  const env = ['LD_LIBRARY_PATH=/usr/lib', 'XDG_CONFIG_HOME=/config', 'XDG_DATA_HOME=/data']
  const own = { args: ['/usr/bin/caddy'], env, user: { uid: 0, gid: 0 }, cwd: '/' }
  writeFileSync(
    join(folder, 'config.json'),
    JSON.stringify({ ...spec, process: { ...spec.process, ...own } }),
  )
  return folder
}

const caddyCommand = ['run', '--config', '/etc/caddy/Caddyfile', '--adapter', 'caddyfile']

function optionsFor(t: Test, issuer: string): ComposeOptions {
  return {
    issuer,
    newVolume: (image) => newVolume(t, image),
    images: {
      lychgate: async ({ command = ['serve'], address, ...options }) => {
        const container = follow(lychgate(command, options))
        // All but the app of compose.dev.yaml are servers, and the file waits until they are healthy.
        if (command[0] !== 'healthcheck') await healthy(container, address)
        return container
      },
      'caddy:2': async ({ command = caddyCommand, ...options }) => follow(caddy(command, options)),
      'postgres:17': async ({ environment = {}, mounts = {}, network = '' }) => {
        const server = await startPostgres(t)
        const { POSTGRES_USER: name, POSTGRES_DB: database, POSTGRES_PASSWORD_FILE: file = '' } = environment
        const client = new pg.Client(server.url)
        await client.connect()
        const password = client.escapeLiteral(readFileSync(mounts[file] ?? '', 'utf8').trim())
        await client.query(`create role ${name} login password ${password}`)
        await client.query(`create database ${database} owner ${name}`)
        await client.end()
        await leadTo(t, network, Number(new URL(server.url).port))
        return undefined
      },
    },
  }
}

/** Leads port 5432 of a network namespace to a port of this machine, by two processes: this one waits for commands. */
async function leadTo(t: Test, network: string, port: number): Promise<void> {
  const path = join(newFolder(t), 'socket')
  const relay = `const { createServer, connect } = require('node:net')
  const [from, to] = process.argv.slice(1)
  createServer((one) => {
    const other = connect(to)
    one.pipe(other).pipe(one)
    for (const each of [one, other]) each.on('error', () => { one.destroy(); other.destroy() })
  }).listen(from, () => console.log('ready'))`
  const program = [process.execPath, '-e', relay, '--']
  for (const [enter = '', ...rest] of [
    [...program, path, String(port)],
    ['nsenter', `--net=${network}`, ...program, '5432', path],
  ]) {
    const child = spawn(enter, rest)
    t.teardown(() => child.kill('SIGKILL'))
    await once(child.stdout, 'data')
  }
}

/** Waits until it is ready, and checks its health as Docker does. */
async function healthy(container: Container, address: string): Promise<void> {
  while ((await fetch(`http://${address}:9400/readyz`).catch(() => undefined))?.status !== 200) {
    if (container.child.exitCode !== null) throw new Error((await endOf(container)).stderr)
    await setTimeout(50)
  }
  const { status, stderr } = container.exec(['healthcheck'])
  if (status !== 0) throw new Error(stderr)
}

/** Runs a container whose end can be waited for at any time. */
function follow(container: Container): Container {
  ends.set(container, ended(container.child))
  return container
}

function endOf(container: Container): Promise<Ended> {
  const end = ends.get(container)
  if (end === undefined) throw new Error('it was not started here')
  return end
}

/** Makes this machine find a name at an address, as its name server would. */
function resolveTo(address: string, issuer: string): void {
  writeFileSync(hosts, `127.0.0.1 localhost\n${address} ${new URL(issuer).hostname}\n`)
}

/** Makes this process trust the authority that Caddy has made. */
async function trustCaddy(stack: Stack): Promise<void> {
  const file = join(stack.volume('caddy-data'), 'caddy/pki/authorities/local/root.crt')
  while (!existsSync(file)) {
    const proxy = stack.container('proxy')
    if (proxy.child.exitCode !== null) throw new Error((await endOf(proxy)).stderr)
    await setTimeout(50)
  }
  setDefaultCACertificates([readFileSync(file, 'utf8')])
}

/** Waits until the proxy knows the servers behind it, and then signs in, refreshes and revokes. */
async function flow(t: Test, issuer: string): Promise<void> {
  while ((await fetch(`${issuer}/readyz`).catch(() => undefined))?.status !== 200) await setTimeout(50)
  const agent = new UserAgent(issuer)
  const landing = await agent.open(`${issuer}/account`)
  t.match(landing, { at: 'page', page: { status: 200, html: /type="password"/ } }, 'the sign-in page')
  const client = await register({ issuer })
  const tokens = await obtainTokens({ issuer }, client, { agent, user })
  const next = (await (await refresh({ issuer }, client, tokens.refresh_token)).json()) as Tokens
  t.equal((await callApi({ issuer }, '/api/oauth/userinfo', next.access_token)).status, 200, 'UserInfo')
  const revoked = { token: next.refresh_token }
  t.equal((await postAs({ issuer }, client, '/api/oauth/revoke', revoked)).status, 200, 'revoked')
  t.equal((await callApi({ issuer }, '/api/oauth/userinfo', next.access_token)).status, 401, 'and ended')
}

/** Adds the user by the command of the comment. */
function addUser(t: Test, { commands, container }: Stack): void {
  const [{ service, args } = { service: '', args: [] }] = commands
  t.match(container(service).exec(args, `${user.password}\n`), { status: 0 }, args.join(' '))
}

/** The networks of the sign-ins, as the audit log has them. */
function networksOf(container: Container): readonly string[] {
  const { stdout } = container.exec(['audit', '--event', 'sign-in', '--json'])
  return [...new Set([...stdout.matchAll(/"(\d+\.\d+\.\d+\.0\/24)"/g)].map(([, network = '']) => network))]
}

await t.test('compose.home.yaml: SQLite behind Caddy, with an authority of its own', async (t) => {
  const issuer = 'https://auth.home.arpa'
  const folder = copyOfDeploy(t)
  const file = join(folder, 'Caddyfile.home')
  writeFileSync(file, readFileSync(file, 'utf8').replace('# tls internal', 'tls internal'))
  const stack = await composeUp(t, folder, 'compose.home.yaml', optionsFor(t, issuer))
  resolveTo(stack.address('proxy'), issuer)
  addUser(t, stack)
  await trustCaddy(stack)
  await flow(t, issuer)
  t.strictSame(networksOf(stack.container('lychgate')), ['192.0.2.0/24'], 'the address of the browser')
  await stops(t, stack, ['lychgate'])
})

await t.test('compose.yaml: SQLite for a proxy on this host', async (t) => {
  const issuer = 'https://auth.example.org'
  const stack = await composeUp(t, copyOfDeploy(t), 'compose.yaml', optionsFor(t, issuer))
  addUser(t, stack)
  const page = await fetch(`http://${stack.address('lychgate')}:9400/account`, { redirect: 'manual' })
  t.match([page.status, page.headers.get('location')], [303, /^\/login\?/])
  await stops(t, stack, ['lychgate'])
})

await t.test('compose.postgres.yaml: two nodes behind Caddy, one of which goes', async (t) => {
  const issuer = 'https://lychgate.localhost'
  const stack = await composeUp(t, copyOfDeploy(t), 'compose.postgres.yaml', optionsFor(t, issuer))
  resolveTo(stack.address('proxy'), issuer)
  addUser(t, stack)
  await trustCaddy(stack)
  await flow(t, issuer)
  t.strictSame(networksOf(stack.container('node-2')), ['192.0.2.0/24'])
  await stops(t, stack, ['node-1'])
  await flow(t, issuer)
  await stops(t, stack, ['node-2'])
})

await t.test('compose.dev.yaml: the app and the browser have one name for the server', async (t) => {
  const stack = await composeUp(t, copyOfDeploy(t), 'compose.dev.yaml', optionsFor(t, ''))
  const issuer = 'http://lychgate.localhost:9400'
  t.match(await endOf(stack.container('app')), { code: 0, stdout: /ready/ }, 'the app reaches it')
  resolveTo(stack.address('lychgate'), issuer)
  t.match(await (await fetch(`${issuer}/.well-known/openid-configuration`)).json(), { issuer })
  const { exec } = stack.container('lychgate')
  t.match(exec(['user', 'list']), { stdout: /alice[\s\S]*bob/ })
  await stops(t, stack, ['lychgate'])
})

await t.test(
  'the pod of deploy/kubernetes/sqlite.yaml: its variables, its mounts, its probes and a sign-in',
  async (t) => {
    const documents = parseAllDocuments(readFileSync('deploy/kubernetes/sqlite.yaml', 'utf8'))
    const objects = Object.fromEntries(documents.map((one) => one.toJS()).map((one) => [one?.kind, one]))
    const { containers, securityContext } = objects['Deployment'].spec.template.spec
    const [{ args, env, startupProbe, volumeMounts }] = containers
    const { runAsUser: uid, runAsGroup: gid } = securityContext
    const folder = newFolder(t)
    const own = join(folder, 'config')
    mkdirSync(own)
    for (const [name, text] of Object.entries<string>(objects['ConfigMap'].data))
      writeFileSync(join(own, name), text)
    const secrets = join(folder, 'secrets')
    mkdirSync(secrets)
    writeFileSync(join(secrets, 'secret'), 's'.repeat(44))
    const sources: Readonly<Record<string, string>> = { config: own, secrets, data: newVolume(t, 'lychgate') }
    for (const path of [folder, own, secrets]) chmodSync(path, 0o755)
    const mounts = volumeMounts.map(({ name, mountPath }: Record<string, string>) => [
      mountPath,
      sources[name ?? ''],
    ])
    const bridge = { name: 'pods', prefix: '172.30.98', isInternal: false }
    addBridge(bridge)
    const address = '172.30.98.20'
    const container = follow(
      lychgate(args, {
        environment: Object.fromEntries(env.map(({ name, value }: Record<string, string>) => [name, value])),
        mounts: Object.fromEntries(mounts.filter(([path]: string[]) => path !== '/data')),
        volumes: Object.fromEntries(mounts.filter(([path]: string[]) => path === '/data')),
        user: { uid, gid },
        network: await addNamespace(t, [{ bridge, address }]),
      }),
    )
    t.equal(startupProbe.httpGet.path, '/readyz')
    await healthy(container, address)
    const page = await fetch(`http://${address}:9400/account`, { redirect: 'manual' })
    t.match([page.status, page.headers.get('location')], [303, /^\/login\?/])
    container.child.kill('SIGTERM')
    t.match(await endOf(container), { code: 0, stderr: /\/link\?code=/ }, 'with the link of the first user')
  },
)

async function stops(t: Test, stack: Stack, services: readonly string[]): Promise<void> {
  for (const service of services) {
    const container = stack.container(service)
    container.child.kill('SIGTERM')
    t.match(await endOf(container), { code: 0 }, `${service} stops`)
  }
}
