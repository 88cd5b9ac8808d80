import { hash } from 'node:crypto'
import { connect } from 'node:net'
import Database from 'better-sqlite3'
import type { Test } from 'tap'
import type { TestServer } from './server.ts'

/** A response as received. */
export interface RawResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Every received byte. */
  readonly text: string
}

export interface RawRequest {
  readonly method?: string
  readonly path: string
  /** Sent unchanged, in this order; Host and Connection are added unless they are here. */
  readonly headers?: readonly (readonly [name: string, value: string])[]
  /** Content-Length is added, unless a header is given. */
  readonly body?: string | Buffer
}

/** The request as bytes: no client library corrects anything. */
export function bytesOfRequest({ method = 'GET', path, headers = [], body = '' }: RawRequest): Buffer {
  const content = Buffer.from(body)
  const has = (name: string) => headers.some(([each]) => each.toLowerCase() === name)
  const lines = [
    `${method} ${path} HTTP/1.1`,
    ...(has('host') ? [] : ['Host: localhost']),
    ...(has('connection') ? [] : ['Connection: close']),
    ...headers.map(([name, value]) => `${name}: ${value}`),
    ...(content.length === 0 || has('content-length') || has('transfer-encoding')
      ? []
      : [`Content-Length: ${content.length}`]),
  ]
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), content])
}

/** Sends these bytes and reads until the server closes, or sends nothing for five seconds. */
export function sendBytes(server: TestServer, ...parts: readonly (string | Buffer)[]): Promise<RawResponse> {
  const { port } = new URL(server.origin)
  return new Promise((resolve) => {
    const chunks: Buffer[] = []
    const socket = connect({ host: 'localhost', port: Number(port) })
    const end = () => {
      socket.destroy()
      resolve(readResponse(Buffer.concat(chunks).toString('latin1')))
    }
    socket.setTimeout(5000, end)
    socket.on('data', (chunk) => chunks.push(chunk))
    // The server may reject before it has read everything: its response counts.
    socket.on('error', () => {})
    socket.on('close', end)
    socket.on('connect', () => {
      for (const part of parts) socket.write(typeof part === 'string' ? Buffer.from(part, 'latin1') : part)
    })
  })
}

export function send(server: TestServer, request: RawRequest): Promise<RawResponse> {
  return sendBytes(server, bytesOfRequest(request))
}

function readResponse(text: string): RawResponse {
  const split = text.indexOf('\r\n\r\n')
  const [statusLine = '', ...lines] = text.slice(0, Math.max(split, 0)).split('\r\n')
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 2)]),
  )
  const rest = Buffer.from(split < 0 ? '' : text.slice(split + 4), 'latin1').toString()
  const body = headers['transfer-encoding'] === 'chunked' ? unchunk(rest) : rest
  return { status: Number(statusLine.split(' ')[1] ?? 0), headers, body, text }
}

function unchunk(text: string): string {
  return text.replace(/^[0-9a-f]+\r\n/i, '').replace(/\r\n[0-9a-f]+\r\n(?:\r\n)?$/i, '')
}

/** What is wrong with an error response by RFC 6749 §5.2; undefined if it is correct. */
export function faultOfRejection({ status, headers, body, text }: RawResponse): string | undefined {
  if (!(status >= 400 && status < 500)) return `status ${status}: ${text.slice(0, 200)}`
  if (!headers['content-type']?.startsWith('application/json')) return `not JSON: ${text.slice(0, 300)}`
  if (headers['cache-control'] !== 'no-store') return 'may be cached'
  const members: unknown = JSON.parse(body)
  if (typeof members !== 'object' || members === null) return `not an object: ${body}`
  if (Object.keys(members).sort().join() !== 'error,error_description') return `foreign form: ${body}`
  const { error, error_description: description } = members as Record<string, unknown>
  if (typeof error !== 'string' || !/^[a-z_]+$/.test(error)) return `error: ${body}`
  if (typeof description !== 'string' || !/^[\x20\x21\x23-\x5b\x5d-\x7e]+$/.test(description)) {
    return `description: ${body}`
  }
  return undefined
}

/** What is wrong with an error page; undefined if it is correct. */
export function faultOfPage({ status, headers, body, text }: RawResponse): string | undefined {
  if (!(status >= 400 && status < 500)) return `status ${status}: ${text.slice(0, 200)}`
  if (!headers['content-type']?.startsWith('text/html')) return `not HTML: ${text.slice(0, 300)}`
  if (headers['location'] !== undefined) return `it redirects to ${headers['location']}`
  return /<!doctype html>/i.test(body) && !body.includes('"statusCode"') ? undefined : `no page: ${body}`
}

/** Asserts that each of these requests is rejected with this status, in this form. */
export async function assertAllRejected(
  t: Test,
  server: TestServer,
  requests: Readonly<Record<string, RawRequest>>,
  form: 'json' | 'page',
  status: number,
): Promise<void> {
  for (const [about, request] of Object.entries(requests)) {
    const response = await send(server, request)
    t.equal((form === 'json' ? faultOfRejection : faultOfPage)(response), undefined, about)
    t.equal(response.status, status, `${about}: status`)
  }
}

/**
 * A digest of every row except the rejections, which are written after the response: unchanged as long as nothing else
 * is written.
 */
export function contentsOfDatabase(file: string): string {
  const database = new Database(file, { readonly: true })
  try {
    const tables = database
      .prepare("select name from sqlite_schema where type = 'table' and name <> 'rejections' order by name")
      .pluck()
      .all()
    const rows = tables.map((table) => database.prepare(`select * from "${table}"`).raw().all())
    return hash('sha256', JSON.stringify(rows))
  } finally {
    database.close()
  }
}
