import fp from 'fastify-plugin'
import type { Finding } from '../domain/finding.ts'
import { isPublicAddress } from '../outbound/public-address.ts'
// Brings `app.arrivalOf`.
import type { Arriving } from './arrival.ts'
import { ok, problem, setting, unchecked } from './finding.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** What the requests so far say about the proxy in front; undefined while nothing is wrong. */
    readonly forwardingFinding: () => Finding | undefined
    /** Looks at how a request arrived. */
    noteForwarding(request: Arriving): void
  }
}

/** An address of documentation only, RFC 5737 §3. */
export const claimedAddress = '192.0.2.1'

/** So many requests have to show the same mistake of the same peer. */
const enough = 10
/** After so many without a result a request costs nothing more: there is no proxy. */
const most = 1000

/**
 * Finds out from the first requests whether the addresses of clients arrive: without them all clients count as one
 * network. Once that is certain, a request costs nothing more.
 */
export const forwarding = fp(
  async (app) => {
    const counts = new Map<string, number>()
    let [isCertain, seen] = [false, 0]
    let finding: Finding | undefined
    app.decorate('forwardingFinding', () => finding)

    /** Returns what a request shows: that addresses arrive, a peer and its mistake, or nothing (it came directly). */
    const signOf = (request: Arriving) => {
      const { peer, isForwarded, isTrusted } = app.arrivalOf(request)
      if (isTrusted) return isForwarded ? 'arrives' : `silent ${peer}`
      return isForwarded && !isPublicAddress(peer) ? `untrusted ${peer}` : undefined
    }

    app.decorate('noteForwarding', (request) => {
      if (isCertain) return
      const sign = signOf(request)
      seen += 1
      isCertain = sign === 'arrives' || seen >= most
      if (sign === undefined || isCertain) return
      const count = (counts.get(sign) ?? 0) + 1
      counts.set(sign, count)
      if (count < enough) return
      isCertain = true
      const [kind, peer = ''] = sign.split(' ')
      finding = kind === 'silent' ? silentProxy(peer) : untrustedProxy(peer)
      app.log.warn({ peer }, `${finding.check}: ${finding.said}`)
    })
    app.addHook('onRequest', function noteForwarding(request, _reply, done) {
      // Probes come from elsewhere.
      if (!isCertain && !/^\/(?:livez|readyz)$/.test(request.url)) app.noteForwarding(request)
      done()
    })
  },
  { name: 'forwarding', dependencies: ['arrival'] },
)

/**
 * Returns the finding about requests that came through a proxy, by the members of `Arrival`.
 * @param claiming How a request arrived that was sent with `claimedAddress` in X-Forwarded-For.
 */
export function arrivalFinding(
  { peer, isForwarded, isTrusted }: Readonly<Record<string, unknown>>,
  claiming: Readonly<Record<string, unknown>>,
): Finding {
  if (typeof peer !== 'string')
    return unchecked`forwarded address: the server does not say how requests arrive: its secret, version or clock is another one; its log and /admin report a proxy that sends no X-Forwarded-For`
  if (isForwarded !== true) return silentProxy(peer, 'the request of this command')
  if (isTrusted !== true) return untrustedProxy(peer, 'the request of this command')
  // With another address behind it, the proxy has added that one.
  if (claiming['client'] === claimedAddress && claiming['forwarded'] === claimedAddress)
    return problem`forwarded address: the proxy at ${peer} passes on the X-Forwarded-For of clients: they choose the address that limits and the log show
    expected  the address that connected to the proxy, at the end of the header
    found  only ${claimedAddress}, which this command sent
    change  let the proxy set it, in nginx: proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;`
  return ok`forwarded address: arrives in X-Forwarded-For of ${peer}, which is trusted`
}

function silentProxy(peer: string, seen = `${enough} of the first requests`): Finding {
  return problem`forwarded address: the proxy at ${peer} sends no X-Forwarded-For: all clients count as one network for rate limits (trustProxy)
    expected  X-Forwarded-For with the address of the client
    found  no such header in ${seen}
    change  let the proxy send it, in nginx: proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;`
}

function untrustedProxy(peer: string, seen = `${enough} of the first requests`): Finding {
  return problem`forwarded address: X-Forwarded-For of ${peer} does not count: all clients count as one network for rate limits (trustProxy)
    expected  trustProxy with the address of the proxy
    found  ${seen} came from ${peer} with X-Forwarded-For
    change  ${setting('trustProxy', [peer])}`
}
