const loopbackPrefixes = ['127.0.0.0/24', '0:0:0:0::/64']

/** A network for people, seen from another one: where somebody is who did something. */
export function prefixInWords(prefix: string, seenFrom: string): string {
  if (loopbackPrefixes.includes(prefix)) return 'from this computer'
  return prefix === seenFrom ? 'from the network you are on' : `from the network ${prefix}`
}

/**
 * The network an address belongs to, for counting: /24 of IPv4, /64 of IPv6. One household or one attacker can
 * easily hold all addresses below it.
 */
export function addressPrefix(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address
  if (!mapped.includes(':')) return `${mapped.split('.').slice(0, 3).join('.')}.0/24`
  const [head = '', tail] = (mapped.split('%')[0] ?? '').toLowerCase().split('::')
  const first = head === '' ? [] : head.split(':')
  const last = tail === undefined || tail === '' ? [] : tail.split(':')
  const gap =
    tail === undefined ? [] : new Array<string>(Math.max(0, 8 - first.length - last.length)).fill('0')
  const groups = [...first, ...gap, ...last].slice(0, 4).map((group) => group.replace(/^0+(?=.)/, ''))
  return `${groups.join(':')}::/64`
}
