import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from '../../test/helpers/free-port.ts'
import { UserAgent } from '../../test/helpers/user-agent.ts'
import { childrenOf, type RunningServer, startServer, temporaryFolder } from './process.ts'

/** What the workloads know about an authorization server. */
export interface Target {
  readonly name: 'Lychgate' | 'Lychgate, earlier build' | 'oidc-provider' | 'oidc-provider, in memory'
  readonly server: RunningServer
  readonly issuer: string
  readonly startMilliseconds: number
  readonly idleMemory: number
  readonly paths: Paths
  /** Public clients with PKCE, for which the user has signed in and consented. */
  readonly app: string
  readonly appEs256: string
  /** Confidential, for introspection. */
  readonly api: { readonly id: string; readonly secret: string }
  /** Whether all tokens of a session and an app belong to one grant, and end with it. */
  readonly sharesGrants: boolean
  /** The `Cookie` header of a browser in which the user signed in and consented to both. */
  readonly cookie: string
}

export interface Paths {
  readonly discovery: string
  readonly keys: string
  readonly authorize: string
  readonly token: string
  readonly userInfo: string
  readonly introspect: string
  readonly revoke: string
  readonly register: string
  /** A protected resource; oidc-provider has none. */
  readonly api?: string
}

export const redirectUri = 'https://app.example/callback'
export const verifier = 'v'.repeat(43)
export const challenge = '7w_YNF9DSfIdPf_pRjSq646_kPr-2-o9NAl16JGghdM'

const root = fileURLToPath(new URL('../..', import.meta.url))
const here = fileURLToPath(new URL('.', import.meta.url))
/** Lychgate as shipped, built by `npm run build`. */
export const executable = `${root}dist/lychgate`
const node = process.execPath
/** The password of Lychgate's user. */
export const benchPassword = 'a password for the benchmark'

/** Starts another node of the same server. */
export type AnotherNode = () => Promise<RunningServer>

/** Lychgate as shipped, on SQLite with every write on disk, with its log. */
export async function startLychgate(environment: Readonly<Record<string, string>> = {}): Promise<Target> {
  return (await startOn(environment)).target
}

/** This build of Lychgate. */
export async function startBuild(
  file: string,
  environment: Readonly<Record<string, string>> = {},
): Promise<Target> {
  return (await startOn(environment, { program: resolve(file) })).target
}

/** The host that a proxy protects, and the scopes of its client. */
export const protectedHost = 'wiki.example'
export const protectedScope = 'openid profile email groups'

/** This build of Lychgate, which a proxy asks about requests for a host. */
export async function startProtecting(file: string): Promise<Target> {
  const proxies = { LYCHGATE_TRUST_PROXY: '127.0.0.1,::1' }
  return (await startOn(proxies, { program: resolve(file), isProtecting: true })).target
}

/** Another build of Lychgate. */
export async function startEarlierBuild(file: string): Promise<Target> {
  return { ...(await startBuild(file)), name: 'Lychgate, earlier build' }
}

/** The same on any core, on this PostgreSQL if one is given; more nodes can be started. */
export async function startOnAnyCore(
  store?: string,
): Promise<{ readonly target: Target; readonly another: AnotherNode }> {
  return startOn(store === undefined ? {} : { LYCHGATE_STORE: store }, { anyCore: true })
}

/** Lychgate as shipped with this many workers, on any core, on SQLite or on this PostgreSQL. */
export async function startWorkers(count: number, store?: string): Promise<Target> {
  const variables = { LYCHGATE_WORKERS: String(count), ...(store !== undefined && { LYCHGATE_STORE: store }) }
  const { target } = await startOn(variables, { anyCore: true })
  while (count > 1 && childrenOf(target.server.pid).length < count) await wait(100)
  // The last one still starts.
  if (count > 1) await wait(5000)
  return target
}

