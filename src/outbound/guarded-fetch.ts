import type { Config } from '../config/schema.ts'
import { countOngoing } from '../system/count.ts'
import type { Clock } from '../system/system.ts'
import { type BudgetLimits, createBudgets, type Spender } from './budgets.ts'
import { type Fetched, FetchFailed, fetchOnce, type Resolve } from './exchange.ts'
import { type AddressRule, addressesIn, isLoopbackAddress, isPublicAddress } from './public-address.ts'

/** A request that is sent as often as asked for, with its own limits: POST of a form, or GET with credentials. */
export interface OwnRequest {
  readonly form?: URLSearchParams
  /** The `Authorization` header. */
  readonly authorization?: string
  readonly timeoutSeconds: number
  readonly perOriginPerMinute: number
}

/**
 * Fetches a URL that a client or an operator named: with GET, or with POST of a form. The spender says which places and
 * budgets it takes.
 * @throws {FetchFailed}
 */
export type GuardedFetch = (url: string, spender: Spender, own?: OwnRequest) => Promise<Fetched>

export interface GuardedFetchOptions {
  readonly limits: BudgetLimits &
    Pick<Config['fetch'], 'timeoutSeconds' | 'responseBytes' | 'privateNetworks'>
  /** Loopback may be fetched, also by http. */
  readonly isDevelopment: boolean
  readonly clock: Clock
  /** Finds the addresses of a host name. Absent: as the operating system does. */
  readonly resolve?: Resolve
  /** Certificates, as PEM, that are trusted instead of those of Node. */
  readonly authorities?: readonly string[]
}

const longestUrl = 2048

/**
 * Makes the one way in which this server fetches what a client names. It connects to public addresses only, which it
 * checks on the socket before anything is sent; follows no redirect; sends no credentials but those of the caller, and
 * uses no proxy; reads a limited number of bytes, uncompressed, in a limited time; fetches a URL once for all who want it
 * for the same purpose at the same time; and has places and budgets for each purpose.
 */
export function createGuardedFetch(options: GuardedFetchOptions): GuardedFetch {
  const { limits, isDevelopment, clock, resolve, authorities } = options
  const isPrivateAllowed = addressesIn(limits.privateNetworks)
  const mayConnect: AddressRule = (address) =>
    isPublicAddress(address) || isPrivateAllowed(address) || (isDevelopment && isLoopbackAddress(address))
  const budgets = createBudgets(limits, clock)
  const inFlight = new Map<unknown, Promise<Fetched>>()
  return async (text, spender, own) => {
    const url = targetOf(text, isDevelopment)
    // Only documents are shared.
    const key = own ?? `${spender.purpose} ${url.href}`
    const running = inFlight.get(key)
    if (running !== undefined) return running
    const place = budgets.take(url, spender, (own ?? limits).perOriginPerMinute)
    if (typeof place === 'string') throw new FetchFailed('budget', place)
    // Unencrypted responses come from this computer only.
    const rule = url.protocol === 'http:' ? isLoopbackAddress : mayConnect
    const { timeoutSeconds } = own ?? limits
    const { responseBytes } = limits
    const exchange = {
      rule,
      timeoutSeconds,
      responseBytes,
      form: own?.form,
      authorization: own?.authorization,
      resolve,
      authorities,
    }
    const ended = countOngoing('fetches_in_flight', 'Fetches that go on now, by purpose.', {
      purpose: spender.purpose,
    })
    const fetching = fetchOnce(url, exchange).finally(() => {
      ended()
      place()
      inFlight.delete(key)
    })
    inFlight.set(key, fetching)
    return fetching
  }
}

/** Parses a URL, and rejects what this server never fetches. */
function targetOf(text: string, isDevelopment: boolean): URL {
  const url = text.length <= longestUrl ? URL.parse(text) : null
  if (url === null) throw new FetchFailed('url', 'the URL is not absolute, or is too long')
  if (url.protocol !== 'https:' && !(isDevelopment && url.protocol === 'http:'))
    throw new FetchFailed('url', 'the URL is not https')
  if (url.username !== '' || url.password !== '') throw new FetchFailed('url', 'the URL has a user name')
  url.hash = ''
  return url
}
