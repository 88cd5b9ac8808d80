import fp from 'fastify-plugin'
import { insert } from '../domain/decision.ts'
import type { Rejection, Seconds } from '../domain/model.ts'
import type { Needs } from '../feature/deps.ts'
import { addressPrefix } from '../http/address-prefix.ts'
import { isUnserved } from '../http/errors.ts'
import { exchangeOf, reasonOf } from '../http/log.ts'
import type { Clock } from '../system/system.ts'

/** How long records are gathered before one commit takes them all. */
const gatherMilliseconds = 200
/** More than these in that time are a flood: the log has every one of them, the store does not. */
const mostAtOnce = 100

/**
 * Stores rejected requests for `lychgate explain`, by the request id in their response. No response waits for it:
 * they are written a moment later, together, and a server that is killed may lose the last fifth of a second of them.
 * A record is bounded in bytes (bounded.ts), and one network has a share of the records, so that it cannot replace
 * those of the others. 404 and 405 without a page of their own are not stored: anyone can cause them without limit, and
 * the response says all there is to know.
 */
export const rejectionRecord = fp<Needs<'config' | 'store' | 'clock'>>(
  async (app, { config, store, clock }) => {
    if (config.rejectionsKept === 0) return
    // Where requests are not limited by network, everything comes from one computer.
    const hasShare = config.rateLimits === 'off' ? () => true : networkShares(config.rejectionsKept, clock)
    let gathered: Rejection[] = []
    let timer: NodeJS.Timeout | undefined
    const keep = async () => {
      const rejections = gathered
      gathered = []
      timer = undefined
      await store
        .write(...rejections.map((rejection) => insert('rejection', rejection)))
        .catch((error: unknown) =>
          app.log.warn({ err: error }, 'rejected requests could not be stored for explain'),
        )
    }
    app.afterRejection((request, reply, rejection) => {
      if (rejection.detail.isRoutine || gathered.length >= mostAtOnce) return
      if (isUnserved(rejection) || !hasShare(addressPrefix(request.ip))) return
      const reason = reasonOf(rejection)
      gathered.push({ id: request.id, at: clock(), ...exchangeOf(request, reply), ...reason })
      timer ??= setTimeout(() => void keep(), gatherMilliseconds).unref()
    })
    app.addHook('onClose', async () => {
      clearTimeout(timer)
      if (gathered.length > 0) await keep()
    })
  },
  { name: 'rejection-record', dependencies: ['request-log'] },
)

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
