import type { FastifyInstance } from 'fastify'

declare module 'fastify' {
  interface FastifyInstance {
    /** Runs the scheduled work immediately, until none is left; only a development server has it. */
    readonly repeated?: Set<() => Promise<void>>
  }
}

/**
 * Repeats `work` while the server is open. It returns the milliseconds until the next time.
 * @param firstMilliseconds From readiness to the first time.
 */
export function repeat(
  app: FastifyInstance,
  firstMilliseconds: number,
  work: () => Promise<number>,
): { readonly isClosed: boolean } {
  let timer: NodeJS.Timeout | undefined
  const state = { isClosed: false }
  const schedule = (milliseconds: number) => {
    clearTimeout(timer)
    timer = setTimeout(async () => {
      const pause = await work()
      // The server may have closed in the meantime.
      if (!state.isClosed) schedule(pause)
    }, milliseconds).unref()
  }
  app.addHook('onReady', async () => {
    schedule(firstMilliseconds)
    app.repeated?.add(async () => {
      // Less than the usual pause: there was something to do, and there may be more.
      while (!state.isClosed && (await work()) < firstMilliseconds);
      if (!state.isClosed) schedule(firstMilliseconds)
    })
  })
  app.addHook('onClose', async () => {
    state.isClosed = true
    clearTimeout(timer)
  })
  return state
}
