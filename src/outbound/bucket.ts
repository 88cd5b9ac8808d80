import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { AwsV4Signer } from 'aws4fetch'
import { connect, responseTo } from './exchange.ts'
import { isLoopbackAddress } from './public-address.ts'

/** Where a bucket is, and who asks: the options of `backup`. */
export interface BucketAccess {
  /** `https://s3.eu-central-1.amazonaws.com`; http only for this computer. */
  readonly endpoint: string
  readonly region: string
  readonly accessKey: string
  readonly secretKey: string
}

/** A bucket of S3, or of a server that speaks its protocol. Each request is signed with AWS Signature Version 4. */
export interface Bucket {
  /** Returns the keys that begin with this prefix, in their order. */
  keys(prefix: string): Promise<readonly string[]>
  /** Uploads a file in one request. `replace`: also in place of an object of this key. */
  put(key: string, file: string, bytes: number, options: { readonly replace: boolean }): Promise<void>
  /** Downloads an object into a new file that only its owner reads. */
  get(key: string, file: string): Promise<void>
  delete(key: string): Promise<void>
}

/** A request to a bucket that failed. The message is one line, and has nothing of the response but its error code. */
export class BucketFailed extends Error {
  readonly status: number | undefined

  constructor(message: string, { status, ...options }: ErrorOptions & { readonly status?: number } = {}) {
    super(message, options)
    this.name = 'BucketFailed'
    this.status = status
  }
}

/** What S3 takes in one request: 5 GiB. */
const mostUploadBytes = 5 * 1024 ** 3
/** An upload may take hours, but never stands still for longer. */
const idleMilliseconds = 60_000
const mostTextBytes = 4 * 1024 * 1024
/** A thousand keys each. */
const mostPages = 100
const emptyDigest = createHash('sha256').digest('hex')

interface Sent {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'DELETE'
  readonly key?: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly upload?: { readonly file: string; readonly bytes: number; readonly digest: string }
}

/** Opens a bucket. It follows no redirect: the operator names the right endpoint. */
export function openBucket(name: string, access: BucketAccess): Bucket {
  /** Sends a request, and returns the response if its status is one of these. */
  async function send(sent: Sent, expected: readonly number[]): Promise<IncomingMessage> {
    const url = new URL(`${access.endpoint.replace(/\/$/, '')}/${name}/${sent.key ?? ''}`)
    url.search = new URLSearchParams(sent.query).toString()
    const what = `${sent.method} ${url.origin}${url.pathname}`
    try {
      const response = await exchange(url, sent, access)
      const { statusCode: status = 0 } = response
      if (expected.includes(status)) return response
      const code = sent.method === 'HEAD' ? '' : /<Code>(\w{1,64})<\/Code>/.exec(await textOf(response))?.[1]
      throw new BucketFailed(`${what}: ${[status, code].filter(Boolean).join(' ')}`, { status })
    } catch (cause) {
      if (cause instanceof BucketFailed) throw cause
      throw new BucketFailed(`${what}: ${cause instanceof Error ? cause.message : cause}`, { cause })
    }
  }
  return {
    keys: async (prefix) => {
      const keys: string[] = []
      for (let page = 0; page < mostPages; page += 1) {
        const after = keys.at(-1)
        const query = { 'list-type': '2', prefix, ...(after !== undefined && { 'start-after': after }) }
        const text = await textOf(await send({ method: 'GET', query }, [200]))
        // Keys with an entity are not ours: those have none of its characters.
        keys.push(...[...text.matchAll(/<Key>([^<&]*)<\/Key>/g)].map(([, key = '']) => key))
        if (!text.includes('<IsTruncated>true<') || keys.at(-1) === after) break
      }
      return keys
    },
    put: async (key, file, bytes, { replace }) => {
      if (bytes > mostUploadBytes)
        throw new BucketFailed('the copy is larger than 5 GiB, which one upload cannot have; use a folder')
      // Not every server knows `If-None-Match`, and 412 is only for those that do.
      if (!replace && (await exists(key))) throw new BucketFailed('the object exists', { status: 412 })
      const headers = replace ? {} : { 'if-none-match': '*' }
      const upload = { file, bytes, digest: await digestOf(file) }
      ;(await send({ method: 'PUT', key, headers, upload }, [200])).resume()
    },
    get: async (key, file) => {
      const response = await send({ method: 'GET', key }, [200])
      try {
        await pipeline(response, createWriteStream(file, { flags: 'wx', mode: 0o600, flush: true }))
      } catch (cause) {
        throw new BucketFailed('the download ended too early', { cause })
      }
    },
    delete: async (key) => void (await send({ method: 'DELETE', key }, [200, 204])).resume(),
  }

  async function exists(key: string): Promise<boolean> {
    const response = await send({ method: 'HEAD', key }, [200, 404])
    response.resume()
    return response.statusCode === 200
  }
}

/** Sends one signed request over a connection that is closed if nothing moves on it. */
async function exchange(url: URL, sent: Sent, access: BucketAccess): Promise<IncomingMessage> {
  const { method, headers = {}, upload } = sent
  const signer = new AwsV4Signer({
    method,
    url: url.href,
    headers: { ...headers, 'x-amz-content-sha256': upload?.digest ?? emptyDigest },
    accessKeyId: access.accessKey,
    secretAccessKey: access.secretKey,
    service: 's3',
    region: access.region,
  })
  const signed = Object.fromEntries((await signer.sign()).headers)
  const ending = new AbortController()
  const timer = setTimeout(() => ending.abort(new Error('the server cannot be reached')), idleMilliseconds)
  const rule = url.protocol === 'http:' ? isLoopbackAddress : () => true
  const socket = await connect(url, { rule }, ending.signal)
    .catch((cause) => Promise.reject(ending.signal.aborted ? ending.signal.reason : cause))
    .finally(() => clearTimeout(timer))
  socket.setTimeout(idleMilliseconds, () => socket.destroy(new Error('the server stands still')))
  const request = httpRequest({
    method,
    path: url.pathname + url.search,
    createConnection: () => socket,
    headers: {
      ...signed,
      host: url.host,
      connection: 'close',
      'accept-encoding': 'identity',
      ...(upload && { 'content-length': upload.bytes }),
    },
  })
  const response = responseTo(request)
  if (upload === undefined) request.end()
  // A server that rejects an upload closes the connection early: its response says why.
  else pipeline(createReadStream(upload.file), request).catch(() => undefined)
  return response
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of response) {
    bytes += chunk.length
    if (bytes > mostTextBytes) throw new BucketFailed('the response is too long')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

async function digestOf(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return hash.digest('hex')
}
