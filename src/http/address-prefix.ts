import { isIP } from 'node:net'
import type { FastifyRequest } from 'fastify'
import ipaddr from 'ipaddr.js'
import type { AuditContext } from '../domain/audit.ts'
import type { Seconds } from '../domain/model.ts'

/**
 * Returns the network of an address, for counting: /24 of IPv4, /64 of IPv6. One household or attacker can easily
 * have every address in it.
 */
export function addressPrefix(address: string): string {
  const bare = withoutPort(address)
  const version = isIP(bare)
  // A trusted proxy may forward any text in place of an address.
  if (version === 0) return bare
  if (version === 4) return networkOf4(bare)
  const parsed = ipaddr.IPv6.parse(bare)
  if (parsed.isIPv4MappedAddress()) return networkOf4(parsed.toIPv4Address().toString())
  const groups = parsed.parts.slice(0, 4).map((part) => part.toString(16))
  return `${groups.join(':')}::/64`
}

/** Returns a whole address as firewalls write it: without a port, and IPv4 without the IPv6 notation. */
export function wholeAddress(address: string): string {
  const bare = withoutPort(address)
  return isIP(bare) === 6 ? ipaddr.process(bare).toString() : bare
}

function networkOf4(address: string): string {
  return `${address.slice(0, address.lastIndexOf('.'))}.0/24`
}

/** Returns the audit context of a request that a user makes now. */
export function userContext(request: FastifyRequest, now: Seconds): AuditContext {
  const userAgent = request.headers['user-agent']
  return {
    by: 'user',
    at: now,
    from: addressPrefix(request.ip),
    ...(userAgent !== undefined && { userAgent }),
  }
}

/** Some proxies forward the port too, which differs for each connection. */
function withoutPort(address: string): string {
  const [, version4, version6] = /^(?:([\d.]+):\d+|\[(.*)\](?::\d+)?)$/.exec(address) ?? []
  return version4 ?? version6 ?? address
}
