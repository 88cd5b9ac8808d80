import rateLimit from '@fastify/rate-limit'
import fp from 'fastify-plugin'
import type { Config } from '../config/schema.ts'
import { addressPrefix } from '../domain/address-prefix.ts'
import { OAuthError } from '../domain/errors.ts'

/**
 * Request rate limits by address prefix, RFC 6749 §2.3.1 and RFC 7009 §5. The table says which endpoint counts as
 * what; the throttle on failed sign-ins is another thing and always on.
 */
export const rateLimits = fp<{ config: Pick<Config, 'rateLimits' | 'requestsPerMinute'>; prefix: string }>(
  async (app, { config, prefix }) => {
    if (config.rateLimits === 'off') return
    const { registration, authorization, token, signIn } = config.requestsPerMinute
    const limits = new Map([
      [`POST ${prefix}/api/oauth/register`, registration],
      [`PUT ${prefix}/api/oauth/register/:client_id`, registration],
      [`DELETE ${prefix}/api/oauth/register/:client_id`, registration],
      [`GET ${prefix}/api/oauth/register/:client_id`, token],
      [`HEAD ${prefix}/api/oauth/register/:client_id`, token],
      // Each request leaves a pending one behind, a HEAD request too.
      [`GET ${prefix}/oauth/authorize`, authorization],
      [`HEAD ${prefix}/oauth/authorize`, authorization],
      [`POST ${prefix}/oauth/authorize`, authorization],
      [`POST ${prefix}/api/oauth/token`, token],
      [`POST ${prefix}/api/oauth/revoke`, token],
      [`POST ${prefix}/api/oauth/introspect`, token],
      [`POST ${prefix}/login`, signIn],
      [`POST ${prefix}/link`, signIn],
      [`POST ${prefix}/forgot-password`, signIn],
    ])
    app.addHook('onRoute', (route) => {
      const method = String([route.method].flat()[0])
      // Without a session each request leaves an interaction behind.
      const ofUser = method === 'POST' ? signIn : authorization
      const isOfUser = `${route.url}/`.startsWith(`${prefix}/account/`)
      const max = limits.get(`${method} ${route.url}`) ?? (isOfUser ? ofUser : undefined)
      if (max !== undefined) route.config = { ...route.config, rateLimit: { max, timeWindow: '1 minute' } }
    })
    await app.register(rateLimit, {
      global: false,
      keyGenerator: (request) => addressPrefix(request.ip),
      errorResponseBuilder: (_request, { ttl }) =>
        new OAuthError(
          'temporarily_unavailable',
          'too many requests from this network; slow down (requestsPerMinute)',
          {
            rule: 'lychgate-rate-limit',
            status: 429,
            headers: { 'retry-after': String(Math.ceil(ttl / 1000)) },
          },
        ),
    })
  },
  { name: 'rate-limits' },
)
