import type { Config } from '../config/schema.ts'
import type { Clock } from '../system.ts'
import { type Fetched, FetchFailed, fetchOnce, type Resolve } from './exchange.ts'
import { type AddressRule, addressesIn, isLoopbackAddress, isPublicAddress } from './public-address.ts'

/** A form to be sent, and its own limits. */
export interface FormPost {
  readonly form: URLSearchParams
  readonly timeoutSeconds: number
  readonly perOriginPerMinute: number
}

/**
 * Fetches a URL that a client named: with GET, or with POST of a form.
 * @throws {FetchFailed}
 */
export type GuardedFetch = (url: string, post?: FormPost) => Promise<Fetched>

export interface GuardedFetchOptions {
  readonly limits: Pick<
    Config['fetch'],
    'timeoutSeconds' | 'responseBytes' | 'perOriginPerMinute' | 'privateNetworks'
  >
  /** Loopback may be fetched, also by http. */
  readonly isDevelopment: boolean
  readonly clock: Clock
  /** Finds the addresses of a host name. Absent: as the operating system does. */
  readonly resolve?: Resolve
  /** Certificates, as PEM, that are trusted instead of those of Node. */
  readonly authorities?: readonly string[]
}

const mostAtOnce = 64
const mostOrigins = 10_000
const longestUrl = 2048

/**
 * Makes the one way in which this server fetches what a client names. It connects to public addresses only, which it
 * checks on the socket before anything is sent; follows no redirect; sends no credentials and uses no proxy; reads a
 * limited number of bytes, uncompressed, in a limited time; fetches a URL once for all who want it at the same time;
 * and has a budget for each origin.
 */
export function createGuardedFetch(options: GuardedFetchOptions): GuardedFetch {
  const { limits, isDevelopment, clock, resolve, authorities } = options
  const isPrivateAllowed = addressesIn(limits.privateNetworks)
  const mayConnect: AddressRule = (address) =>
    isPublicAddress(address) || isPrivateAllowed(address) || (isDevelopment && isLoopbackAddress(address))
  const spendGet = originBudget(clock)
  const spendPost = originBudget(clock)
  const inFlight = new Map<unknown, Promise<Fetched>>()
  return async (text, post) => {
    const url = targetOf(text, isDevelopment)
    // A form is sent as often as asked for; only documents are shared.
    const key = post ?? url.href
    const running = inFlight.get(key)
    if (running !== undefined) return running
    if (inFlight.size >= mostAtOnce) throw new FetchFailed('budget', `${mostAtOnce} fetches are running`)
    if (post === undefined) spendGet(url.origin, limits.perOriginPerMinute)
    else spendPost(url.origin, post.perOriginPerMinute)
    // Unencrypted responses come from this computer only.
    const rule = url.protocol === 'http:' ? isLoopbackAddress : mayConnect
    const { timeoutSeconds } = post ?? limits
    const { responseBytes } = limits
    const exchange = { rule, timeoutSeconds, responseBytes, form: post?.form, resolve, authorities }
    const fetching = fetchOnce(url, exchange).finally(() => inFlight.delete(key))
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

/** Returns a function that counts the fetches of an origin in windows of a minute. */
function originBudget(clock: Clock): (origin: string, perMinute: number) => void {
  const counts = new Map<string, number>()
  let window = 0
  return (origin, perMinute) => {
    const minute = Math.floor(clock() / 60)
    if (minute !== window || counts.size >= mostOrigins) counts.clear()
    window = minute
    const count = (counts.get(origin) ?? 0) + 1
    if (count > perMinute)
      throw new FetchFailed('budget', `more than ${perMinute} fetches a minute (fetch.perOriginPerMinute)`)
    counts.set(origin, count)
  }
}
