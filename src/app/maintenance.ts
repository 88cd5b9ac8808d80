import type { Seconds } from '../domain/model.ts'
import type { Plugin } from '../feature/deps.ts'
import { repeat } from '../http/repeat.ts'
import type { SweepBounds } from '../storage/store.ts'

/** Deletes what has expired, a small batch at a time, so that no table grows for ever and no request waits long. */
export const sweeper: Plugin<'config' | 'store' | 'clock' | 'peers'> = async (
  app,
  { config, store, clock, peers },
) => {
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
    rejectionsKept: config.rejectionsKept,
  }
  const server = repeat(app, rest, async () => {
    if (peers?.isLeading() === false) return rest
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
export const keyUpkeep: Plugin<'config' | 'keys' | 'peers'> = async (app, { config, keys, peers }) => {
  const pause = config.keys.reloadSeconds * 1000
  const reload = async () => {
    const { added, removed } = await keys.reload()
    if (added.length + removed.length > 0) app.log.info({ added, removed }, 'the keys have changed')
  }
  // One worker looks for them, and the others follow.
  peers?.on('keys', reload)
  const server = repeat(app, pause, async () => {
    if (peers?.isLeading() === false) return pause
    try {
      await reload()
      peers?.tell('keys')
    } catch (error) {
      if (!server.isClosed) app.log.warn({ err: error }, 'looking for new keys failed')
    }
    return pause
  })
}
