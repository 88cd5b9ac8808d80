import rateLimit from '@fastify/rate-limit'
import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config/schema.ts'
import { OAuthError } from '../domain/errors.ts'
import type { Needs } from '../feature/deps.ts'
import type { Store } from '../storage/store.ts'
import type { Peers } from '../system/peers.ts'
import { addressPrefix } from './address-prefix.ts'
import { nodeCounts } from './node-counts.ts'
import { sharedCounts } from './shared-counts.ts'

const untrusted = '; X-Forwarded-For of this proxy does not count (trustProxy)'

/** Whether the address that a proxy forwarded does not count, because the proxy is not trusted. */
function isForwarded({ headers, ip, socket }: FastifyRequest): boolean {
  return headers['x-forwarded-for'] !== undefined && ip === socket.remoteAddress
}

interface RateLimitOptions {
  readonly config: Pick<Config, 'rateLimits' | 'requestsPerMinute'>
  readonly prefix: string
  readonly peers?: Peers
  readonly store?: Pick<Store, 'tellNodes'>
}

/**
 * Request rate limits by address prefix, RFC 6749 §2.3.1 and RFC 7009 §5. A route names its limit in its `config`; the
 * throttle on failed sign-ins is independent and always on.
 */
export const rateLimits = fp<RateLimitOptions & Needs<'clock' | 'random'>>(
  async (app, { config, prefix, peers, store, ...deps }) => {
    if (config.rateLimits === 'off') return
    const { requestsPerMinute } = config
    app.addHook('onRoute', (route) => {
      const limit =
        route.config?.limit ?? limitOfSignedInPage(`${route.url}/`, String([route.method].flat()[0]))
      if (limit === undefined) return
      const max = requestsPerMinute[limit]
      route.config = { ...route.config, rateLimit: { max, timeWindow: '1 minute' } }
      // The library adds to this list, which GET and HEAD share: each would run its hook twice.
      if (Array.isArray(route.onRequest)) route.onRequest = [...route.onRequest]
    })

    /** Without a session each request to a page of the account or for administrators inserts an interaction. */
    function limitOfSignedInPage(url: string, method: string): keyof Config['requestsPerMinute'] | undefined {
      if (![`${prefix}/account/`, `${prefix}/admin/`].some((root) => url.startsWith(root))) return undefined
      return method === 'POST' ? 'signIn' : 'authorization'
    }
    const others = store?.tellNodes === undefined ? peers : nodeCounts(app, store.tellNodes, deps)
    await app.register(rateLimit, {
      global: false,
      ...(others && { store: sharedCounts(app, others) }),
      keyGenerator: (request) => addressPrefix(request.ip),
      errorResponseBuilder: (request, { ttl }) =>
        new OAuthError(
          'temporarily_unavailable',
          `too many requests from this network; slow down (requestsPerMinute)${isForwarded(request) ? untrusted : ''}`,
          {
            rule: 'lychgate-rate-limit',
            status: 429,
            headers: { 'retry-after': String(Math.ceil(ttl / 1000)) },
          },
        ),
    })
    // The library comes after the hooks of a route: a token that they reject has to be counted, too.
    app.addHook('onRoute', ({ config, onRequest }) => {
      if (config?.rateLimit === undefined || !Array.isArray(onRequest)) return
      const limiter = onRequest.pop()
      if (limiter !== undefined) onRequest.unshift(limiter)
    })
  },
  { name: 'rate-limits' },
)
