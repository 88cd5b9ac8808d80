import type { Seconds } from '../domain/model.ts'
import type { Plugin } from '../feature/deps.ts'
import { repeat } from '../http/repeat.ts'
import type { SweepBounds } from '../storage/store.ts'

/** Deletes what has expired, a small batch at a time, so that no table grows for ever and no request waits long. */
export const sweeper: Plugin<'config' | 'store' | 'clock'> = async (app, { config, store, clock }) => {
  const rest = config.sweepSeconds * 1000
  const { unusedClientSeconds, idleClientSeconds, refreshTokenIdleSeconds } = config.lifetimes
  // No client goes before its last refresh token has ended; uses are noted to the day.
  const idle = idleClientSeconds && Math.max(idleClientSeconds, refreshTokenIdleSeconds + secondsPerDay)
  // Read again for every batch: if the clock was set back in the meantime, what is valid again must stay.
  const bounds: SweepBounds = {
    get now() {
      return clock()
    },
    get clientsUnusedSince() {
      return clock() - unusedClientSeconds
    },
    get clientsIdleSince() {
      return since(clock(), idle)
    },
    get auditedSince() {
      return since(clock(), config.auditSeconds)
    },
    unusedClientBytes: config.limits.unusedClientBytes,
    refusalsKept: config.refusalsKept,
  }
  const server = repeat(app, rest, async () => {
    try {
      const { rows, more } = await store.sweep(bounds)
      if (rows > 0) app.log.debug({ swept: rows }, 'swept expired records')
      return more ? pauseMilliseconds : rest
    } catch (error) {
      if (!server.isClosed) app.log.warn({ err: error }, 'sweeping failed')
      return rest
    }
  })
}

const secondsPerDay = 86_400

/** Returns the instant before which records are too old; 0 seconds keep them forever. */
function since(now: Seconds, seconds: Seconds): Seconds {
  return seconds === 0 ? 0 : now - seconds
}

/** Between two batches, requests run first. */
const pauseMilliseconds = 100

/**
 * Keeps the keys of a running server up to date: rotates keys that are old enough, and loads what another node or an
 * operator's command added or retired. A failure is retried; the current keys stay in use in the meantime.
 */
export const keyUpkeep: Plugin<'config' | 'keys'> = async (app, { config, keys }) => {
  const pause = config.keys.reloadSeconds * 1000
  const server = repeat(app, pause, async () => {
    try {
      const { added, removed } = await keys.reload()
      if (added.length + removed.length > 0) app.log.info({ added, removed }, 'the keys have changed')
    } catch (error) {
      if (!server.isClosed) app.log.warn({ err: error }, 'looking for new keys failed')
    }
    return pause
  })
}
