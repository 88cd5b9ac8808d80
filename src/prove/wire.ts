import { request as httpRequest, type IncomingMessage } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { connect, FetchFailed, responseTo } from '../outbound/exchange.ts'
import { isPublicAddress } from '../outbound/public-address.ts'
import { systemMilliseconds } from '../system/system.ts'
import { NotTestable, type Seen, type Sent } from './observation.ts'

/** Where requests may go, and how many. */
export interface WireOptions {
  readonly issuer: URL
  /** Hosts other than the origin of the issuer, as `host` (any port) or `host:port`. */
  readonly allowedHosts: readonly string[]
  /** The operator runs the server: it may be one on the internet. */
  readonly isOwn: boolean
  readonly mostRequests: number
  /** The most requests in a second; 0 means no limit. */
  readonly perSecond: number
  readonly signal: AbortSignal
}

/** Sends requests, one after the other unless the caller sends several at once. */
export interface Wire {
  readonly send: (request: Partial<Sent> & Pick<Sent, 'url'>) => Promise<Seen>
  /** Whether requests may go to this URL. */
  readonly allows: (url: string) => boolean
  /** Waits, unless the run is interrupted. */
  readonly pause: (seconds: number) => Promise<void>
  /** How many requests were sent. */
  readonly count: () => number
}

/** A request that is not sent: its origin or address is not allowed. */
export class NotAllowed extends NotTestable {}

const timeoutSeconds = 20
const mostBytes = 1_000_000
const mostRetries = 2
const longestRetrySeconds = 60

/**
 * Opens the one way to the server under test. Each connection goes to the origin of the issuer or to a host that was
 * allowed, and its address is checked before anything is sent: a name that now leads elsewhere is not followed from
 * the internet into a private network, or the other way around.
 */
export function openWire(options: WireOptions): Wire {
  const { issuer, isOwn, signal, mostRequests, perSecond } = options
  const hosts = new Set(options.allowedHosts)
  let count = 0
  let next = 0
  /** Whether the issuer is on the internet; its first connection decides. */
  let isPublic: boolean | undefined

  const mayConnect = (address: string) => {
    const isPublicHost = isPublicAddress(address)
    if (isPublicHost && !isOwn) return false
    isPublic ??= isPublicHost
    return isPublicHost === isPublic
  }

  const allows = (text: string) => {
    const url = URL.parse(text)
    if (url === null || !/^https?:$/.test(url.protocol)) return false
    return url.origin === issuer.origin || hosts.has(url.host) || hosts.has(url.hostname)
  }

  async function once(sent: Sent): Promise<Seen> {
    signal.throwIfAborted()
    const url = URL.parse(sent.url)
    if (url === null) throw new NotTestable(`the server names an address that is no URL: ${sent.url}`)
    if (!allows(sent.url))
      throw new NotAllowed(`${url.origin} is not where the issuer is (--allow-host ${url.host})`)
    if (count >= mostRequests) throw new NotTestable(`${mostRequests} requests were sent (--max-requests)`)
    count += 1
    await pace()
    const ending = AbortSignal.any([signal, AbortSignal.timeout(timeoutSeconds * 1000)])
    try {
      const socket = await connect(url, { rule: mayConnect }, ending)
      const response = await exchange(url, sent, socket, ending)
      return { sent, ...response }
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof FetchFailed && error.fault === 'address')
        throw new NotAllowed(
          `${url.host} is on the internet, or not in the network of the issuer (--i-own-this)`,
        )
      const why = ending.aborted
        ? `no complete response in ${timeoutSeconds} s`
        : error instanceof Error
          ? error.message
          : String(error)
      throw new NotTestable(`${sent.method} ${url.origin}${url.pathname}: ${why}`, { cause: error })
    }
  }

  async function pace(): Promise<void> {
    if (perSecond === 0) return
    const now = systemMilliseconds()
    next = Math.max(now, next + 1000 / perSecond)
    if (next > now) await pause((next - now) / 1000)
  }

  async function send({ method = 'GET', headers = {}, ...more }: Partial<Sent> & Pick<Sent, 'url'>) {
    const sent: Sent = { method, headers, ...more }
    for (let retries = 0; ; retries += 1) {
      const seen = await once(sent)
      if (![429, 503].includes(seen.status)) return seen
      const seconds = Number(seen.headers['retry-after'] ?? Number.NaN)
      if (retries === mostRetries || !(seconds <= longestRetrySeconds))
        throw new NotTestable(`the server limits requests (status ${seen.status})`)
      await pause(seconds + 0.05)
    }
  }

  const pause = (seconds: number) => wait(seconds * 1000, undefined, { signal })

  return { send, allows, pause, count: () => count }
}

async function exchange(
  url: URL,
  { method, headers, body }: Sent,
  socket: Awaited<ReturnType<typeof connect>>,
  signal: AbortSignal,
): Promise<Omit<Seen, 'sent'>> {
  const request = httpRequest({
    method,
    path: url.pathname + url.search,
    createConnection: () => socket,
    headers: {
      host: url.host,
      accept: '*/*',
      'accept-encoding': 'identity',
      'user-agent': 'lychgate-prove',
      connection: 'close',
      ...Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [
          name,
          typeof value === 'string' ? value : [...value],
        ]),
      ),
      ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
    },
    signal,
  })
  request.end(body)
  const response = await responseTo(request)
  return { status: response.statusCode ?? 0, headers: response.headers, body: await textOf(response) }
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response) {
    size += chunk.length
    if (size > mostBytes) throw new Error(`the response has more than ${mostBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