async function startOn(
  settings: Readonly<Record<string, string>>,
  { anyCore = false, program = executable, isProtecting = false } = {},
): Promise<{ readonly target: Target; readonly another: AnotherNode }> {
  if (!existsSync(program)) throw new Error(`${program} is not there: npm run build`)
  const command = (args: readonly string[], variables: Record<string, string>, input = '') =>
    runCommand(program, args, variables, input)
  const data = temporaryFolder('lychgate-bench')
  const port = await freePort()
  const issuer = `http://localhost:${port}`
  const environment: Record<string, string> = {
    LYCHGATE_ISSUER: issuer,
    LYCHGATE_PORT: String(port),
    LYCHGATE_DATA: data,
    LYCHGATE_SECRET: command(['keys', 'secret'], {}).trim(),
    LYCHGATE_RATE_LIMITS: 'off',
    ...settings,
  }
  // One user stands for all. Builds of before there was this limit reject its variable.
  if (command(['config', 'print'], environment).includes('grantsPerUserAndClient'))
    environment['LYCHGATE_LIMITS_GRANTS_PER_USER_AND_CLIENT'] = '0'
  const run = (args: readonly string[], input = '') => command(args, environment, input)
  run(['user', 'add', 'bench'], `${benchPassword}\n`)
  const add = (...more: readonly string[]) => {
    const args = ['client', 'add', '--name', 'App', '--redirect-uri', redirectUri, '--auth', 'none', '--json']
    return clientOf(run([...args, '--consent', 'remember', ...more])).id
  }
  const [app, appEs256] = [add(), add('--id-token-alg', 'ES256')]
  const api = clientOf(run(['client', 'add', '--name', 'API', '--resource', issuer, '--json']))
  if (isProtecting) {
    const file = join(data, 'host.json')
    writeFileSync(file, JSON.stringify({ host: protectedHost }))
    const callback = `https://${protectedHost}/.lychgate/callback`
    const how = ['--redirect-uri', callback, '--forward-auth', file]
    run(['client', 'add', '--name', 'Wiki', '--auth', 'none', '--consent', 'skip', ...how])
  }
  const start = async (own: number) => {
    const variables = { ...environment, LYCHGATE_PORT: String(own) }
    return startServer([program, 'serve'], own, { environment: variables, anyCore })
  }
  const { server, milliseconds } = await start(port)
  const idleMemory = server.memory()
  const paths = {
    discovery: '/.well-known/openid-configuration',
    keys: '/api/oauth/jwks',
    authorize: '/oauth/authorize',
    token: '/api/oauth/token',
    userInfo: '/api/oauth/userinfo',
    introspect: '/api/oauth/introspect',
    revoke: '/api/oauth/revoke',
    register: '/api/oauth/register',
    api: '/api/courses',
  }
  const agent = new UserAgent(issuer)
  for (const client of [app, appEs256]) await agreeInLychgate(agent, issuer + authorizeUrl(paths, client))
  if (isProtecting) await agreeInLychgate(agent, issuer + authorizeUrl(paths, app, protectedScope))
  const target = {
    name: 'Lychgate' as const,
    server,
    issuer,
    startMilliseconds: milliseconds,
    idleMemory,
    paths,
    app,
    appEs256,
    api,
    sharesGrants: false,
    cookie: cookieOf(agent),
  }
  return { target, another: async () => (await start(await freePort())).server }
}

/** oidc-provider, on its own durable adapter or in memory. */
export async function startOidcProvider(durable: boolean): Promise<Target> {
  const port = await freePort()
  const issuer = `http://localhost:${port}`
  const folder = temporaryFolder('oidc-provider-bench')
  const args = [
    node,
    `${here}servers/oidc-provider.js`,
    String(port),
    ...(durable ? [`${folder}/store.db`] : []),
  ]
  const { server, milliseconds } = await startServer(args, port)
  const idleMemory = server.memory()
  const paths = {
    discovery: '/.well-known/openid-configuration',
    keys: '/jwks',
    authorize: '/auth',
    token: '/token',
    userInfo: '/me',
    introspect: '/token/introspection',
    revoke: '/token/revocation',
    register: '/reg',
  }
  const agent = new UserAgent(issuer)
  const [app, appEs256] = ['app', 'app-es256']
  for (const client of [app, appEs256]) {
    const landing = await agent.open(issuer + authorizeUrl(paths, client))
    if (landing.at !== 'redirect') throw new Error('oidc-provider showed a page')
  }
  return {
    name: durable ? 'oidc-provider' : 'oidc-provider, in memory',
    server,
    issuer,
    startMilliseconds: milliseconds,
    idleMemory,
    paths,
    app,
    appEs256,
    api: { id: 'api', secret: 'a-secret-of-the-api-that-is-long-enough' },
    sharesGrants: true,
    cookie: cookieOf(agent),
  }
}

/** The floor: a bare Fastify. @param documentBytes How long its document is. */
export async function startFloor(documentBytes = 3000) {
  const port = await freePort()
  return startServer([node, `${here}servers/floor.js`, String(port), String(documentBytes)], port)
}

/** The authorization request of a client, path and query. */
export function authorizeUrl({ authorize }: Paths, client: string, scope = 'openid courses:read'): string {
  const query = new URLSearchParams({
    response_type: 'code',
    client_id: client,
    redirect_uri: redirectUri,
    scope,
    state: 'the-state-of-the-app',
    code_challenge: challenge,
    code_challenge_method: 'S256',
  })
  return `${authorize}?${query}`
}

async function agreeInLychgate(agent: UserAgent, url: string): Promise<void> {
  let landing = await agent.open(url)
  for (let step = 0; landing.at === 'page' && step < 4; step += 1) {
    const isSignIn = landing.page.forms[0]?.fields.some(({ name }) => name === 'password') ?? false
    const response: Record<string, string> = isSignIn
      ? { username: 'bench', password: benchPassword }
      : { decision: 'approve' }
    landing = await agent.submit(landing.page, response, landing.page.forms[0])
  }
  if (landing.at === 'page') throw new Error(`stuck at ${landing.page.url}`)
}

function runCommand(
  program: string,
  args: readonly string[],
  environment: Record<string, string>,
  input: string,
): string {
  const { status, stdout, stderr } = spawnSync(program, args, {
    env: environment,
    input,
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`lychgate ${args.join(' ')}: ${stderr}`)
  return stdout
}

function clientOf(json: string): { readonly id: string; readonly secret: string } {
  const { client_id: id = '', client_secret: secret = '' } = JSON.parse(json) as Record<string, string>
  return { id, secret }
}

function cookieOf(agent: UserAgent): string {
  return `Cookie: ${[...agent.cookies].map((pair) => pair.join('=')).join('; ')}\r\n`
}
