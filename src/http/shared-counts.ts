import type { FastifyRateLimitStore, FastifyRateLimitStoreCtor } from '@fastify/rate-limit'
import type { FastifyInstance } from 'fastify'
import type { Peers } from '../system/peers.ts'

interface Count {
  count: number
  /** In milliseconds. */
  began: number
}

/** What was counted since the last time. */
export type NewCounts = readonly (readonly [route: string, key: string, added: number])[]

const pauseMilliseconds = 100
/** Of a route; beyond it the one that was seen first starts again. */
const mostNetworks = 5000

/**
 * Returns the class of a store in which the workers of a server count together: each tells the others ten times a second
 * what it has counted. A network that spreads its requests over all of them gets as many more through as it sends in a
 * tenth of a second.
 */
export function sharedCounts(
  app: FastifyInstance,
  peers: Pick<Peers, 'tell' | 'on'>,
): FastifyRateLimitStoreCtor {
  const counts = new Map<string, Map<string, Count>>()
  let unpublished = new Map<string, Map<string, number>>()
  let timer: NodeJS.Timeout | undefined

  function add(route: string, key: string, added: number, window: number): Count {
    const ofRoute = counts.get(route) ?? new Map<string, Count>()
    counts.set(route, ofRoute)
    const now = performance.now()
    let count = ofRoute.get(key)
    if (count === undefined || now - count.began >= window) {
      const [first] = ofRoute.keys()
      if (count === undefined && ofRoute.size >= mostNetworks && first !== undefined) ofRoute.delete(first)
      count = { count: 0, began: now }
      ofRoute.set(key, count)
    }
    count.count += added
    return count
  }

  function tell(): void {
    timer = undefined
    const news: NewCounts = [...unpublished].flatMap(([route, keys]) =>
      [...keys].map(([key, added]) => [route, key, added] as const),
    )
    unpublished = new Map()
    peers.tell('rates', news)
  }

  // `as`: what `tell` of another worker sent.
  peers.on('rates', (news) => {
    for (const [route, key, added] of news as NewCounts) add(route, key, added, minuteMilliseconds)
  })
  app.addHook('onClose', async () => clearTimeout(timer))

  return class SharedCounts implements FastifyRateLimitStore {
    readonly #route: string

    constructor(options: object) {
      // `as`: the library passes the route in this member, which its types lack.
      const { routeInfo } = options as { routeInfo?: { method?: unknown; url?: unknown } }
      this.#route = `${routeInfo?.method} ${routeInfo?.url}`
    }

    incr(
      key: string,
      respond: Parameters<FastifyRateLimitStore['incr']>[1],
      window = minuteMilliseconds,
    ): void {
      const { count, began } = add(this.#route, key, 1, window)
      const ofRoute = unpublished.get(this.#route) ?? new Map<string, number>()
      unpublished.set(this.#route, ofRoute.set(key, (ofRoute.get(key) ?? 0) + 1))
      timer ??= setTimeout(tell, pauseMilliseconds).unref()
      respond(null, { current: count, ttl: window - (performance.now() - began) })
    }

    child(options: object): SharedCounts {
      return new SharedCounts(options)
    }
  }
}

const minuteMilliseconds = 60_000
