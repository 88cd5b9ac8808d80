import type { FastifyInstance } from 'fastify'
import { buildApp } from '../../src/app/app.ts'
import type { Config } from '../../src/config/schema.ts'
import { type MovableClock, movableClock } from '../../src/dev/clock.ts'
import { development } from '../../src/dev/plugin.ts'
import { insert } from '../../src/domain/decision.ts'
import type { AppOptions, Deps } from '../../src/feature/deps.ts'
import { keyPolicy } from '../../src/keys/key-policy.ts'
import { loadKeyRing } from '../../src/keys/key-ring.ts'
import { loadConfig } from '../../src/settings/load.ts'
import { openStore } from '../../src/storage/open.ts'
import { systemClock, systemRandom } from '../../src/system/system.ts'
import { createUser } from '../../src/users/rules/user.ts'
import { cheapHash } from './cheap-hash.ts'
import { executable } from './command.ts'
import { startOutside, storeForTwo } from './executable.ts'
import { freePort } from './free-port.ts'
import { nodeCount, patient, storeForNodes } from './nodes.ts'
import { startRoundRobin } from './round-robin.ts'

/** The part of tap's `t` that is used here. */
interface Test {
  teardown(end: () => unknown): unknown
}

/** Parts of the configuration, one level deep; `store` is the database, in memory by default. */
export type ServerOptions = {
  readonly [K in keyof Config]?: Config[K] extends object ? Partial<Config[K]> : Config[K]
} & {
  /** Path of the issuer, such as `/t`. */
  readonly issuerPath?: string
  /** Adds to the seams of the application. */
  readonly observe?: AppOptions['observe']
  /** How many nodes; with more than one, `store` is the database they share. */
  readonly nodes?: number
  /** Whose clock: that of the machine for clients that have it, too. By default time stands still where it can. */
  readonly clock?: 'machine'
}

/** One process of a server, or a stand-in for one: it shares only the database with the others. */
export interface TestNode {
  /** Its own URL; the issuer it belongs to has another. */
  readonly issuer: string
  readonly origin: string
  readonly app: FastifyInstance
  readonly deps: Deps
  /** Its scheduled work. */
  readonly repeated: ReadonlySet<() => Promise<void>>
  close(): Promise<void>
}

export interface TestServer extends TestNode {
  readonly nodes: readonly TestNode[]
  /** Moves the server's clock forward. */
  advance(seconds: number): void
  /** The server's time, in seconds. */
  now(): number
  /** Runs the work that each node schedules: the sweep, and reloading the keys. */
  maintain(): Promise<void>
  /** Everything logged so far. */
  readonly log: string[]
}

export const alice = { username: 'alice', password: 'alice-in-tests' }
export const bob = { username: 'bob', password: 'bob-in-tests' }

const everyClaim = {
  name: 'Alice Ångström',
  family_name: 'Ångström',
  given_name: 'Alice',
  middle_name: 'Maria',
  nickname: 'Ali',
  profile: 'https://people.example/alice',
  picture: 'https://people.example/alice.png',
  website: 'https://alice.example',
  gender: 'female',
  birthdate: '1990-04-01',
  zoneinfo: 'Europe/Stockholm',
  locale: 'sv-SE',
  phone_number: '+46855512345',
  phone_number_verified: true,
  address: { street_address: 'Storgatan 1', locality: 'Uppsala', postal_code: '753 31', country: 'Sweden' },
}

/**
 * A real server: the whole application over a real SQLite store, listening on a free port, with alice and bob. With
 * TEST_EXECUTABLE it is that file in another process, and a test sees only its wire and its store. With TEST_NODES, or
 * `nodes`, it is that many nodes, which share a database of TEST_POSTGRES, behind a proxy that sends every request to
 * the next one.
 */
