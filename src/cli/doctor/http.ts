import { once } from 'node:events'
import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { text } from 'node:stream/consumers'
import type { Config } from '../../config/schema.ts'
import { isObject } from '../../domain/is-object.ts'
import { keyPolicy } from '../../keys/key-policy.ts'
import { systemClock, systemRandom } from '../../system/system.ts'

/** A response as it arrived: redirects are not followed, nothing is decompressed. */
export interface HttpResponse {
  readonly url: string
  readonly status: number
  readonly headers: Readonly<Record<string, number | string | readonly string[] | undefined>>
  readonly body: string
}

/** No HTTP response arrived; `code` is that of the system, of TLS or of the parser. */
export class NoResponse extends Error {
  readonly code: string

  constructor(cause: unknown) {
    const code = String(codeOf(cause) ?? '')
    super(cause instanceof Error ? cause.message || code : String(cause), { cause })
    this.name = 'NoResponse'
    this.code = code
  }
}

function codeOf(error: unknown): unknown {
  if (error instanceof AggregateError) return codeOf(error.errors[0])
  if (!(error instanceof Error)) return undefined
  return error.name === 'TimeoutError' ? 'ETIMEDOUT' : 'code' in error ? error.code : undefined
}

/**
 * Sends a GET request, or a POST request with this form, on a new connection.
 * @throws {NoResponse}
 */
export async function ask(
  url: string,
  { headers, form }: { readonly headers?: Readonly<Record<string, string>>; readonly form?: string } = {},
): Promise<HttpResponse> {
  const signal = AbortSignal.timeout(5000)
  const type = form !== undefined && { 'content-type': 'application/x-www-form-urlencoded' }
  const options = { method: type ? 'POST' : 'GET', signal, agent: false, headers: { ...type, ...headers } }
  try {
    const outgoing = url.startsWith('https:') ? requestHttps(url, options) : requestHttp(url, options)
    const arrival = once(outgoing, 'response')
    // A server may respond and close the connection before it has read the form.
    outgoing.on('error', () => {})
    outgoing.end(form)
    const [incoming] = await arrival
    return { url, status: incoming.statusCode, headers: incoming.headers, body: await text(incoming) }
  } catch (error) {
    throw new NoResponse(signal.aborted ? signal.reason : error)
  }
}

/** Returns a header as text; undefined if it is absent. */
export function headerOf({ headers }: Pick<HttpResponse, 'headers'>, name: string): string | undefined {
  const value = headers[name]
  return value === undefined ? undefined : [value].flat().join(', ')
}

/** Returns the members of a JSON object; undefined if the body is none. */
export function membersOf({ body }: HttpResponse): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(body)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Returns the title or the beginning of the body, which shows whose error page it is. */
export function excerptOf({ body }: HttpResponse): string {
  const title = /<title[^>]*>([^<]*)/i.exec(body)?.[1]
  return shortened((title ?? body).trim().replaceAll(/\s+/g, ' ')) || 'nothing'
}

/** Shortens a text to 100 characters. */
export function shortened(text: string): string {
  return text.length > 100 ? `${text.slice(0, 99)}…` : text
}

/** A server of the same configuration in this process: responses that arrive are compared with its responses. */
export interface Reference {
  /** Returns the response of a server of this configuration at the path of this URL. */
  responseTo(url: string): Promise<HttpResponse>
  close(): Promise<void>
}

/** Starts one. It does not listen, its store is in memory, and its keys are its own. */
export async function startReference(operatorConfig: Config): Promise<Reference> {
  const [{ buildApp }, { openStore }, { loadKeyRing }] = await Promise.all([
    import('../../app/app.ts'),
    import('../../storage/open.ts'),
    import('../../keys/key-ring.ts'),
  ])
  // Paths that only a development server has are not checked.
  const config: Config = { ...operatorConfig, mode: 'serve', logLevel: 'silent' }
  const [clock, random] = [systemClock, systemRandom]
  const store = await openStore('sqlite::memory:')
  const secret = random(32).toString('base64url')
  const keys = await loadKeyRing({ store, secret, policy: keyPolicy(config), clock, random })
  const app = await buildApp({ config, store, keys, clock, random })
  return {
    responseTo: async (url) => {
      const { pathname, search } = new URL(url)
      const { statusCode: status, headers, body } = await app.inject(pathname + search)
      return { url, status, headers, body }
    },
    close: async () => {
      await app.close()
      await store.close()
    },
  }
}
