import { existsSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import closeWithGrace from 'close-with-grace'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { ConfigError } from '../config/error.ts'
import type { Config } from '../config/schema.ts'
import { removeAll } from '../domain/decision.ts'
import type { AppOptions, Deps } from '../feature/deps.ts'
import { type Stopping, stop } from '../http/drain.ts'
import { listen } from '../http/listen.ts'
import { logLines } from '../http/log.ts'
import { keyPolicy } from '../keys/key-policy.ts'
import { openKeyRing } from '../keys/key-ring.ts'
import { deriveSealingKey } from '../keys/seal.ts'
import { isTraced } from '../observability/is-traced.ts'
import { separateServiceLinks } from '../settings/environment.ts'
import { resolveConfig } from '../settings/load.ts'
import type { Store } from '../storage/store.ts'
import { connectToPrimary, isWorker, type WorkerChannel, workerCount } from '../system/peers.ts'
import { type Clock, type RandomSource, systemClock, systemRandom } from '../system/system.ts'
import { makeLink } from '../users/one-time-links.ts'
import { linkKinds } from '../users/rules/one-time-link.ts'
import { warnOfPastClock } from './clock-check.ts'
import { passingLine } from './failure.ts'
import type { ServeFlags } from './flags.ts'
import { openConfiguredStore, readDevSecret, rememberIssuer } from './open.ts'
import { lineWithoutAdministrator } from './operator.ts'
import { readableLog } from './readable-log.ts'

/** What a command does with the store before the server accepts requests. */
type Preparation = (store: Store, clock: Clock, random: RandomSource) => Promise<void>

/**
 * How long a start is repeated while the store is unavailable: another server may hold a lock for longer than one
 * waits for it, the database may be starting, or its standby may be taking over.
 */
const patienceSeconds = 30

/** `lychgate serve`: runs the server for real users. It rejects everything that belongs to development. */
export async function serve({ config: file, ...flags }: ServeFlags): Promise<void> {
  const sources = { mode: 'serve', flags: { ...flags }, environment: process.env, file } as const
  const { config, origins } = resolvedOrAdvised(sources)
  // resolveConfig requires a secret for `serve`; the type does not say so.
  const { secret = '' } = config
  if (secret === readDevSecret(config.data)) {
    throw new ConfigError('secret: is the one of the development server in this data folder; make a new one')
  }
  let line: string | undefined
  const prepare: Preparation = async (store, clock, random) => {
    const { seeded } = await store.population()
    if (seeded.length > 0) {
      throw new ConfigError(
        `store: made by the development server, with known passwords: ${seeded.join(', ')}; lychgate user delete ${seeded[0]}`,
      )
    }
    const link = await linkForFirstUser(config, store, clock, random)
    const hours = Math.max(1, Math.round(config.lifetimes.firstUserSeconds / 3600))
    line =
      link === undefined
        ? await lineWithoutAdministrator(store, config)
        : `No users yet. Open this link within ${hours} hours to create the first one:\n${link}`
  }
  const logTo = config.logFormat === 'text' ? readableLog(logLines()) : logLines()
  const workers = workerCount(config.workers)
  if (workers > 1 && !isWorker) return (await import('./workers.ts')).supervise(workers, config, logTo)
  const channel = isWorker ? connectToPrimary(workers) : undefined
  try {
    await runServer({ ...config, secret }, prepare, { origins, logTo }, systemClock, channel)
  } catch (error) {
    // A worker that did not start ends, although it is still connected with its primary process.
    process.channel?.unref()
    throw error
  }
  if (line !== undefined) process.stderr.write(`lychgate: ${line}\n`)
}

/** Names the file that `lychgate init` made here: it is read only if it is named. */
function resolvedOrAdvised(sources: Parameters<typeof resolveConfig>[0]): ReturnType<typeof resolveConfig> {
  try {
    return resolveConfig(sources)
  } catch (error) {
    const isNamed = (sources.file ?? process.env['LYCHGATE_CONFIG']) !== undefined
    if (isNamed || !existsSync('lychgate.yaml') || !(error instanceof ConfigError)) throw error
    const advice = 'config: lychgate.yaml in this folder was not read; name it: --config lychgate.yaml'
    throw new ConfigError([...error.faults, advice], { cause: error })
  }
}

/**
 * Makes a link that creates the first user if the store has no users. It replaces the link of an earlier start.
 */
export async function linkForFirstUser(
  config: Pick<Config, 'issuer' | 'lifetimes'>,
  store: Store,
  clock: Clock,
  random: RandomSource,
): Promise<string | undefined> {
  if (!(await store.population()).isEmpty) return undefined
  await store.write(removeAll(linkKinds['first-user']))
  const sources = { config, store, random }
  const { url } = await makeLink(sources, { purpose: 'first-user' }, { by: 'server', at: clock() })
  return url
}

/** Serves until a signal arrives, then finishes the requests that are open, closes, and exits with 0. */
export async function runServer(
  config: Config & { readonly secret: string },
  prepare: Preparation,
  options: AppOptions = {},
  clock: Clock = systemClock,
  channel?: WorkerChannel,
): Promise<void> {
  // Another thread derives the key while this one loads the rest.
  const secret = deriveSealingKey(config.secret)
  const latest = performance.now() + patienceSeconds * 1000
  for (let attempt = 1; ; attempt++) {
    try {
      return await startServer(config, secret, prepare, options, clock, channel)
    } catch (error) {
      const line = passingLine(error)
      if (line === undefined || performance.now() > latest) throw error
      if (attempt === 1) {
        process.stderr.write(`lychgate: ${line}; trying again for ${patienceSeconds} seconds\n`)
      }
      await setTimeout(500)
    }
  }
}

async function startServer(
  config: Config,
  secret: Promise<Buffer>,
  prepare: Preparation,
  options: AppOptions,
  clock: Clock,
  channel?: WorkerChannel,
): Promise<void> {
  const { buildApp } = await import('../app/app.ts')
  const peers = channel?.peers
  const isFirst = peers?.isFirst ?? true
  const store = await openConfiguredStore(config, peers !== undefined)
  try {
    const random = systemRandom
    const server = config.mode === 'dev' ? 'development' : 'production'
    const changed = async () => void (await peers?.ask('keys'))
    const ring = { store, secret, policy: keyPolicy(config), clock, random, server, changed } as const
    const { keys, opened } = openKeyRing(ring)
    const { deps, observe } = await watched({ config, store, keys, clock, random, ...(peers && { peers }) })
    // The application needs its keys from the first request on, so it is built while the other thread derives them.
    // They are awaited below; until then a rejection must not end the process.
    opened.catch(() => {})
    const app = await buildApp(deps, { ...options, observe })
    try {
      await opened
      if (isFirst) await prepare(store, clock, random)
      await listen(app, config)
    } catch (error) {
      await app.close()
      throw error
    }
    if (isFirst) await warnAtStart(app.log, config, store, clock)
    app.log.info({ issuer: config.issuer }, 'ready')
    let stopping: Stopping | undefined
    let isReplaced = false
    const delay = (config.drainSeconds + 10) * 1000
    const onTimeout = () => app.log.error(stopping?.report(), 'stopped before every request had its response')
    const skip = channel === undefined ? [] : signalsOfGroup
    const { close } = closeWithGrace({ delay, onTimeout, skip: [...skip] }, async ({ err }) => {
      if (err) app.log.fatal({ err }, 'stopped by an unexpected error')
      stopping = stop(app, store, isReplaced)
      await stopping.finished
    })
    if (channel === undefined) return
    // A terminal and a service manager send signals to every process: the primary process decides, and asks once more.
    const closeOnce = (replaced: boolean) => {
      isReplaced = replaced
      if (stopping === undefined) close()
    }
    for (const signal of signalsOfGroup)
      process.on(signal, () => void (signal !== 'SIGHUP' && closeOnce(false)))
    channel.onStop(closeOnce)
    channel.ready()
  } catch (error) {
    await store.close()
    throw error
  }
}

/** What a terminal or a service manager sends to all processes of a server at once. */
const signalsOfGroup = ['SIGHUP', 'SIGINT', 'SIGTERM', 'SIGQUIT'] as const

/** Logs what an operator should know at each start. */
async function warnAtStart(
  log: FastifyBaseLogger,
  config: Config,
  store: Store,
  clock: Clock,
): Promise<void> {
  const { links } = separateServiceLinks(process.env)
  if (links.length > 0) log.warn(`ignored what Kubernetes set for a Service: ${links.join(', ')}`)
  const before = rememberIssuer(config)
  if (config.mode !== 'serve') return
  if (before !== undefined)
    log.warn({ before }, 'the issuer has changed; clients and tokens know the one before')
  await warnOfPastClock(log, store, clock)
}

/** A server, and what observes its requests. */
interface Watched {
  readonly deps: Deps
  readonly observe: (app: FastifyInstance) => Promise<void>
}

/** Loads tracing and metrics only if they are configured. */
async function watched(base: Deps): Promise<Watched> {
  const { port } = base.config.management
  const watchers: ((deps: Deps) => Watched)[] = []
  if (isTraced()) watchers.push((await import('../observability/tracing.ts')).underTracing)
  if (port !== undefined) {
    const { underManagement } = await import('../observability/management.ts')
    watchers.push((deps) => underManagement(deps, port))
  }
  let deps = base
  const observers: Watched['observe'][] = []
  for (const watch of watchers) {
    const outer = watch(deps)
    deps = outer.deps
    observers.push(outer.observe)
  }
  const observe = async (app: FastifyInstance) => {
    for (const observer of observers) await observer(app)
  }
  return { deps, observe }
}
