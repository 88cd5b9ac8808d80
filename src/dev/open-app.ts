import type { FastifyInstance } from 'fastify'
import { buildApp } from '../app.ts'
import type { Config } from '../config/schema.ts'
import type { AppOptions } from '../deps.ts'
import { openKeyRing } from '../keys/key-ring.ts'
import { keyPolicy } from '../settings/key-policy.ts'
import type { Store } from '../storage/store.ts'
import { systemClock, systemRandom } from '../system.ts'
import { type MovableClock, movableClock } from './clock.ts'
import { development } from './plugin.ts'

/** What a development application is made of. */
export interface DevelopmentParts {
  readonly config: Config
  readonly store: Store
  /** What the keys are sealed with: a secret, or the key made of one. */
  readonly secret: string | Promise<Buffer>
  readonly clock?: MovableClock
  readonly logTo?: AppOptions['logTo']
}

/** A whole development server that listens nowhere yet, with the keys of this store or new ones. */
export async function openDevelopmentApp({
  config,
  store,
  secret,
  clock = movableClock(systemClock),
  logTo,
}: DevelopmentParts): Promise<FastifyInstance> {
  const random = systemRandom
  const sources = { store, secret, policy: keyPolicy(config), clock, random, server: 'development' } as const
  const { keys, opened } = openKeyRing(sources)
  const [app] = await Promise.all([
    buildApp({ config, store, keys, clock, random }, { development, ...(logTo && { logTo }) }),
    opened,
  ])
  return app
}
