import type { FastifyPluginAsync } from 'fastify'
import type { AppDeps } from '../deps.ts'

/**
 * Keeps the keys of a running server up to date: rotates those that are old enough, and takes over what another node
 * or an operator's command made or retired. What fails is tried again; the keys in hand serve on meanwhile.
 */
export const keyUpkeep: FastifyPluginAsync<Pick<AppDeps, 'config' | 'keys'>> = async (
  app,
  { config, keys },
) => {
  let timer: NodeJS.Timeout | undefined
  let isClosed = false
  const reload = async () => {
    try {
      const { came, went } = await keys.reload()
      if (came.length + went.length > 0) app.log.info({ came, went }, 'the keys have changed')
    } catch (error) {
      if (!isClosed) app.log.warn({ err: error }, 'looking for new keys failed')
    }
    if (!isClosed) schedule()
  }
  const schedule = () => {
    timer = setTimeout(() => void reload(), config.keys.reloadSeconds * 1000).unref()
  }
  app.addHook('onReady', async () => schedule())
  app.addHook('onClose', async () => {
    isClosed = true
    clearTimeout(timer)
  })
}
