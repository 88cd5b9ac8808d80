import type { FastifyInstance } from 'fastify'
import type { Needs } from '../feature/deps.ts'
import type { Store } from '../storage/store.ts'
import type { Peers } from '../system/peers.ts'
import { repeat } from './repeat.ts'
import type { NewCounts } from './shared-counts.ts'

/** How many requests a network sent to a route of one node, in the minute that began then. */
type Window = readonly [route: string, key: string, began: number, count: number]

/** What a node tells the others. */
interface News {
  readonly node: string
  readonly windows: readonly Window[]
}

const windowSeconds = 60
/** Of all windows; beyond it the ones with the highest counts. */
const mostWindows = 500
const pauseMilliseconds = 1000
/** While no other node is there, and after a failure. */
const restMilliseconds = 10_000
/** A node without requests is known to the others by this. */
const presenceSeconds = 60

/**
 * Carries the counts of rate limits between nodes, by the database that they share: a node that has counted something
 * tells it, and hears what the others counted, once a second and in one trip. A failure is retried; each node counts for
 * itself in the meantime.
 */
export function nodeCounts(
  app: FastifyInstance,
  tellNodes: NonNullable<Store['tellNodes']>,
  { clock, random }: Needs<'clock' | 'random'>,
): Pick<Peers, 'tell' | 'on'> {
  const node = random(12).toString('base64url')
  let own = new Map<string, Window>()
  let heard = new Map<string, ReadonlyMap<string, Window>>()
  let receive: (counts: NewCounts) => unknown = () => undefined
  let [hasNews, publishedAt] = [true, 0]

  async function exchange(): Promise<number> {
    const now = clock()
    if (!hasNews && now - publishedAt < presenceSeconds) return pauseMilliseconds
    own = new Map([...own].filter(([, [, , began]]) => now - began < windowSeconds))
    ;[hasNews, publishedAt] = [false, now]
    const windows = [...own.values()].toSorted((one, other) => other[3] - one[3]).slice(0, mostWindows)
    const news: News = { node, windows }
    const message = { node, body: JSON.stringify(news), now, expiresAt: now + 3 * presenceSeconds }
    const others = (await tellNodes(message)).map((body) => JSON.parse(body) as News) // of this function
    heard = new Map(others.map((other) => [other.node, hear(other, now)]))
    return others.length === 0 ? restMilliseconds : pauseMilliseconds
  }

  /** Adds what is new since the last time. */
  function hear({ node, windows }: News, now: number): ReadonlyMap<string, Window> {
    const before = heard.get(node)
    for (const [route, key, began, count] of windows) {
      const last = before?.get(`${route} ${key}`)
      const added = last?.[2] === began ? count - last[3] : count
      if (added > 0 && now - began < windowSeconds) receive([[route, key, added]])
    }
    return new Map(windows.map((window) => [`${window[0]} ${window[1]}`, window]))
  }

  const server = repeat(app, pauseMilliseconds, async () => {
    try {
      return await exchange()
    } catch (error) {
      if (!server.isClosed) app.log.warn({ err: error }, 'sharing the counts of requests failed')
      hasNews = true
      return restMilliseconds
    }
  })

  return {
    tell: (_topic, counts) => {
      for (const [route, key, added] of counts as NewCounts) {
        const now = clock()
        const [, , began, count] = own.get(`${route} ${key}`) ?? [route, key, now, 0]
        const isOver = now - began >= windowSeconds
        own.set(`${route} ${key}`, [route, key, isOver ? now : began, added + (isOver ? 0 : count)])
      }
      hasNews = true
    },
    on: (_topic, listener) => {
      receive = listener
    },
  }
}
