import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config/schema.ts'
import type { Finding } from '../domain/finding.ts'
import { addressesIn, isPublicAddress } from '../outbound/public-address.ts'
import { problem, setting } from './finding.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** What the requests so far say about the proxy in front; undefined while nothing is wrong. */
    readonly forwardingFinding: () => Finding | undefined
  }
}

/** So many requests in a row have to look alike. */
const enough = 10

/**
 * Finds out from the first requests whether the addresses of clients arrive: without them all clients count as one
 * network. Once that is certain, a request costs nothing more.
 */
export const forwarding = fp<{ config: Pick<Config, 'trustProxy'> }>(
  async (app, { config: { trustProxy } }) => {
    const isTrusted = addressesIn(trustProxy)
    let [isCertain, count, first] = [false, 0, '']
    let finding: Finding | undefined
    app.decorate('forwardingFinding', () => finding)

    /** Returns what a request shows: the peer and its mistake, or nothing wrong. */
    const mistakeOf = ({ headers, socket: { remoteAddress: peer = '' } }: FastifyRequest) => {
      const isForwarded = headers['x-forwarded-for'] !== undefined
      if (isTrusted(peer)) return isForwarded ? undefined : `silent ${peer}`
      return isForwarded && !isPublicAddress(peer) ? `untrusted ${peer}` : undefined
    }

    app.addHook('onRequest', (request, _reply, done) => {
      // Probes come from elsewhere.
      if (isCertain || /^\/(?:livez|readyz)$/.test(request.url)) return done()
      const mistake = mistakeOf(request)
      first ||= mistake ?? ''
      count += 1
      isCertain = mistake === undefined || mistake !== first || count >= enough
      if (count < enough || mistake === undefined || mistake !== first) return done()
      const [kind, peer = ''] = mistake.split(' ')
      finding = kind === 'silent' ? silentProxy(peer) : untrustedProxy(peer)
      app.log.warn({ peer }, `${finding.check}: ${finding.said}`)
      done()
    })
  },
  { name: 'forwarding' },
)

function silentProxy(peer: string): Finding {
  return problem`forwarded address: the proxy at ${peer} sends no X-Forwarded-For: all clients count as one network for rate limits (trustProxy)
    expected  X-Forwarded-For with the address of the client
    found  no such header in the first ${enough} requests
    change  let the proxy send it, in nginx: proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;`
}

function untrustedProxy(peer: string): Finding {
  return problem`forwarded address: X-Forwarded-For of ${peer} does not count: all clients count as one network for rate limits (trustProxy)
    expected  trustProxy with the address of the proxy
    found  the first ${enough} requests came from ${peer} with X-Forwarded-For
    change  ${setting('trustProxy', [peer])}`
}
