import { type IncomingHttpHeaders, request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { text } from 'node:stream/consumers'

const timeoutMilliseconds = 5000

/** A question as it goes over the wire. */
export interface Question {
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  /** A form. */
  readonly body?: string
}

/** A response as it came: redirects are not followed, nothing is decompressed. */
export interface Answer {
  readonly url: string
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** Nothing that is HTTP came back; `code` is that of the system, of TLS or of the parser. */
export class NoAnswer extends Error {
  readonly code: string

  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message || String(codeOf(cause)) : String(cause), { cause })
    this.name = 'NoAnswer'
    this.code = String(codeOf(cause) ?? '')
  }
}

/**
 * Asks once, on a connection of its own.
 * @throws {NoAnswer}
 */
export async function ask(url: string, { method = 'GET', headers, body }: Question = {}): Promise<Answer> {
  const send = url.startsWith('https:') ? requestHttps : requestHttp
  const signal = AbortSignal.timeout(timeoutMilliseconds)
  const form = body !== undefined && {
    'content-type': 'application/x-www-form-urlencoded',
    'content-length': String(Buffer.byteLength(body)),
  }
  const options = { method, signal, agent: false, headers: { ...form, ...headers } }
  return await new Promise((resolve, reject) => {
    const fail = (error: unknown) => reject(new NoAnswer(signal.aborted ? signal.reason : error))
    const outgoing = send(url, options, (incoming) => {
      const { statusCode: status = 0, headers: received } = incoming
      text(incoming).then((content) => resolve({ url, status, headers: received, body: content }), fail)
    })
    outgoing.on('error', fail)
    outgoing.end(body)
  })
}

/** The same, and undefined when nothing answers. */
export async function askIfThere(url: string, question?: Question): Promise<Answer | undefined> {
  try {
    return await ask(url, question)
  } catch (error) {
    if (error instanceof NoAnswer) return undefined
    throw error
  }
}

/** One header as text; undefined when it is not there. */
export function headerOf({ headers }: Pick<Answer, 'headers'>, name: string): string | undefined {
  const value = headers[name]
  return value === undefined ? undefined : [value].flat().join(', ')
}

function codeOf(error: unknown): unknown {
  if (error instanceof AggregateError) return codeOf(error.errors[0])
  if (!(error instanceof Error)) return undefined
  return error.name === 'TimeoutError' ? 'ETIMEDOUT' : 'code' in error ? error.code : undefined
}
