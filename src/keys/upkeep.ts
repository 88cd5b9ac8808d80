import type { FastifyPluginAsync } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { repeat } from '../http/repeat.ts'

/**
 * Keeps the keys of a running server up to date: rotates those that are old enough, and takes over what another node
 * or an operator's command made or retired. What fails is tried again; the keys in hand serve on in the meantime.
 */
export const keyUpkeep: FastifyPluginAsync<Pick<AppDeps, 'config' | 'keys'>> = async (
  app,
  { config, keys },
) => {
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
