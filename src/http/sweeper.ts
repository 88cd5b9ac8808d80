import type { FastifyPluginAsync } from 'fastify'
import type { AppDeps } from '../deps.ts'
import type { Seconds } from '../domain/model.ts'
import type { SweepBounds } from '../storage/store.ts'
import { repeat } from './repeat.ts'

/** Deletes what expired, a small batch at a time, so that no table grows for ever and no pause is noticed. */
export const sweeper: FastifyPluginAsync<Pick<AppDeps, 'config' | 'store' | 'clock'>> = async (
  app,
  { config, store, clock },
) => {
  const rest = config.sweepSeconds * 1000
  const { unusedClientSeconds, idleClientSeconds, refreshTokenIdleSeconds } = config.lifetimes
  // No client goes before its last refresh token has ended; uses are noted to the day.
  const idle = idleClientSeconds && Math.max(idleClientSeconds, refreshTokenIdleSeconds + secondsPerDay)
  // Asked for again by every batch: when the clock was set back in the meantime, what lives again must stay.
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

/** Where 0 seconds stand for ever, nothing is older. */
function since(now: Seconds, seconds: Seconds): Seconds {
  return seconds === 0 ? 0 : now - seconds
}

/** Between two batches, requests go first. */
const pauseMilliseconds = 100
