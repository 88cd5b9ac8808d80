import type { FastifyPluginAsync } from 'fastify'
import type { AppDeps } from '../deps.ts'

/** Deletes what expired, a small batch at a time, so that no table grows for ever and no pause is noticed. */
export const sweeper: FastifyPluginAsync<Pick<AppDeps, 'config' | 'store' | 'clock'>> = async (
  app,
  { config, store, clock },
) => {
  let timer: NodeJS.Timeout | undefined
  const sweep = async () => {
    try {
      const now = clock()
      const swept = await store.sweep(now, now - config.lifetimes.unusedClientSeconds, config.refusalsKept)
      if (swept > 0) app.log.debug({ swept }, 'swept expired records')
      schedule(swept > 0 ? pauseMilliseconds : config.sweepSeconds * 1000)
    } catch (error) {
      app.log.warn({ err: error }, 'sweeping failed')
      schedule(config.sweepSeconds * 1000)
    }
  }
  const schedule = (milliseconds: number) => {
    timer = setTimeout(() => void sweep(), milliseconds).unref()
  }
  app.addHook('onReady', async () => schedule(config.sweepSeconds * 1000))
  app.addHook('onClose', async () => clearTimeout(timer))
}

/** Between two batches, requests go first. */
const pauseMilliseconds = 100
