import type { Sighting } from '../../domain/probe.ts'
import { type Finding, ok, problem, setting, unchecked } from './finding.ts'
import { isDirect, type Setup } from './setup.ts'
import type { Sighted } from './sighted.ts'

/** An address for documentation, RFC 5737: no client has it, so a request counted to it was spoofed. */
export const spoofedAddress = '192.0.2.123'

/**
 * Checks which network a request is counted to. Behind a proxy that is not trusted, all clients count as one
 * network, and rate limits reject all of them at once; a proxy that forwards what clients claim lets a client
 * choose its network.
 * @param spoofed The response to a request that claims another address; absent without a proxy.
 */
export function* examineForwarding(
  setup: Setup,
  { sighting }: Sighted,
  spoofed: Sighted | undefined,
): Generator<Finding> {
  const check = 'forwarded address'
  if (sighting === undefined) {
    yield unchecked(
      check,
      'the answer has no sighting: the proxy drops headers it does not know, or the server has not been restarted with this version',
    )
    return
  }
  const { trustProxy } = setup.config
  const peer = plain(sighting.peer)
  const { forwardedFor } = sighting
  if (forwardedFor === undefined && isDirect(setup)) {
    yield ok(check, 'there is no proxy, and nobody claims to be one')
    return
  }
  if (forwardedFor === undefined) {
    const everybody = `everybody counts as ${peer}, one network for rate limits`
    yield problem(check, `the proxy sends no X-Forwarded-For: ${everybody}`, {
      expected: 'X-Forwarded-For with the address of the client',
      found: `a request from ${peer} without it`,
      change: [
        'proxy_set_header X-Forwarded-For $remote_addr;   (in nginx)',
        ...(trustProxy.length > 0 ? [] : setting('trustProxy', [peer])),
      ],
    })
    return
  }
  if (!sighting.isPeerTrusted) {
    yield problem(
      check,
      `the proxy ${peer} is not trusted: everybody counts as it, one network for rate limits`,
      {
        expected: `the client's address, from X-Forwarded-For: ${forwardedFor}`,
        found: peer,
        change: setting('trustProxy', [...trustProxy, peer]),
      },
    )
    return
  }
  if (isBelieved(spoofed?.sighting, forwardedFor)) {
    yield problem(check, 'clients choose the address they count as: the proxy passes on what they claim', {
      expected: 'the address the proxy saw',
      found: `${spoofedAddress}, which the request claimed`,
      change: ['proxy_set_header X-Forwarded-For $remote_addr;   (in nginx: at the outermost proxy)'],
    })
    return
  }
  yield ok(check, `clients count by their own address, behind ${peer}`)
}

/**
 * Whether the claim counts, and no proxy put the address it saw itself behind it. (Where it did and the claim counts
 * all the same, this very machine is one of the trusted proxies.)
 */
function isBelieved(spoofed: Sighting | undefined, forwardedFor: string): boolean {
  if (spoofed?.forwardedFor === undefined || plain(spoofed.countedAs) !== spoofedAddress) return false
  return listed(spoofed.forwardedFor) !== listed(`${spoofedAddress}, ${forwardedFor}`)
}

function listed(header: string): string {
  return header.split(/\s*,\s*/).join()
}

/** An IPv4 address the way it is configured, also where it came over an IPv6 socket. */
function plain(address: string): string {
  return address.replace(/^::ffff:(?=\d+\.)/i, '')
}
