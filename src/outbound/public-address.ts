import { BlockList, isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

/** Returns whether an IP address, as a socket writes it, is one of some. */
export type AddressRule = (address: string) => boolean

/**
 * Returns whether everyone on the internet can use the address: none of the IANA registries of special-purpose
 * addresses (RFC 6890) has it. An IPv4 address inside of an IPv6 one (RFC 4291 §2.5.5.2) is judged as IPv4; every
 * other form that embeds one (RFC 3056, RFC 4380, RFC 6052) is not public.
 */
export const isPublicAddress: AddressRule = (address) => {
  const version = isIP(address)
  // ipaddr.js also reads 0x7f.1 and 017700000001: only what Node calls an address reaches it.
  if (version === 0 || address.includes('%')) return false
  if (version === 4) return ipaddr.IPv4.parse(address).range() === 'unicast'
  const parsed = ipaddr.IPv6.parse(address)
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().range() === 'unicast'
  return isGlobalUnicast(parsed) && parsed.range() === 'unicast'
}

/** Returns the rule for these addresses and CIDR ranges; an IPv4 range has the IPv6 forms of its addresses, too. */
export function addressesIn(ranges: readonly string[]): AddressRule {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', bits] = range.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  return (address) => {
    // A socket of both families writes IPv4 addresses as IPv6 ones.
    const plain = address.replace(/^::ffff:(?=\d+\.)/i, '').replace(/%.*$/, '')
    const version = isIP(plain)
    return version !== 0 && list.check(plain, version === 6 ? 'ipv6' : 'ipv4')
  }
}

export const isLoopbackAddress = addressesIn(['127.0.0.0/8', '::1'])

/** RFC 4291 §2.4 and the IANA registry: 2000::/3 is all that was ever assigned. */
function isGlobalUnicast({ parts: [first = 0] }: { readonly parts: readonly number[] }): boolean {
  return first >> 13 === 1
}