export async function startServer(t: Test, options: ServerOptions = {}): Promise<TestServer> {
  const { nodes: count = nodeCount, observe = async () => {}, clock, ...rest } = options
  const port = options.port ?? (await freePort())
  const origin = `http://localhost:${port}`
  const issuer = origin + (options.issuerPath ?? '')
  const config = testConfig(issuer, port, rest)
  if (executable && options.store === undefined && count === 1) {
    const { url, remove } = storeForTwo()
    t.teardown(remove)
    return startServer(t, { ...options, port, store: url })
  }
  // Where another process reads the store, or a test asks for the clock of a development server, time passes.
  const isAlone = options.store === undefined && count === 1 && !executable && options.mode !== 'dev'
  const isStopped = isAlone && clock !== 'machine'
  const shared = {
    config,
    observe,
    url: count > 1 ? await storeForNodes(options.store) : (options.store ?? 'sqlite::memory:'),
    clock: isStopped ? stoppedClock() : movableClock(systemClock),
    log: [] as string[],
  }
  const ports = count > 1 ? await Promise.all(Array.from({ length: count }, freePort)) : [port]
  // Only `serve` runs outside: a development server belongs to its test.
  const outside = options.mode === 'dev' ? undefined : executable
  const nodes = outside
    ? await startOutsideNodes(outside, shared, ports, options.issuerPath)
    : await startNodes(shared, ports, options.issuerPath)
  const [first] = nodes
  if (first === undefined) throw new Error('a server has at least one node')
  const close = async () => void (await Promise.all(nodes.map((node) => node.close())))
  t.teardown(close)
  if (count > 1) await startRoundRobin(t, port, ports)
  const advance = (seconds: number) => {
    if (outside) throw new Error('the executable has a clock of its own')
    void shared.clock.move({ advance: seconds })
  }
  const maintain = async () => {
    if (outside) throw new Error('the executable has timers of its own')
    for (const node of nodes) for (const work of node.repeated) await work()
  }
  return { ...first, issuer, origin, nodes, log: shared.log, close, now: shared.clock, advance, maintain }
}

/** The machine's time at the start, which moves only when a test moves it: no result depends on a second. */
function stoppedClock(): MovableClock {
  const clock = movableClock(systemClock)
  void clock.move({ freeze: true })
  return clock
}

/** What the nodes of one server share. */
interface Shared {
  readonly config: Config
  readonly url: string
  readonly clock: MovableClock
  readonly log: string[]
  readonly observe: NonNullable<AppOptions['observe']>
}

async function startNodes(shared: Shared, ports: readonly number[], path = ''): Promise<TestNode[]> {
  const nodes: TestNode[] = []
  for (const port of ports) {
    const { app, ...node } = await assemble(shared)
    await app.listen({ port, host: 'localhost' })
    const origin = `http://localhost:${port}`
    nodes.push({ issuer: origin + path, origin, app, ...node })
  }
  return nodes
}

/** Processes of the executable, and one application that does not listen and shares their store. */
async function startOutsideNodes(
  file: string,
  shared: Shared,
  ports: readonly number[],
  path = '',
): Promise<TestNode[]> {
  const { app, deps, repeated, close } = await assemble(shared)
  return Promise.all(
    ports.map(async (port, index): Promise<TestNode> => {
      const outside = await startOutside(file, { ...shared.config, port }, shared.url)
      const origin = `http://localhost:${port}`
      const end = async () => {
        await outside.stop()
        if (index === 0) await close()
      }
      return { issuer: origin + path, origin, app, deps, repeated, close: end }
    }),
  )
}

async function assemble({ config, url, clock, log, observe }: Shared) {
  const store = await openStore(url, patient)
  const { secret = '' } = config
  const kind = config.mode === 'dev' ? 'development' : 'production'
  const sources = { store, secret, clock, random: systemRandom, server: kind } as const
  const keys = await loadKeyRing({ ...sources, policy: keyPolicy(config) })
  const deps: Deps = { config, store, keys, clock, random: systemRandom }
  await addUsers(deps)
  const logTo = { write: (line: string) => void log.push(line) }
  const repeated = new Set<() => Promise<void>>()
  // A development server has such a set for its clock.
  const isDev = config.mode === 'dev'
  const app = await buildApp(deps, {
    logTo,
    async observe(app) {
      await observe(app)
      if (!isDev) app.decorate('repeated', repeated)
    },
    ...(isDev && { development }),
  })
  let closed = false
  const close = async () => {
    if (closed) return
    closed = true
    await app.close()
    await store.close()
  }
  return { app, deps, repeated: app.repeated ?? repeated, close }
}

function testConfig(issuer: string, port: number, { issuerPath: _path, ...config }: ServerOptions): Config {
  const loaded = loadConfig({
    mode: 'serve',
    flags: { issuer, port: String(port), secret: 'a secret for tests that is long enough' },
  })
  const merged = Object.entries(config).map(([name, part]) => {
    const whole = loaded[name as keyof Config]
    const isObject =
      typeof part === 'object' && part !== null && !Array.isArray(part) && typeof whole === 'object'
    return [name, isObject ? { ...whole, ...part } : part]
  })
  return { ...loaded, rateLimits: 'off', ...Object.fromEntries(merged) }
}

async function addUsers({ store, clock }: Deps): Promise<void> {
  if (await store.find('userByLogin', alice.username)) return
  for (const { username, password } of [alice, bob]) {
    const user = {
      username,
      email: `${username}@example.test`,
      emailVerified: true,
      passwordHash: cheapHash(password, systemRandom),
      claims: username === 'alice' ? everyClaim : { name: 'Bob' },
    }
    await store.write(insert('user', createUser(user, systemRandom(16), clock())))
  }
}
