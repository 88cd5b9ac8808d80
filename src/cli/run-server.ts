import { setTimeout } from 'node:timers/promises'
import closeWithGrace from 'close-with-grace'
import type { FastifyInstance } from 'fastify'
import type { Config } from '../config/schema.ts'
import type { AppOptions, Deps } from '../deps.ts'
import { type Stopping, stop } from '../http/drain.ts'
import { listen } from '../http/listen.ts'
import { openKeyRing } from '../keys/key-ring.ts'
import { deriveSealingKey } from '../keys/seal.ts'
import { separateServiceLinks } from '../settings/environment.ts'
import { keyPolicy } from '../settings/key-policy.ts'
import type { Store } from '../storage/store.ts'
import type { Clock, RandomSource } from '../system.ts'
import { systemClock, systemRandom } from '../system.ts'
import { isTraced } from '../tracing/is-traced.ts'
import { passingLine } from './failure.ts'
import { openConfiguredStore, rememberIssuer } from './open.ts'

/** What a kind of server does with its store before the first request. */
export type Preparation = (store: Store, clock: Clock, random: RandomSource) => Promise<void>

/**
 * For how long a start is tried again when the store is unavailable: another server that starts as well holds what this
 * one needs for longer than a lock is waited for, or the database starts too, or its standby takes over.
 */
const patienceSeconds = 30

/** Serves until a signal comes, then leaves quietly: answers what is on the wire, closes, ends with 0. */
export async function runServer(
  config: Config & { readonly secret: string },
  prepare: Preparation,
  options: AppOptions = {},
  clock: Clock = systemClock,
): Promise<void> {
  // Another thread derives the key while this one loads the rest.
  const secret = deriveSealingKey(config.secret)
  const latest = performance.now() + patienceSeconds * 1000
  for (let attempt = 1; ; attempt++) {
    try {
      await startServer(config, secret, prepare, options, clock)
      return
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
): Promise<void> {
  const { buildApp } = await import('../app.ts')
  const store = await openConfiguredStore(config)
  try {
    const random = systemRandom
    const server = config.mode === 'dev' ? 'development' : 'production'
    const { keys, opened } = openKeyRing({ store, secret, policy: keyPolicy(config), clock, random, server })
    const { deps, observe } = await watched({ config, store, keys, clock, random })
    // Built while the other thread derives: the application needs its keys from the first request on.
    // Whether it has them is asked below; a rejection must not end the process before.
    opened.catch(() => {})
    const app = await buildApp(deps, { ...options, observe })
    try {
      await opened
      await prepare(store, clock, random)
      await listen(app, config)
    } catch (error) {
      await app.close()
      throw error
    }
    const { links } = separateServiceLinks(process.env)
    if (links.length > 0) app.log.warn(`ignored what Kubernetes set for a Service: ${links.join(', ')}`)
    const before = rememberIssuer(config)
    if (before !== undefined && config.mode === 'serve')
      app.log.warn({ before }, 'the issuer has changed; clients and tokens know the one before')
    app.log.info({ issuer: config.issuer }, 'ready')
    let stopping: Stopping | undefined
    const delay = (config.drainSeconds + 10) * 1000
    const onTimeout = () => app.log.error(stopping?.report(), 'stopped before every request was answered')
    closeWithGrace({ delay, onTimeout }, async ({ err }) => {
      if (err) app.log.fatal({ err }, 'stopped by an unexpected error')
      stopping = stop(app, store)
      await stopping.finished
    })
  } catch (error) {
    await store.close()
    throw error
  }
}

/** A server, and what sees its requests. */
interface Watched {
  readonly deps: Deps
  readonly observe: (app: FastifyInstance) => Promise<void>
}

/** Loads tracing and metrics only where they are configured. */
async function watched(given: Deps): Promise<Watched> {
  const { port } = given.config.management
  const watchers: ((deps: Deps) => Watched)[] = []
  if (isTraced()) watchers.push((await import('../tracing/tracing.ts')).underTracing)
  if (port !== undefined) {
    const { underManagement } = await import('../management/management.ts')
    watchers.push((deps) => underManagement(deps, port))
  }
  return watchers.reduce<Watched>(
    (inner, watch) => {
      const outer = watch(inner.deps)
      const observe = async (app: FastifyInstance) => {
        await inner.observe(app)
        await outer.observe(app)
      }
      return { deps: outer.deps, observe }
    },
    { deps: given, observe: async () => {} },
  )
}
