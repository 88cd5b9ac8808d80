import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { isObject } from '../../src/domain/is-object.ts'
import { blocksOf } from '../docs/page.ts'
import { adminScope, type Registered } from './configuration.ts'
import type { ServerKind } from './plans.ts'
import { startProcess, untilReady } from './suite.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** An issuer of the suite that users sign in with. */
export interface Issuer {
  readonly id: string
  readonly url: string
  /** The scope to request. */
  readonly scope: string
}

/** The client of this server at each issuer of the suite. */
export const upstreamClient = { client_id: 'lychgate', client_secret: 'a secret of the suite' } as const

export interface ServerOptions {
  readonly kind: ServerKind
  readonly issuer: string
  readonly port: number
  readonly folder: string
  /** The address of the suite's callbacks. */
  readonly callbacks: string
  /** The file with the certificate of the suite. */
  readonly certificate: string
  readonly upstreams: readonly Issuer[]
}

export interface Server {
  readonly registered: Registered
  /** Runs `lychgate …`, and returns its output. */
  lychgate(...args: readonly string[]): Promise<string>
  /** Runs `lychgate keys rotate --now`, and waits until the server has read the new keys. */
  rotateKeys(): Promise<void>
  stop(): Promise<void>
}

const user = { username: 'ada-suite', password: 'correct horse battery' } as const

/** Starts `lychgate serve` with an empty folder, and adds the user and the clients by the lines of docs/testing.md. */
export async function startServer(options: ServerOptions): Promise<Server> {
  const { kind, issuer, port, folder, callbacks, certificate } = options
  mkdirSync(join(folder, 'data'), { recursive: true, mode: 0o700 })
  // JSON is YAML.
  writeFileSync(join(folder, 'lychgate.yaml'), JSON.stringify(settingsOf(options), undefined, 2))
  writeFileSync(join(folder, 'upstream-secret'), `${upstreamClient.client_secret}\n`, { mode: 0o600 })
  const program = process.env['TEST_EXECUTABLE'] ?? join(root, 'src/lychgate.js')
  const [file, ...first] = program.endsWith('.js') ? [process.execPath, program] : [program]
  const bare = { PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter), HOME: folder }
  const env = {
    ...bare,
    NODE_EXTRA_CA_CERTS: certificate,
    LYCHGATE_CONFIG: 'lychgate.yaml',
    LYCHGATE_SECRET_FILE: 'secret',
  }
  const lychgate: Server['lychgate'] = (...args) => outputOf(file, [...first, ...args], { cwd: folder, env })
  const secret = await outputOf(file, [...first, 'keys', 'secret'], { cwd: folder, env: bare })
  writeFileSync(join(folder, 'secret'), secret, { mode: 0o600 })
  const running = startProcess([file, ...first, 'serve'], join(folder, 'serve.log'), { cwd: folder, env })
  try {
    await untilReady(`http://127.0.0.1:${port}/readyz`, 60, running)
    /** Runs the block of docs/testing.md that has this text. */
    const documented = (text: string) => {
      const script = `set -eu
npx() { "$@"; }
lychgate() { ${[file, ...first].map((word) => `'${word}'`).join(' ')} "$@"; }
${blockWith(text).replace(/^suite=.*$/m, `suite=${callbacks}`)}`
      return outputOf('bash', ['-c', script], { cwd: folder, env: { ...env, suite: callbacks } })
    }
    const registered =
      kind === 'upstreams'
        ? { clients: {}, fapiKeys: {}, fapiScope: '', initialAccessToken: '' }
        : await register(documented, lychgate, folder)
    return {
      registered: { issuer, ...user, ...registered },
      lychgate,
      async rotateKeys() {
        await lychgate('keys', 'rotate', '--now')
        // Several times `keys.reloadSeconds`.
        await new Promise((resolve) => setTimeout(resolve, 4000))
      },
      stop: () => running.stop(),
    }
  } catch (error) {
    await running.stop()
    throw error
  }
}

function settingsOf({ kind, issuer, port, folder, upstreams }: ServerOptions) {
  return {
    issuer,
    port,
    data: join(folder, 'data'),
    trustProxy: ['127.0.0.1'],
    rateLimits: 'off',
    // The suite is on this computer: no keys, logos or request objects could be fetched of it, and no logout tokens sent.
    fetch: { privateNetworks: ['127.0.0.0/8', '::1/128'] },
    keys: { reloadSeconds: 1, ...(kind === 'no-ed25519' && { ed25519: 'off' }) },
    // It is the resource of FAPI 2.0 without OpenID Connect.
    admin: { api: 'on', group: 'admins' },
    upstreams: upstreams.map(({ id, url, scope }) => ({
      id,
      name: id,
      issuer: url,
      scope,
      clientId: upstreamClient.client_id,
      clientSecretFile: 'upstream-secret',
      firstSignIn: 'any',
    })),
  }
}

async function register(
  documented: (text: string) => Promise<string>,
  lychgate: Server['lychgate'],
  folder: string,
): Promise<Pick<Registered, 'clients' | 'fapiKeys' | 'fapiScope' | 'initialAccessToken'>> {
  await documented(`user add ${user.username}`)
  await lychgate('group', 'create', 'admins')
  await lychgate('group', 'add', 'admins', user.username)
  const secrets = valuesOf(await documented('Suite, client_secret_post'), 'client_secret')
  const [initialAccessToken = ''] = valuesOf(
    await documented('registration token create'),
    'initial_access_token',
  )
  await documented('client profile fapi2')
  const all: unknown = JSON.parse(await lychgate('client', 'list', '--json'))
  const listed = (Array.isArray(all) ? all : []).filter(isObject)
  const named = [
    'Suite, client',
    'Suite, client2',
    'Suite, client_secret_post',
    'Suite, FAPI one',
    'Suite, FAPI two',
  ]
  const clients = named.map((name, index) => {
    const client = listed.find((one) => one['client_name'] === name)
    if (client === undefined) throw new Error(`docs/testing.md no longer adds the client "${name}"`)
    const secret = secrets[index]
    return [name, { id: String(client['client_id']), ...(secret !== undefined && { secret }) }] as const
  })
  const fapi = clients.slice(3).map(([, { id }]) => id)
  const fapiScope = String(listed.find((one) => one['client_id'] === fapi[0])?.['scope'])
  for (const id of fapi) await lychgate('client', 'set', id, '--scope', `${fapiScope} ${adminScope}`)
  const keysOf = (name: string): unknown =>
    JSON.parse(readFileSync(join(folder, `${name}.private.json`), 'utf8'))
  return {
    clients: Object.fromEntries(clients),
    fapiKeys: { one: keysOf('one'), two: keysOf('two') },
    fapiScope,
    initialAccessToken,
  }
}

/** @throws {Error} if docs/testing.md has no commands with this text. */
export function blockWith(text: string): string {
  const blocks = blocksOf(readFileSync(join(root, 'docs/testing.md'), 'utf8'))
  const block = blocks.find(({ language, content }) => language === 'sh' && content.includes(text))
  if (block === undefined) throw new Error(`docs/testing.md has no commands with: ${text}`)
  return block.content
}

/** Runs a command to its end, while connections to the suite are served. */
async function outputOf(
  file: string,
  args: readonly string[],
  options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): Promise<string> {
  const { stdout } = await promisify(execFile)(file, args, { ...options, encoding: 'utf8' })
  return stdout
}

/** The values of lines that begin with a name. */
function valuesOf(output: string, name: string): readonly string[] {
  return [...output.matchAll(new RegExp(`^${name} +(\\S+)$`, 'gm'))].map(([, value = '']) => value)
}
