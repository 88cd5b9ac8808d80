import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { parse } from 'yaml'
import { imageConfig } from '../../scripts/image/config.ts'
import { exitCode } from '../../src/cli/failure.ts'
import { readinessUrl } from '../../src/cli/healthcheck.ts'
import type { Config } from '../../src/config/schema.ts'
import { loadConfig } from '../../src/settings/load.ts'
import { entry, run } from '../helpers/command.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** The part of a compose file that is checked. */
interface Compose {
  readonly services: Readonly<Record<string, ComposeService>>
  readonly networks: Readonly<
    Record<string, { readonly ipam?: { readonly config: readonly { subnet: string; gateway?: string }[] } }>
  >
  readonly volumes: Readonly<Record<string, unknown>>
  readonly secrets: Readonly<Record<string, { readonly file: string }>>
}

interface ComposeService {
  readonly image: string
  readonly build?: { readonly context: string; readonly dockerfile: string }
  readonly environment: Readonly<Record<string, string>>
  readonly secrets?: readonly string[]
  readonly volumes?: readonly string[]
  readonly networks: unknown
}

const composeOf = (path: string) => parse(read(path), { merge: true }) as Compose

/**
 * Runs the commands at the head of a compose file, without those that need root or Docker; the command line replaces
 * the image, whose entry point it is. The returned folder contains the secrets.
 */
function prepare(t: Test, path: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'lychgate-deploy-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const commands = [...read(path).matchAll(/^# {3}(\S.*)$/gm)]
    .map(([, command = '']) =>
      command.replace('docker run --rm lychgate', `"${process.execPath}" "${entry}"`),
    )
    .filter((command) => !/^(sudo|docker) /.test(command))
  const { status, stderr } = spawnSync('sh', ['-euc', commands.join('\n')], { cwd: folder, encoding: 'utf8' })
  t.equal(status, 0, stderr)
  return folder
}

/** The configuration of a service: variables and secrets as compose passes them. */
function configOf(
  { secrets }: Compose,
  { environment, secrets: granted = [], volumes = [] }: ComposeService,
  folder: string,
): Config {
  const file = Object.fromEntries(
    [...readFileSync(join(folder, '.env'), 'utf8').matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [
      name,
      value,
    ]),
  )
  const resolved = Object.entries(environment).map(([name, value]) => {
    const secret = /^\/run\/secrets\/(\w+)$/.exec(value)?.[1]
    if (name === 'LYCHGATE_CONFIG') {
      const mount = volumes.find((one) => one.split(':')[1] === value) ?? ''
      return [name, join(root, 'deploy', mount.split(':')[0] ?? '')]
    }
    if (secret === undefined)
      return [name, value.replace(/\$\{(\w+):\?[^}]*\}/, (_, variable) => file[variable] ?? '')]
    if (!granted.includes(secret)) throw new Error(`${secret} is not granted`)
    return [name, join(folder, secrets[secret]?.file ?? 'nowhere')]
  })
  return loadConfig({ mode: 'serve', environment: { ...file, ...Object.fromEntries(resolved) } })
}

/** What `lychgate init` gives a new server, too: no API of a school. */
function assertOfAServer(t: Test, { scopes, builtInApi }: Config): void {
  t.strictSame(
    scopes?.map(({ name }) => name),
    ['openid', 'profile', 'email', 'groups', 'offline_access'],
  )
  t.equal(builtInApi, 'off')
}

t.test('compose.yaml starts one node with SQLite for a proxy on the host', async (t) => {
  const compose = composeOf('deploy/compose.yaml')
  const folder = prepare(t, 'deploy/compose.yaml')
  const node = compose.services['lychgate'] as ComposeService
  const config = configOf(compose, node, folder)
  t.match(config, { issuer: 'https://auth.example.org', host: '0.0.0.0', port: 9400, data: '/data' })
  t.match(node, {
    ports: ['127.0.0.1:9400:9400'],
    volumes: ['data:/data', /lychgate\.yaml/],
    networks: ['front'],
  })
  t.strictSame(
    config.trustProxy,
    compose.networks['front']?.ipam?.config.map(({ gateway }) => gateway),
  )
  assertOfAServer(t, config)
  t.strictSame(Object.keys(compose.volumes), ['data'])
  t.ok(existsSync(join(root, 'deploy', node.build?.context ?? '', node.build?.dockerfile ?? '')))
})

