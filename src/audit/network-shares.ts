import type { Seconds } from '../domain/model.ts'
import type { Clock } from '../system.ts'

/** A network may have this many records at once; then they come back slowly. */
const burst = 50
/** The part of all records that one network may replace in a day. */
const dailyPart = 0.1
const secondsPerDay: Seconds = 86_400
/** Networks that are counted; beyond it the one that was seen first starts again. */
const mostNetworks = 10_000

/**
 * Returns a function that takes one record from the share of a network, and returns false when nothing is left of it.
 * @param records How many records there are in all.
 */
export function networkShares(records: number, clock: Clock): (network: string) => boolean {
  const most = Math.max(1, Math.min(burst, records * dailyPart))
  const perSecond = (records * dailyPart) / secondsPerDay
  const shares = new Map<string, { readonly left: number; readonly at: Seconds }>()
  return (network) => {
    const now = clock()
    const share = shares.get(network) ?? { left: most, at: now }
    const left = Math.min(most, share.left + Math.max(0, now - share.at) * perSecond)
    const isAllowed = left >= 1
    if (shares.size >= mostNetworks && !shares.has(network)) {
      const [first] = shares.keys()
      if (first !== undefined) shares.delete(first)
    }
    shares.set(network, { left: isAllowed ? left - 1 : left, at: now })
    return isAllowed
  }
}
