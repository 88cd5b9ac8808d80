import type { Test } from 'tap'

/** A JSON object from a response. */
export type Json = Record<string, unknown>

export interface HttpResponse {
  readonly status: number
  readonly headers: Headers
  /** The JSON object, or `{ text }` for anything else. */
  readonly body: Json
}

export const loopback = 'http://127.0.0.1:7777/cb'
// RFC 7636 appendix B.
const codeChallenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
const codeVerifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'

/** One request that follows no redirect. */
export async function ask(url: string, init: RequestInit = {}): Promise<HttpResponse> {
  const response = await fetch(url, { redirect: 'manual', ...init })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : { text } }
}

/** An error of RFC 7591 §3.2.2 that is not cached and contains nothing else: no client, no secret. */
export function assertRejected(t: Test, response: HttpResponse, error: string, about: string): void {
  t.equal(response.status, 400, about)
  t.match(response.headers.get('content-type'), /^application\/json/, about)
  t.equal(response.headers.get('cache-control'), 'no-store', about)
  t.strictSame(Object.keys(response.body).sort(), ['error', 'error_description'], about)
  t.equal(response.body['error'], error, about)
  t.match(response.body['error_description'], /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/, about)
}

/** An error page of the authorization endpoint, which redirects nowhere. */
export function assertNotSentAway(t: Test, { status, headers, body }: HttpResponse, about: string): void {
  t.equal(status, 400, about)
  t.match(headers.get('content-type'), /^text\/html/, about)
  t.equal(headers.get('location'), null, about)
  t.match(body['text'], '<h1>', about)
}

/** The server at this issuer as the developer of a client sees it. */
export function registrationAt(issuer: string) {
  const endpoint = `${issuer}/api/oauth/register`

  /** Sends a registration; a string is sent unchanged. */
  function post(body: unknown, headers: Record<string, string> = {}): Promise<HttpResponse> {
    return ask(endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  }

  /** Registers a client that must be accepted. */
  async function register(metadata: Json = {}): Promise<Json> {
    const { status, body } = await post({ redirect_uris: [loopback], ...metadata })
    if (status === 201) return body
    throw new Error(`${status} ${JSON.stringify(body)} for ${JSON.stringify(metadata)}`)
  }

  /** Calls the client configuration endpoint of a registered client. */
  function configure(
    client: Json,
    method: string,
    body?: Json,
    token = client['registration_access_token'],
  ): Promise<HttpResponse> {
    return ask(String(client['registration_client_uri']), {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    })
  }

  function authorize(clientId: unknown, parameters: Record<string, string> = {}): Promise<HttpResponse> {
    const query = new URLSearchParams({
      response_type: 'code',
      client_id: String(clientId),
      redirect_uri: loopback,
      scope: 'openid',
      code_challenge: codeChallenge,
      code_challenge_method: 'S256',
      state: 'abc',
      ...parameters,
    })
    return ask(`${issuer}/oauth/authorize?${query}`)
  }

  /** Whether the authorization endpoint accepts the request. */
  async function mayAuthorize(clientId: unknown, redirectUri = loopback): Promise<boolean> {
    const { status, headers } = await authorize(clientId, { redirect_uri: redirectUri })
    return status >= 300 && status < 400 && !headers.get('location')?.includes('error=')
  }

  /** The error of redeeming a code that does not exist: `invalid_grant` means that the client was accepted. */
  async function tokenError(members: Readonly<Json>, basic?: readonly unknown[]): Promise<unknown> {
    const form = {
      grant_type: 'authorization_code',
      code: 'no such code',
      redirect_uri: loopback,
      code_verifier: codeVerifier,
      ...members,
    }
    const { body } = await ask(`${issuer}/api/oauth/token`, {
      method: 'POST',
      headers: basic ? { authorization: `Basic ${btoa(basic.join(':'))}` } : {},
      body: new URLSearchParams(
        Object.entries(form).map(([name, value]): [string, string] => [name, String(value)]),
      ),
    })
    return body['error']
  }

  /** The first page a user sees when a client sends them here. */
  async function firstPage(clientId: unknown): Promise<string> {
    const cookies = new Map<string, string>()
    let response = await authorize(clientId)
    for (let hops = 0; hops < 5 && response.status >= 300 && response.status < 400; hops++) {
      for (const cookie of response.headers.getSetCookie()) {
        const [name = '', value = ''] = (cookie.split(';')[0] ?? '').split('=')
        cookies.set(name, value)
      }
      const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      response = await ask(new URL(response.headers.get('location') ?? '', issuer).href, {
        headers: { cookie },
      })
    }
    return String(response.body['text'])
  }

  return { endpoint, post, register, configure, authorize, mayAuthorize, tokenError, firstPage }
}
