/**
 * The Debian package in a Debian system in a folder: installed, started by the ExecStart of its unit as its user, used,
 * upgraded, removed and purged. TEST_OLD_DEB is an older package to upgrade from, by default the same one.
 */
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import t from 'tap'
import { getMmdebstrap } from '../../scripts/cluster/packages.ts'
import { debianSources } from '../../scripts/debian/packages.ts'
import { ended, newFolder } from '../helpers/command.ts'
import { callApi, obtainTokens, refresh, type TestClient, type Tokens } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import type { TestServer } from '../helpers/server.ts'

const [newest = ''] = globSync('dist/lychgate_*.deb').sort().reverse()
const [old = newest, deb = newest] = [process.env['TEST_OLD_DEB'], process.env['TEST_DEB']]
const system = join(newFolder(t), 'system')
const at = (path: string) => join(system, path)
const made = debianSystem()
t.equal(made.status, 0, made.stderr)

function debianSystem() {
  const [perl = '', ...command] = getMmdebstrap(newFolder(t))
  const include = '--include=systemd,libstdc++6,man-db'
  const release = /^VERSION_CODENAME=(.*)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? ''
  const args = [...command, '--variant=apt', include, release, system, '-']
  return spawnSync(perl, args, { input: debianSources(), encoding: 'utf8' })
}

/** Enters the system with a /proc of its own, which goes with the command. */
const entered = ['--mount', 'sh', '-c', 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"', system]
const environment = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', DEBIAN_FRONTEND: 'noninteractive' }

function inside(command: readonly string[], input = '') {
  const { status, stdout, stderr } = spawnSync('unshare', [...entered, ...command], {
    env: environment,
    input,
    encoding: 'utf8',
  })
  return { status, stdout, stderr }
}

function install(file: string) {
  cpSync(file, at(`root/${basename(file)}`))
  return inside(['dpkg', '--install', `/root/${basename(file)}`])
}

/** Runs a command line as the unit does: its user without capabilities, its variables, its credentials. */
function asUnit(args: readonly string[]): readonly string[] {
  const unit = readFileSync(at('usr/lib/systemd/system/lychgate.service'), 'utf8')
  const settings = (name: string) =>
    [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value)
  const credentials = '/run/credentials/lychgate.service'
  mkdirSync(at(credentials), { recursive: true })
  for (const line of settings('LoadCredential')) {
    const [id, source] = line.split(':')
    const target = `${credentials}/${id}`
    inside(['install', '-m', '0400', '-o', 'lychgate', '-g', 'lychgate', `${source}`, target])
  }
  const variables = [
    ...settings('Environment').map((line) => line.replaceAll('%S', '/var/lib').replaceAll('%d', credentials)),
    ...readFileSync(at('etc/lychgate/env'), 'utf8')
      .split('\n')
      .filter((line) => /^\w/.test(line)),
  ]
  const [user, group, line] = ['User', 'Group', 'ExecStart'].map((name) => settings(name)[0] ?? '')
  const identity = [
    `--reuid=${user}`,
    `--regid=${group}`,
    '--clear-groups',
    '--no-new-privs',
    '--bounding-set=-all',
  ]
  const command = args.length === 0 ? line?.split(' ') : [line?.split(' ')[0] ?? '', ...args]
  return ['setpriv', ...identity, 'env', '-i', ...variables, ...(command ?? [])]
}

const port = await freePort()
const issuer = `http://localhost:${port}`
const server = { issuer } as TestServer
const redirectUri = 'https://app.example/callback'
const user = { username: 'ada', password: 'a password nobody else has' }
let [client, tokens]: [TestClient | undefined, Tokens | undefined] = [undefined, undefined]

async function startUnit() {
  const child = spawn('unshare', [...entered, ...asUnit([])], { env: environment })
  t.teardown(() => child.kill('SIGKILL'))
  const end = ended(child)
  while ((await fetch(`${issuer}/readyz`).catch(() => undefined))?.status !== 200) {
    if (child.exitCode !== null) throw new Error((await end).stderr)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return async () => {
    child.kill('SIGTERM')
    return (await end).code
  }
}

t.test('it is installed, its unit is valid, and the unit starts a server that issues tokens', async (t) => {
  const installed = install(old)
  t.equal(installed.status, 0, installed.stderr)
  const verified = inside(['systemd-analyze', 'verify', '/usr/lib/systemd/system/lychgate.service'])
  t.equal(verified.status, 0, verified.stderr)
  t.notMatch(verified.stderr, /lychgate/)
  t.match(inside(['stat', '-c', '%U %a', '/var/lib/lychgate', '/etc/lychgate/secret']), {
    stdout: 'lychgate 700\nroot 600\n',
  })
  writeFileSync(at('etc/lychgate/env'), `LYCHGATE_ISSUER=${issuer}\nLYCHGATE_PORT=${port}\n`, { flag: 'a' })
  const stop = await startUnit()
  const added = inside(asUnit(['user', 'add', 'ada', '--email', 'ada@example.org']), `${user.password}\n`)
  t.equal(added.status, 0, added.stderr)
  const app = inside(asUnit(['client', 'add', '--name', 'App', '--redirect-uri', redirectUri, '--json']))
  const { client_id: id, client_secret: secret } = JSON.parse(app.stdout)
  client = { id, secret, method: 'client_secret_basic', redirectUri }
  tokens = await obtainTokens(server, client, { user })
  t.type(tokens.refresh_token, 'string')
  t.equal(await stop(), 0)
})

t.test('manual pages and completions are where the system looks for them', async (t) => {
  const page = inside(['env', 'MANWIDTH=100', 'LANG=C.UTF-8', 'man', '-P', 'cat', 'lychgate-client'])
  t.match(page, { status: 0, stdout: /lychgate client add/ })
  t.equal(page.stderr, '')
  const completion = '. /usr/share/bash-completion/completions/lychgate && complete -p lychgate'
  t.match(inside(['bash', '-c', completion]), { status: 0, stdout: /_lychgate/ })
})

t.test('upgraded, it keeps the data, the options and the tokens', async (t) => {
  const upgraded = install(deb)
  t.equal(upgraded.status, 0, upgraded.stderr)
  t.match(readFileSync(at('etc/lychgate/env'), 'utf8'), issuer)
  const stop = await startUnit()
  if (client === undefined || tokens === undefined) throw new Error('the package before issued nothing')
  t.equal((await callApi(server, '/api/oauth/userinfo', tokens.access_token)).status, 200)
  t.equal((await refresh(server, client, tokens.refresh_token)).status, 200)
  t.equal(await stop(), 0)
})

t.test('removed, it leaves data and options; purged, nothing', async (t) => {
  t.equal(inside(['dpkg', '--remove', 'lychgate']).status, 0)
  t.notOk(existsSync(at('usr/bin/lychgate')))
  for (const path of ['var/lib/lychgate/lychgate.db', 'etc/lychgate/secret', 'etc/lychgate/env'])
    t.ok(existsSync(at(path)), path)
  t.equal(inside(['dpkg', '--purge', 'lychgate']).status, 0)
  t.strictSame(
    globSync('{etc,usr,var}/**/*lychgate*', { cwd: system }).filter(
      (path) => !path.startsWith('var/lib/dpkg'),
    ),
    [],
  )
})
