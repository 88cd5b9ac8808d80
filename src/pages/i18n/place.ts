import type { Text } from '../../domain/text.ts'
import { msg } from './catalogue.ts'

const loopbackPrefixes = ['127.0.0.0/24', '0:0:0:0::/64']

/**
 * Describes the place of an action, seen from another network; undefined if it is not known.
 * @param prefix See address-prefix.ts.
 * @param isLocal Whether the service is for this computer alone. For any other, loopback is a proxy missing
 * from the settings, from which every request comes.
 */
export function fromPlace(prefix: string, seenFrom: string, isLocal: boolean): Text | undefined {
  if (loopbackPrefixes.includes(prefix)) return isLocal ? msg('place.here') : undefined
  return prefix === seenFrom ? msg('place.sameNetwork') : msg('place.network', { network: { host: prefix } })
}
