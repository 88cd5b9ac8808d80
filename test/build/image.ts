/**
 * The image, unpacked by umoci and run by runc: `npm run test:image` makes it. The root is read-only, no capability and
 * no network but loopback is left, and nothing in the volume can be run. RECORD=1 writes the results down.
 */
import { spawnSync } from 'node:child_process'
import { hash } from 'node:crypto'
import {
  chmodSync,
  chownSync,
  globSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { arch, release } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { getContainerPrograms } from '../../scripts/cluster/packages.ts'
import { version } from '../../src/system/version.ts'
import { atLeast, check, checkSingleUse } from '../faults/load/ledger.ts'
import { createLoad } from '../faults/load/load.ts'
import { createDice } from '../fuzz/dice.ts'
import { ended, newFolder } from '../helpers/command.ts'
import { type ContainerOptions, runContainers } from '../helpers/container.ts'
import { callApi, obtainTokens, postAs, refresh, type TestClient, type Tokens } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { startProcess } from '../helpers/process.ts'
import type { TestServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'

const archive = process.env['TEST_IMAGE'] ?? 'dist/lychgate.oci.tar'
const folder = newFolder(t)
const programs = getContainerPrograms(folder)
const [layout, bundle] = [join(folder, 'layout'), join(folder, 'bundle')]
mkdirSync(layout)
run('tar', '--extract', `--file=${archive}`, `--directory=${layout}`)
const { manifests } = JSON.parse(readFileSync(`${layout}/index.json`, 'utf8'))
const tag = manifests[0].annotations['org.opencontainers.image.ref.name']
run(programs.umoci, 'unpack', '--image', `${layout}:${tag}`, bundle)
const rootfs = join(bundle, 'rootfs')
const container = runContainers(t, programs, bundle)
const results: Record<string, unknown> = {}

function run(program: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, {
    env: { ...programs.environment, PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`${program}: ${stderr}`)
  return stdout
}

/** An empty volume of this user, and of the group root. */
function newVolume(t: Test, uid = 10_001): string {
  const volume = newFolder(t)
  chownSync(volume, uid, 0)
  chmodSync(volume, 0o770)
  return volume
}

t.test('it is small, has one program, its licences and its bill of materials', async (t) => {
  const files = globSync('**/*', { cwd: rootfs, withFileTypes: true }).filter((entry) => entry.isFile())
  const stats = files.map(({ parentPath, name }) => ({
    path: join(parentPath, name),
    ...statSync(join(parentPath, name)),
  }))
  const unpacked = stats.reduce((sum, { size }) => sum + size, 0)
  const pulled = statSync(archive).size
  t.ok(unpacked <= 160e6, `${unpacked} bytes unpacked`)
  t.ok(pulled <= 65e6, `${pulled} bytes as pulled`)
  Object.assign(results, { unpackedBytes: unpacked, pulledBytes: pulled })
  const programsIn = stats.filter(({ path, mode }) => (mode & 0o111) !== 0 && !path.includes('.so'))
  t.strictSame(
    programsIn.map(({ path }) => path),
    [`${rootfs}/usr/local/bin/lychgate`],
  )
  const foreign = stats.filter(({ uid, gid, mode }) => uid !== 0 || gid !== 0 || (mode & 0o6022) !== 0)
  t.strictSame(
    foreign.map(({ path }) => path),
    [],
    'all belongs to root, and only root writes it',
  )
  const documents = `${rootfs}/usr/local/share/doc/lychgate`
  t.match(readFileSync(`${documents}/LICENSE`, 'utf8'), 'Apache License')
  t.match(readFileSync(`${documents}/licences.txt`, 'utf8'), /^fastify \d/m)
  const { components, metadata } = JSON.parse(readFileSync(`${documents}/sbom.cdx.json`, 'utf8'))
  t.match(metadata.component, { name: 'lychgate', properties: [{ name: 'commit', value: String }] })
  const names = components.map(({ name }: { name: string }) => name)
  for (const name of ['fastify', 'better-sqlite3', 'node', 'libc6']) t.ok(names.includes(name), name)
})

t.test('deploy/Dockerfile builds the same files, with the stage of npm run image', async (t) => {
  const [work, stage] = [newFolder(t), newFolder(t)]
  mkdirSync(`${stage}/src/dist`, { recursive: true })
  run('cp', '--archive', 'dist/image', `${stage}/src/dist/image`)
  // Its package has one below /etc, where it is not if the package is not installed.
  const policy = `${work}/policy.json`
  writeFileSync(policy, JSON.stringify({ default: [{ type: 'insecureAcceptAnything' }] }))
  const store = ['--root', `${work}/all`, '--runroot', `${work}/run`, '--storage-driver', 'vfs']
  const buildah = (command: string, ...args: string[]) =>
    run(programs.buildah, ...store, command, '--signature-policy', policy, ...args)
  const context = `--build-context=build=${stage}`
  buildah('bud', '--isolation', 'chroot', context, '--file', 'deploy/Dockerfile', '--tag', 'lychgate', '.')
  buildah('push', 'lychgate', `oci:${work}/layout:latest`)
  run(programs.umoci, 'unpack', '--image', `${work}/layout:latest`, `${work}/bundle`)
  t.strictSame(filesOf(`${work}/bundle/rootfs`), filesOf(rootfs))
  const { process: built } = JSON.parse(readFileSync(`${work}/bundle/config.json`, 'utf8'))
  const { process: made } = JSON.parse(readFileSync(`${bundle}/config.json`, 'utf8'))
  t.strictSame(built, made)
})

/** Every file with its owner, mode and content. */
function filesOf(folder: string): Record<string, string> {
  const entries = globSync('**/*', { cwd: folder }).sort()
  return Object.fromEntries(
    entries.map((path) => {
      const stats = lstatSync(join(folder, path))
      const content = stats.isFile() ? hash('sha256', readFileSync(join(folder, path))) : ''
      return [path, `${stats.uid}:${stats.gid} ${stats.mode.toString(8)} ${content}`]
    }),
  )
}

t.test('serve: from the secret in a file to an app, a flow, a kill and a restart', async (t) => {
  const [data, port] = [newVolume(t), await freePort()]
  const issuer = `http://localhost:${port}`
  const secrets = newFolder(t)
  writeFileSync(`${secrets}/secret`, 's3cret-of-this-test-and-of-no-other')
  chmodSync(secrets, 0o755)
  const options: ContainerOptions = {
    port,
    volumes: { '/data': data },
    mounts: { '/run/secrets': secrets },
    environment: {
      LYCHGATE_ISSUER: issuer,
      LYCHGATE_PORT: String(port),
      LYCHGATE_SECRET_FILE: '/run/secrets/secret',
    },
  }
  const began = performance.now()
  let server = container(['serve'], options)
  await ready(issuer)
  results['firstResponseSeconds'] = (performance.now() - began) / 1000
  t.equal(server.exec(['healthcheck']).status, 0)
  t.equal(server.exec(['--version']).stdout, `${version()}\n`)

  const user = { username: 'ada', password: 'a password nobody else has' }
  const added = server.exec(['user', 'add', 'ada', '--email', 'ada@example.org'], `${user.password}\n`)
  t.equal(added.status, 0, added.stderr)
  const redirectUri = 'https://app.example/callback'
  const app = server.exec(['client', 'add', '--name', 'App', '--redirect-uri', redirectUri, '--json'])
  const { client_id: id, client_secret: secret } = JSON.parse(app.stdout)
  const client: TestClient = { id, secret, method: 'client_secret_basic', redirectUri }
  const issued = { issuer } as TestServer
  const agent = new UserAgent(issuer)
  const kept = await obtainTokens(issued, client, { agent, user })
  const revoked = await obtainTokens(issued, client, { agent, user })
  const refreshed = (await (await refresh(issued, client, kept.refresh_token)).json()) as Tokens
  const revocation = { token: revoked.refresh_token }
  t.equal((await postAs(issued, client, '/api/oauth/revoke', revocation)).status, 200)

  server.child.kill('SIGKILL')
  t.equal((await ended(server.child)).code, 137)
  server = container(['serve'], options)
  await ready(issuer)
  const userInfo = async (token: string) => (await callApi(issued, '/api/oauth/userinfo', token)).status
  t.equal(await userInfo(refreshed.access_token), 200)
  t.equal(await userInfo(revoked.access_token), 401)
  t.equal((await refresh(issued, client, refreshed.refresh_token)).status, 200)
  t.strictSame(
    globSync('**', { cwd: data }).filter(
      (name) => (statSync(join(data, name)).mode & 0o111) !== 0 && name !== '.' && name !== '',
    ),
    [],
    'no file of the volume is a program',
  )
  server.child.kill('SIGTERM')
  t.match(await ended(server.child), { code: 0 })
})

t.test('dev: any user, in 128 MiB, killed under load, loses nothing it acknowledged', async (t) => {
  const [data, port, dice] = [newVolume(t, 34_567), await freePort(), createDice('image')]
  const begin = () =>
    startProcess(
      t,
      '/data',
      { port, LYCHGATE_LOG_LEVEL: 'fatal' },
      (args, environment) =>
        container(args, {
          port,
          volumes: { '/data': data },
          user: { uid: 34_567, gid: 0 },
          memoryBytes: 128 * 1024 * 1024,
          environment: { LYCHGATE_LIFETIMES_REFRESH_REUSE_SECONDS: '600', ...environment },
        }).child,
    )
  let running = await begin()
  const { server } = running
  const load = createLoad(server, dice)
  const { ledger } = load
  for (let kill = 1; kill <= 2; kill += 1) {
    load.begin()
    await atLeast(ledger, ['registration', 'code', 'token', 'rotation', 'revocation'], kill * 2)
    t.equal((await running.stop('SIGKILL')).code, 137)
    await load.end()
    running = await begin()
    await check(server, ledger, ledger)
    t.strictSame(ledger.faults.splice(0), [], `after kill ${kill}`)
  }
  await checkSingleUse(server, ledger)
  t.strictSame(ledger.faults, [], 'no code and no refresh token works twice')
  t.equal((await running.stop('SIGTERM')).code, 0)
  results['acknowledged'] = ledger.acknowledged
})

t.test('what is missing is one line and an exit code', async (t) => {
  const data = newVolume(t)
  const secret = { LYCHGATE_SECRET: 's3cret-of-this-test-and-of-no-other' }
  const result = (options: ContainerOptions) => ended(container(['serve'], options).child)
  t.match(await result({ volumes: { '/data': data } }), {
    code: 78,
    stderr: /^lychgate: secret: is missing[^\n]*\n$/,
  })
  t.match(
    await result({ environment: secret }),
    { code: 78, stderr: /^lychgate: [^\n]*\/data[^\n]*\n$/ },
    'no volume',
  )
  chownSync(data, 0, 0)
  t.match(await result({ volumes: { '/data': data }, environment: secret }), {
    code: 1,
    stderr: /^lychgate: [^\n]*\/data[^\n]*\n$/,
  })
})

t.test(
  'the compose files: each service in the networks of its file, and a flow from elsewhere',
  async (t) => {
    const inside = ['--net', '--mount', process.execPath, 'test/deploy/compose.ts']
    const env = { ...process.env, TEST_BUNDLE: bundle, TEST_PROGRAMS: JSON.stringify(programs) }
    const { status, stdout, stderr } = spawnSync('unshare', inside, { env, encoding: 'utf8' })
    t.equal(status, 0, `${stdout}${stderr}`)
  },
)

t.teardown(() => {
  if (process.env['RECORD'] === undefined) return
  const versions = {
    umoci: run(programs.umoci, '--version').trim(),
    runc: run(programs.runc, '--version').split('\n')[0],
  }
  const record = {
    date: new Date().toISOString().slice(0, 10),
    version: version(),
    machine: `Linux ${release()} ${arch()}`,
    ...versions,
    ...results,
  }
  writeFileSync('test/build/image-results.json', `${JSON.stringify(record, null, 2)}\n`)
})

async function ready(issuer: string): Promise<void> {
  while ((await fetch(`${issuer}/readyz`).catch(() => undefined))?.status !== 200)
    await new Promise((resolve) => setTimeout(resolve, 20))
}
