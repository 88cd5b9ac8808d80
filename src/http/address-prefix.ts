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
  // A trusted proxy may forward any text in place of an address.
  if (!ipaddr.isValid(bare)) return bare
  const parsed = ipaddr.process(bare)
  if (parsed instanceof ipaddr.IPv4) return `${parsed.octets.slice(0, 3).join('.')}.0/24`
  const groups = parsed.parts.slice(0, 4).map((part) => part.toString(16))
  return `${groups.join(':')}::/64`
}

/** Returns the audit context of a request that a user makes now. */
export function userContext(request: FastifyRequest, now: Seconds): AuditContext {
  return { by: 'person', at: now, from: addressPrefix(request.ip) }
}

/** Some proxies forward the port too, which differs for each connection. */
function withoutPort(address: string): string {
  const [, version4, version6] = /^(?:([\d.]+):\d+|\[(.*)\](?::\d+)?)$/.exec(address) ?? []
  return version4 ?? version6 ?? address
}
