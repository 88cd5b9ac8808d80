import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import {
  type ClientRequest,
  request as httpRequest,
  type IncomingHttpHeaders,
  type IncomingMessage,
} from 'node:http'
import { connect as connectTcp, isIP, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { AddressRule } from './public-address.ts'

/** A complete response of status 200; to a POST also of 204. */
export interface Fetched {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: Buffer
}

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

export type Resolve = (
  host: string,
) => Promise<readonly { readonly address: string; readonly family: number }[]>

/** How one URL is fetched. */
export interface ExchangeOptions {
  /** The addresses that may be connected to. */
  readonly rule: AddressRule
  readonly timeoutSeconds: number
  readonly responseBytes: number
  /** A form to be sent with POST. Absent: GET. */
  readonly form?: URLSearchParams | undefined
  /** The `Authorization` header. */
  readonly authorization?: string | undefined
  /** Finds the addresses of a host name. Absent: as the operating system does. */
  readonly resolve?: Resolve | undefined
  /** Certificates, as PEM, that are trusted instead of those of Node. */
  readonly authorities?: readonly string[] | undefined
}

const headerBytes = 16_384
/** Responses of status 1xx before the final one, RFC 9110 §15.2. */
const mostInterim = 10

/** Fetches a URL, and ends by the deadline whatever its host does, RFC 9110 §15.2.2 (an upgrade) included. */
export async function fetchOnce(url: URL, options: ExchangeOptions): Promise<Fetched> {
  const { timeoutSeconds } = options
  const ending = new AbortController()
  let timer: NodeJS.Timeout | undefined
  // The timer settles the fetch: nothing that a socket, parser or resolver fails to report keeps it going.
  const overdue = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(new FetchFailed('time', `no response in ${timeoutSeconds} s`)),
      timeoutSeconds * 1000,
    )
  })
  try {
    return await Promise.race([exchange(url, options, ending.signal), overdue])
  } catch (error) {
    if (error instanceof FetchFailed) throw error
    throw new FetchFailed('connection', 'the connection failed', { cause: error })
  } finally {
    clearTimeout(timer)
    ending.abort()
  }
}

/** @param signal Aborted at the end of the fetch: it closes what is open. */
async function exchange(url: URL, options: ExchangeOptions, signal: AbortSignal): Promise<Fetched> {
  const socket = await connect(url, options, signal)
  const response = await send(url, socket, options)
  const { statusCode: status = 0, headers } = response
  return { status, headers, body: await readBody(response, options.responseBytes) }
}

/**
 * Connects to an address that the rule allows. The name is resolved once: the checked addresses are the ones that
 * are connected to, and the address of the socket is checked again before the first byte is sent.
 */
export async function connect(
  url: URL,
  { rule, resolve = everyAddress, authorities }: Pick<ExchangeOptions, 'rule' | 'resolve' | 'authorities'>,
  signal: AbortSignal,
): Promise<Socket> {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const isAddress = isIP(host) !== 0
  const found = isAddress ? [{ address: host, family: isIP(host) }] : await resolve(host)
  signal.throwIfAborted()
  const allowed = found.filter(({ address }) => rule(address))
  if (allowed.length === 0) throw notAllowed()
  const isTls = url.protocol === 'https:'
  const socket = connectTcp({
    host,
    port: Number(url.port || (isTls ? 443 : 80)),
    autoSelectFamily: true,
    lookup: (_host, _options, found) => found(null, [...allowed]),
  })
  signal.addEventListener('abort', () => socket.destroy())
  socket.on('error', () => {})
  await once(socket, 'connect', { signal })
  if (!rule(socket.remoteAddress ?? '')) throw notAllowed()
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
  signal.addEventListener('abort', () => secure.destroy())
  secure.on('error', () => {})
  await once(secure, 'secureConnect', { signal })
  return secure
}

const everyAddress: Resolve = (host) => lookup(host, { all: true })

function notAllowed(): FetchFailed {
  return new FetchFailed('address', 'the host has no public address (fetch.privateNetworks)')
}

async function send(
  url: URL,
  socket: Socket,
  { form, authorization }: Pick<ExchangeOptions, 'form' | 'authorization'>,
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
      ...(authorization !== undefined && { authorization }),
      ...(body !== undefined && {
        'content-type': 'application/x-www-form-urlencoded',
        'content-length': Buffer.byteLength(body),
      }),
    },
    maxHeaderSize: headerBytes,
    insecureHTTPParser: false,
  })
  request.end(body)
  const response = await responseTo(request)
  const { statusCode = 0, headers } = response
  if (statusCode >= 300 && statusCode < 400)
    throw new FetchFailed('redirect', 'the response is a redirect', { status: statusCode })
  if (statusCode !== 200 && !(form && statusCode === 204)) throw wrongStatus(statusCode)
  if ((headers['content-encoding'] ?? 'identity') !== 'identity')
    throw new FetchFailed('encoding', 'the response is compressed')
  return response
}

/** Waits for the final response, and fails with every other event that ends a request. */
export function responseTo(request: ClientRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    let interim = 0
    request.on('response', resolve)
    // RFC 9110 §7.8: a server must not switch to a protocol that was not offered.
    request.on('upgrade', () => reject(wrongStatus(101)))
    request.on('information', () => {
      interim += 1
      if (interim > mostInterim)
        reject(new FetchFailed('size', `more than ${mostInterim} interim responses came`))
    })
    request.on('error', reject)
    request.on('close', () => reject(new Error('closed without a response')))
  })
}

function wrongStatus(status: number): FetchFailed {
  return new FetchFailed('status', `the response has status ${status}`, { status })
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
