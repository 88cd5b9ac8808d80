import type { FastifyPluginAsync } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { repeat } from './repeat.ts'

/** Deletes what expired, a small batch at a time, so that no table grows for ever and no pause is noticed. */
export const sweeper: FastifyPluginAsync<Pick<AppDeps, 'config' | 'store' | 'clock'>> = async (
  app,
  { config, store, clock },
) => {
  const rest = config.sweepSeconds * 1000
  const server = repeat(app, rest, async () => {
    try {
      const now = clock()
      const swept = await store.sweep({
        now,
        clientsUnusedSince: now - config.lifetimes.unusedClientSeconds,
        refusalsKept: config.refusalsKept,
        auditedSince: config.auditSeconds === 0 ? 0 : now - config.auditSeconds,
      })
      if (swept > 0) app.log.debug({ swept }, 'swept expired records')
      return swept > 0 ? pauseMilliseconds : rest
    } catch (error) {
      if (!server.isClosed) app.log.warn({ err: error }, 'sweeping failed')
      return rest
    }
  })
}

/** Between two batches, requests go first. */
const pauseMilliseconds = 100
