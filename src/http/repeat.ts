import type { FastifyInstance } from 'fastify'

/**
 * Does `work` again and again while the server is open; it answers how long to wait until the next time.
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
    timer = setTimeout(async () => {
      const pause = await work()
      // The server may have closed meanwhile.
      if (!state.isClosed) schedule(pause)
    }, milliseconds).unref()
  }
  app.addHook('onReady', async () => schedule(firstMilliseconds))
  app.addHook('onClose', async () => {
    state.isClosed = true
    clearTimeout(timer)
  })
  return state
}
