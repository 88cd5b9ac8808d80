import { request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'

/** What a client sends. */
export interface Sending {
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** A request this client made over HTTP, and its answer, whole: the developer may copy it. */
export interface Call extends Sending {
  /** Tells the request again in the flow trace. */
  readonly number: string
  readonly status: number
  readonly answerHeaders: readonly (readonly [name: string, value: string])[]
  readonly answer: string
  readonly tookMs: number
}

/** By this header the trace finds the call again. */
export const callHeader = 'x-lychgate-try'

/**
 * Sends it over a socket to the server this runs in, whatever the issuer's name leads to from here (a container, a proxy).
 * @param to Where the server listens.
 */
export async function send(to: AddressInfo, sending: Sending, agent: string, number: string): Promise<Call> {
  const { method, url, headers = {}, body } = sending
  const { host, pathname, search } = new URL(url)
  const started = performance.now()
  const sent = request({
    host: reachable(to.address),
    port: to.port,
    method,
    path: pathname + search,
    agent: false,
    headers: {
      host,
      'user-agent': agent,
      [callHeader]: number,
      accept: 'application/json',
      ...headers,
      ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }),
    },
  })
  const answered = new Promise<Answer>((resolve, reject) => {
    sent.once('error', reject)
    sent.once('response', (response) => {
      text(response).then(
        (answer) => resolve({ status: response.statusCode ?? 0, raw: response.rawHeaders, answer }),
        reject,
      )
    })
  })
  sent.end(body)
  const { status, raw, answer } = await answered.catch(broken)
  const answerHeaders = raw.flatMap((name, at): [string, string][] =>
    at % 2 === 0 ? [[name, raw[at + 1] ?? '']] : [],
  )
  return {
    ...sending,
    number,
    status,
    answerHeaders,
    answer,
    tookMs: Math.round(performance.now() - started),
  }
}

interface Answer {
  readonly status: number
  readonly raw: readonly string[]
  readonly answer: string
}

/** A connection that breaks is what a client has to live with: it is shown, as a response without a status. */
function broken(error: unknown): Answer {
  return { status: 0, raw: [], answer: error instanceof Error ? error.message : String(error) }
}

function reachable(address: string): string {
  if (address === '0.0.0.0') return '127.0.0.1'
  return address === '::' ? '::1' : address
}

/** The call for a terminal. */
export function curlOf({ method, url, headers = {}, body }: Sending): string {
  const lines = [`curl -s ${quoted(url)}`]
  if (method === 'POST' && body === undefined) lines.push('-X POST')
  for (const [name, value] of Object.entries(headers)) lines.push(`-H ${quoted(`${name}: ${value}`)}`)
  if (body !== undefined) lines.push(`--data-raw ${quoted(body)}`)
  return lines.join(' \\\n  ')
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** The JSON object of a response; undefined when it is none. */
export function objectOf(call: Call): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(call.answer)
    // `as`: an object that is not null has members.
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
