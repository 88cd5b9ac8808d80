import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Config } from '../config/schema.ts'
import type { Clock } from '../system.ts'
import { type AddressRule, addressesIn, isLoopbackAddress, isPublicAddress } from './public-address.ts'

/** A complete response of status 200; to a POST also of 204. */
export interface Fetched {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

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

/** Why a fetch failed, as one word for tests and logs. */
export type FetchFault =
  | 'url'
  | 'address'
  | 'budget'
  | 'connection'
  | 'time'
  | 'redirect'
  | 'status'
  | 'encoding'
  | 'size'

interface FetchFailedDetail {
  readonly cause?: unknown
  readonly status?: number
}

/** A fetch that failed; `message` says why, and has nothing of the response. */
export class FetchFailed extends Error {
  readonly fault: FetchFault
  /** The status of a response that came and is none to use. */
  readonly status?: number

  constructor(fault: FetchFault, message: string, { cause, status }: FetchFailedDetail = {}) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'FetchFailed'
    this.fault = fault
    if (status !== undefined) this.status = status
  }
}

type Resolve = (host: string) => Promise<readonly { readonly address: string; readonly family: number }[]>

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
const headerBytes = 16_384
const longestUrl = 2048

/**
 * Makes the one way in which this server fetches what a client names. It connects to public addresses only, which it
 * checks on the socket before anything is sent; follows no redirect; sends no credentials and uses no proxy; reads a
 * limited number of bytes, uncompressed, in a limited time; fetches a URL once for all who want it at the same time;
 * and has a budget for each origin.
 */
export function createGuardedFetch(options: GuardedFetchOptions): GuardedFetch {
  const { limits, isDevelopment, clock } = options
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
    const fetching = fetchOnce(url, options, rule, post).finally(() => inFlight.delete(key))
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

async function fetchOnce(
  url: URL,
  options: GuardedFetchOptions,
  rule: AddressRule,
  post?: FormPost,
): Promise<Fetched> {
  const { responseBytes } = options.limits
  const { timeoutSeconds } = post ?? options.limits
  const signal = AbortSignal.timeout(timeoutSeconds * 1000)
  let socket: Socket | undefined
  try {
    socket = await connect(url, options, rule, signal)
    const response = await send(url, socket, signal, post?.form)
    const { statusCode: status = 0, headers } = response
    return { status, headers, body: await readBody(response, responseBytes) }
  } catch (error) {
    if (error instanceof FetchFailed) throw error
    if (signal.aborted) throw new FetchFailed('time', `no response in ${timeoutSeconds} s`, { cause: error })
    throw new FetchFailed('connection', 'the connection failed', { cause: error })
  } finally {
    socket?.destroy()
  }
}

/**
 * Connects to an address that the rule allows. The name is resolved once: the addresses that are checked are those that
 * are connected to, and the address of the socket is checked again before the first byte is sent.
 */
async function connect(
  url: URL,
  { resolve = everyAddress, authorities }: GuardedFetchOptions,
  rule: AddressRule,
  signal: AbortSignal,
): Promise<Socket> {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const isAddress = isIP(host) !== 0
  const found = isAddress ? [{ address: host, family: isIP(host) }] : await inTime(resolve(host), signal)
  const allowed = found.filter(({ address }) => rule(address))
  if (allowed.length === 0) throw notAllowed()
  const isTls = url.protocol === 'https:'
  const socket = connectTcp({
    host,
    port: Number(url.port || (isTls ? 443 : 80)),
    autoSelectFamily: true,
    lookup: (_host, _options, found) => found(null, [...allowed]),
    signal,
  })
  socket.on('error', () => {})
  await once(socket, 'connect', { signal })
  if (!rule(socket.remoteAddress ?? '')) {
    socket.destroy()
    throw notAllowed()
  }
  if (!isTls) return socket
  const secure = connectTls({
    socket,
    host,
    // RFC 6066 §3: an address is no server name.
    ...(!isAddress && { servername: host }),
    ALPNProtocols: ['http/1.1'],
    rejectUnauthorized: true,
    ...(authorities !== undefined && { ca: [...authorities] }),
  })
  secure.on('error', () => {})
  try {
    await once(secure, 'secureConnect', { signal })
    return secure
  } catch (error) {
    socket.destroy()
    throw error
  }
}

const everyAddress: Resolve = (host) => lookup(host, { all: true })

function notAllowed(): FetchFailed {
  return new FetchFailed('address', 'the host has no public address (fetch.privateNetworks)')
}

/** Waits for a result, but not longer than the signal allows. */
function inTime<T>(result: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = once(signal, 'abort').then(() => {
    throw signal.reason
  })
  return Promise.race([result, aborted])
}

async function send(
  url: URL,
  socket: Socket,
  signal: AbortSignal,
  form?: URLSearchParams,
): Promise<IncomingMessage> {
  const body = form?.toString()
  const request = httpRequest({
    method: body === undefined ? 'GET' : 'POST',
    path: url.pathname + url.search,
    createConnection: () => socket,
    headers: {
      host: url.host,
      accept: 'application/json, */*;q=0.5',
      'accept-encoding': 'identity',
      'user-agent': 'lychgate',
      connection: 'close',
      ...(body !== undefined && {
        'content-type': 'application/x-www-form-urlencoded',
        'content-length': Buffer.byteLength(body),
      }),
    },
    maxHeaderSize: headerBytes,
    insecureHTTPParser: false,
    signal,
  })
  request.end(body)
  // `as`: the only argument of the event.
  const [response] = (await once(request, 'response')) as [IncomingMessage]
  const { statusCode = 0, headers } = response
  if (statusCode >= 300 && statusCode < 400)
    throw new FetchFailed('redirect', 'the response is a redirect', { status: statusCode })
  if (statusCode !== 200 && !(form && statusCode === 204))
    throw new FetchFailed('status', `the response has status ${statusCode}`, { status: statusCode })
  if ((headers['content-encoding'] ?? 'identity') !== 'identity')
    throw new FetchFailed('encoding', 'the response is compressed')
  return response
}

async function readBody(response: IncomingMessage, limit: number): Promise<Buffer> {
  const tooLarge = () =>
    new FetchFailed('size', `the response has more than ${limit} bytes (fetch.responseBytes)`)
  if (Number(response.headers['content-length'] ?? 0) > limit) throw tooLarge()
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response) {
    size += chunk.length
    if (size > limit) throw tooLarge()
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}
