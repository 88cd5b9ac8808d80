/**
 * Returns the network of an address, for counting: /24 of IPv4, /64 of IPv6. One household or attacker can easily
 * have every address in it.
 */
export function addressPrefix(address: string): string {
  const bare = withoutPort(address)
  const mapped = mappedAddress(bare) ?? bare
  if (!mapped.includes(':')) return `${mapped.split('.').slice(0, 3).join('.')}.0/24`
  const [head = '', tail] = (mapped.split('%')[0] ?? '').toLowerCase().split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const gap =
    tail === undefined ? [] : new Array<string>(Math.max(0, 8 - first.length - last.length)).fill('0')
  const groups = [...first, ...gap, ...last].slice(0, 4).map((group) => group.replace(/^0+(?=.)/, ''))
  return `${groups.join(':')}::/64`
}

/** Some proxies forward the port too, which differs for each connection. */
function withoutPort(address: string): string {
  const [, version4, version6] = /^(?:([\d.]+):\d+|\[(.*)\](?::\d+)?)$/.exec(address) ?? []
  return version4 ?? version6 ?? address
}

/** Returns the IPv4 address in an IPv4-mapped one (RFC 4291 §2.5.5.2), in either notation. */
function mappedAddress(address: string): string | undefined {
  const mapped = /^(?:::|(?:0{1,4}:){5})ffff:(?:([\d.]+)|([0-9a-f]{1,4}):([0-9a-f]{1,4}))$/i.exec(address)
  const [, dotted, high = '', low = ''] = mapped ?? []
  if (mapped === null || dotted !== undefined) return dotted
  return [high, low]
    .flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255])
    .join('.')
}
