import type { FastifyBaseLogger } from 'fastify'
import type { Seconds } from '../domain/model.ts'
import { newestMigration } from '../storage/migrations.ts'
import type { Store } from '../storage/store.ts'
import type { Clock } from '../system/system.ts'
import { instant } from './print.ts'

/** Two machines of one store may differ by this much. */
const toleratedSeconds: Seconds = 60

/**
 * Warns at the start of a server whose clock is in the past: before this version was made, or before the newest event of
 * the store. Its tokens would have expired for everyone else, and what is over would be valid again.
 */
export async function warnOfPastClock(
  log: Pick<FastifyBaseLogger, 'warn'>,
  store: Pick<Store, 'audit'>,
  clock: Clock,
): Promise<void> {
  const now = clock()
  const [later] = await store.audit({ since: now + toleratedSeconds, limit: 1 })
  const floors = [
    ['this version of the server was made', newestMigration()],
    ['the newest event of the store', later?.at ?? 0],
  ] as const
  for (const [what, at] of floors) {
    if (now >= at) continue
    log.warn(
      `the clock is in the past: it is ${instant(now)}, and ${what}: ${instant(at)}; set it, such as with ntpd`,
    )
    return
  }
}
