import type { Text } from '../domain/text.ts'
import { msg } from './catalogue.ts'

const loopbackPrefixes = ['127.0.0.0/24', '0:0:0:0::/64']

/**
 * Where somebody is who did something, seen from another network; undefined when that is not known.
 * @param prefix See address-prefix.ts.
 * @param isLocal Whether the service is for this computer alone. To any other, loopback is a proxy nobody told it of,
 * and everybody comes from there.
 */
export function fromPlace(prefix: string, seenFrom: string, isLocal: boolean): Text | undefined {
  if (loopbackPrefixes.includes(prefix)) return isLocal ? msg('place.here') : undefined
  return prefix === seenFrom ? msg('place.sameNetwork') : msg('place.network', { network: { host: prefix } })
}
