import fp from 'fastify-plugin'
import type { Needs } from '../feature/deps.ts'
import { repeat } from './repeat.ts'

/** How soon a node learns that something is stored for the first time. */
const pauseMilliseconds = 1000

/**
 * Follows the scopes and resources that operators store. As long as nothing was ever stored, a request reads nothing:
 * the worker that changes something tells the others, and nodes that share a database look once a second. From then on
 * each request begins with the current ones, so that what was deleted is gone at the next request of every node.
 */
export const currentDefinitions = fp<Needs<'definitions'> & Partial<Needs<'peers'>>>(
  async (app, { definitions, peers }) => {
    peers?.on('definitions', definitions.refresh)
    /** Without the store, what needs it fails by itself: health does not. */
    const follow = async (): Promise<void> => {
      try {
        await definitions.refresh()
      } catch (error) {
        if (!server.isClosed) app.log.warn({ err: error }, 'reading the stored scopes and resources failed')
      }
    }
    app.addHook('onRequest', function followDefinitions(_request, _reply, done) {
      if (definitions.revision() === 0) done()
      else void follow().then(() => done())
    })
    const server = repeat(app, pauseMilliseconds, async () => {
      await follow()
      return pauseMilliseconds
    })
  },
  { name: 'current-definitions' },
)
