import { type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** A request of the try-it client. */
interface Sent {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}

/** A request that was sent over HTTP, and its response, with secrets, because developers may copy it. */
export interface Call extends Sent {
  /** Identifies the request in the flow trace. */
  readonly number: string
  /** 0 if the connection broke. */
  readonly status: number
  readonly answerHeaders: readonly (readonly [name: string, value: string])[]
  readonly answer: string
  readonly tookMs: number
}

/** The header by which the flow trace finds a call. */
export const callHeader = 'x-lychgate-try'

/** What oauth4webapi passes to its `customFetch`. */
interface FetchOptions {
  readonly method: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}
export type RecordingFetch = (url: string, options: FetchOptions) => Promise<Response>

/**
 * A `fetch` that adds each request and its response to `calls`. It connects to the server that this process runs,
 * wherever the name of the issuer leads from here (a container, a proxy).
 * @param to Where the server listens.
 * @param run Its id and the number of its calls, which identify each call.
 */
export function recordingFetch(
  to: AddressInfo,
  run: { readonly id: string; calls: number },
  calls: Call[],
): RecordingFetch {
  const agent = `Lychgate-try-it/1 (${run.id.slice(0, 6)})`
  return async (url, { method, headers = {}, body }) => {
    const { accept = 'application/json', 'user-agent': _, ...own } = headers
    const hasBody = body !== undefined && body !== null
    run.calls += 1
    const number = `${run.id.slice(0, 8)}-${run.calls}`
    const sent = { method, url, headers: own, ...(hasBody && { body: String(body) }), number }
    const started = performance.now()
    const tookMs = () => Math.round(performance.now() - started)
    try {
      const response = await send(to, sent, { accept, 'user-agent': agent, [callHeader]: number })
      const { statusCode: status = 0, headersDistinct } = response
      const received = await text(response)
      const responseHeaders = Object.entries(headersDistinct).flatMap(([name, values = []]) =>
        values.map((value): [string, string] => [name, value]),
      )
      calls.push({ ...sent, status, answerHeaders: responseHeaders, answer: received, tookMs: tookMs() })
      return new Response(received || null, { status, headers: responseHeaders })
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      calls.push({ ...sent, status: 0, answerHeaders: [], answer: reason, tookMs: tookMs() })
      throw error
    }
  }
}

function send(to: AddressInfo, { method, url, headers, body }: Sent, more: Sent['headers']) {
  const { host, pathname, search } = new URL(url)
  const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
  return new Promise<IncomingMessage>((resolve, reject) => {
    request({
      host: reachable(to.address),
      port: to.port,
      method,
      path: pathname + search,
      agent: false,
      headers: { host, ...more, ...headers, ...length },
    })
      .once('error', reject)
      .once('response', resolve)
      .end(body)
  })
}

function reachable(address: string): string {
  if (address === '0.0.0.0') return '127.0.0.1'
  return address === '::' ? '::1' : address
}

/** Formats a request as a curl command. */
export function curlOf({ method, url, headers, body }: Sent): string {
  const lines = [`curl -s ${quoted(url)}`]
  if (method === 'POST' && body === undefined) lines.push('-X POST')
  for (const [name, value] of Object.entries(headers)) lines.push(`-H ${quoted(`${name}: ${value}`)}`)
  if (body !== undefined) lines.push(`--data-raw ${quoted(body)}`)
  return lines.join(' \\\n  ')
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