t.test('compose.postgres.yaml starts two nodes that trust only the proxy in front of them', async (t) => {
  const compose = composeOf('deploy/compose.postgres.yaml')
  const folder = prepare(t, 'deploy/compose.postgres.yaml')
  const nodes = Object.entries(compose.services).filter(([, { image }]) => image === 'lychgate')
  t.equal(nodes.length, 2)
  const password = readFileSync(join(folder, 'secrets/postgres_password'), 'utf8').trim()
  const { proxy } = compose.services
  const address = parse(read('deploy/compose.postgres.yaml')).services.proxy.networks.front.ipv4_address
  for (const [name, node] of nodes) {
    const config = configOf(compose, node, folder)
    t.match(config, { issuer: 'https://auth.example.org', host: '0.0.0.0', port: 9400 }, name)
    t.equal(config.store, `postgres://lychgate:${password}@postgres/lychgate`, 'the password of the database')
    t.strictSame(config.trustProxy, [address], 'the address of the proxy')
    assertOfAServer(t, config)
    t.strictSame(node.networks, ['front', 'back'])
  }
  t.match(compose.services['postgres'], {
    environment: {
      POSTGRES_USER: 'lychgate',
      POSTGRES_DB: 'lychgate',
      POSTGRES_PASSWORD_FILE: '/run/secrets/postgres_password',
    },
    networks: ['back'],
  })
  const caddyfile = read('deploy/Caddyfile')
  const upstreams = nodes.map(([name, node]) => `${name}:${node.environment['LYCHGATE_PORT']}`)
  t.match(caddyfile, `reverse_proxy ${upstreams.join(' ')} {`)
  t.match(caddyfile, `health_uri ${new URL(readinessUrl({ host: 'x', port: 1 })).pathname}\n`)
  t.match(caddyfile, /^\{\$LYCHGATE_ISSUER\} \{$/m)
  t.match(proxy, {
    environment: { LYCHGATE_ISSUER: /^\$\{LYCHGATE_ISSUER:\?/ },
    volumes: ['./Caddyfile:/etc/caddy/Caddyfile:ro', /./, /./],
  })
  const named = Object.values(compose.services).flatMap(({ volumes = [] }) => volumes)
  for (const volume of named.filter((one) => !one.startsWith('.'))) {
    t.ok((volume.split(':')[0] ?? '') in compose.volumes, volume)
  }
})

/** The instructions of the Dockerfile, continued lines joined. */
const instructions = read('deploy/Dockerfile')
  .replaceAll(/^#.*\n/gm, '')
  .replaceAll('\\\n', ' ')
  .split('\n')
  .filter((line) => line !== '')
  .map((line): [string, string] => [line.split(' ', 1)[0] ?? '', line.slice(line.indexOf(' ') + 1)])
const argumentsOf = (name: string) => instructions.filter(([one]) => one === name).map(([, rest]) => rest)

t.test('the image builds from the sources, and what it copies exists and is not ignored', async (t) => {
  const { scripts } = JSON.parse(read('package.json'))
  t.ok('image' in scripts)
  t.equal(argumentsOf('RUN').at(-1), 'npm run image -- --content')
  const [packages = '', sources, ...made] = argumentsOf('COPY')
  const named = packages.split(' ').slice(0, -1)
  t.ok(named.length >= 2)
  for (const path of named) t.ok(existsSync(join(root, path)), path)
  t.equal(sources, '. .')
  const content = `${argumentsOf('WORKDIR')[0]}/dist/image`
  t.strictSame(made, [
    `--from=build ${content}/base/ /`,
    `--from=build ${content}/server/ /`,
    `--from=build --chown=10001:0 ${content}/volume/ /`,
  ])
  const ignored = spawnSync('git', ['ls-files', '--cached', '--ignored', '--exclude-from=.dockerignore'], {
    cwd: root,
    encoding: 'utf8',
  })
  t.match(
    ignored,
    { status: 0, stdout: '' },
    'a file of the commit that is missing makes the build a dirty one',
  )
})

t.test('the Dockerfile configures the image as npm run image does, and names no secret', async (t) => {
  const seconds = (text = '') => Number(text.replace(/s$/, '')) * 1e9
  const [health = ''] = argumentsOf('HEALTHCHECK')
  const after = (flag: string) => seconds(new RegExp(`--${flag}=(\\d+s)`).exec(health)?.[1])
  const { Labels: _, ...expected } = imageConfig('')
  t.strictSame(
    {
      User: argumentsOf('USER').at(-1),
      ExposedPorts: Object.fromEntries(argumentsOf('EXPOSE').map((port) => [`${port}/tcp`, {}])),
      Env: argumentsOf('ENV').flatMap((line) => line.split(' ')),
      Entrypoint: JSON.parse(argumentsOf('ENTRYPOINT')[0] ?? ''),
      Cmd: JSON.parse(argumentsOf('CMD')[0] ?? ''),
      Volumes: Object.fromEntries(argumentsOf('VOLUME').map((path) => [path, {}])),
      WorkingDir: argumentsOf('WORKDIR').at(-1),
      StopSignal: argumentsOf('STOPSIGNAL')[0],
      Healthcheck: {
        Test: ['CMD', ...JSON.parse(/CMD (.*)$/.exec(health)?.[1] ?? '')],
        Interval: after('interval'),
        Timeout: after('timeout'),
        StartPeriod: after('start-period'),
      },
    },
    expected,
  )
  const variables = Object.fromEntries(expected.Env.map((pair) => pair.split('=')))
  const config = loadConfig({ mode: 'dev', environment: variables })
  t.match(config, { host: '0.0.0.0', port: 9400, data: '/data' })
  t.match(expected.User, /^[1-9]\d+:[1-9]\d+$/)
  for (const [name, rest] of instructions) t.notMatch(`${name} ${rest}`, /secret|password/i)
})

const unit = read('deploy/lychgate.service')
const settingsOf = (name: string) =>
  [...unit.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].map(([, value = '']) => value)

t.test('the unit confines the server, keeps its state and passes its secret as a credential', async (t) => {
  for (const name of ['DynamicUser', 'NoNewPrivileges', 'PrivateTmp', 'ProtectHome', 'RestrictNamespaces']) {
    t.strictSame(settingsOf(name), ['yes'], name)
  }
  t.strictSame(settingsOf('ProtectSystem'), ['strict'])
  t.strictSame(settingsOf('MemoryDenyWriteExecute'), [], 'V8 compiles while it runs')
  t.strictSame(settingsOf('RestartPreventExitStatus'), [`${exitCode.usage} ${exitCode.config}`])
  const folder = t.testdir({ secret: 's'.repeat(44), 'lychgate.yaml': read('deploy/lychgate.yaml') })
  const credentials = settingsOf('LoadCredential').map((line) => line.split(':')[0])
  t.strictSame(credentials, ['secret', 'lychgate.yaml'])
  const variables = settingsOf('Environment').map((line) =>
    line.replace('%S', '/var/lib').replace('%d', folder),
  )
  const environment = Object.fromEntries(variables.map((line) => line.split('=')))
  const config = loadConfig({
    mode: 'serve',
    environment: { ...environment, LYCHGATE_ISSUER: 'https://auth.example.org' },
  })
  t.equal(config.data, `/var/lib/${settingsOf('StateDirectory')[0]}`)
  assertOfAServer(t, config)
  t.strictSame(config.trustProxy, ['127.0.0.1', '::1'])
})

t.test('systemd reports no problem of the unit', async (t) => {
  const file = join(t.testdir(), 'lychgate.service')
  writeFileSync(file, unit.replace('ExecStart=/usr/local/bin/lychgate', `ExecStart=${process.execPath}`))
  const { error, status, stderr } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' })
  // Machines without systemd cannot check it; the likely errors were checked above.
  t.equal(error === undefined ? status : 0, 0, stderr)
})

t.test('every command these files name exists', async (t) => {
  const paths = [
    'Dockerfile',
    'compose.yaml',
    'compose.home.yaml',
    'compose.dev.yaml',
    'compose.postgres.yaml',
    'lychgate.service',
    'config.example.yaml',
  ]
  const text = paths.map((path) => read(`deploy/${path}`)).join('\n')
  const named = [...text.matchAll(/\blychgate ((?!lychgate)[a-z]+(?: add| validate)?)\b/g)]
  const commands = [...new Set(named.map(([, command = '']) => command))].toSorted()
  t.strictSame(commands, [
    'audit',
    'backup',
    'client',
    'config validate',
    'dev',
    'explain',
    'init',
    'keys',
    'logout',
    'serve',
    'user',
    'user add',
  ])
  const helps = await Promise.all(commands.map((command) => run([...command.split(' '), '--help'])))
  for (const [index, { code }] of helps.entries()) t.equal(code, 0, `${commands[index]}`)
})
