import { randomBytes } from 'node:crypto'
import { get } from 'node:http'
import { text } from 'node:stream/consumers'
import { catalogueOf } from '../../src/feature/service.ts'
import { declared } from '../../src/features.ts'
import { addOperatorClient, type OperatorClientRequest } from './client-request.ts'
import { keepCookies } from './cookie-jar.ts'
import { signInAndApprove } from './flow.ts'
import { alice, type TestServer } from './server.ts'
import { UserAgent } from './user-agent.ts'

/** Adds the client of a protected host, as an operator does. */
export async function protect(
  server: TestServer,
  host: string,
  rules: readonly object[] = [],
  { description, ...more }: Partial<OperatorClientRequest> = {},
): Promise<string> {
  const { config, store, clock } = server.deps
  const scopes = catalogueOf(config, declared.scopes).map(({ name }) => name)
  const request: OperatorClientRequest = {
    name: host,
    redirectUris: [`https://${host}/.lychgate/callback`],
    postLogoutRedirectUris: [],
    authenticationMethod: 'none',
    pkce: 'required',
    consent: 'skip',
    idTokenSignedResponseAlg: 'ES256',
    ...more,
    description: { forward_auth: { host, rules }, ...description },
  }
  const known = { declared, scopes, resources: [config.issuer] }
  const fresh = { id: randomBytes(16), secret: randomBytes(32) }
  const { client, writes } = addOperatorClient(request, known, fresh, clock())
  await store.write(...writes)
  return client.id
}

/** A request that a proxy asks about. */
export interface Asked {
  readonly method?: string
  readonly uri?: string
  readonly headers?: Readonly<Record<string, string>>
  /** The query of the question. */
  readonly query?: string
}

export const page = { accept: 'text/html', 'sec-fetch-mode': 'navigate' }

/** A browser at a host behind a proxy that asks the server, and at the server itself. */
export class HostBrowser {
  readonly agent: UserAgent
  /** Those of the host. */
  readonly cookies = new Map<string, string>()
  readonly #server: TestServer
  readonly #host: string

  constructor(server: TestServer, host: string, agent = new UserAgent(server.issuer)) {
    this.#server = server
    this.#host = host
    this.agent = agent
  }

  /** What the server responds to the proxy about a request of this browser. */
  ask({ method = 'GET', uri = '/', headers = page, query = '' }: Asked = {}): Promise<Response> {
    return this.#send(`/forward-auth${query}`, {
      'x-forwarded-method': method,
      'x-forwarded-uri': uri,
      ...headers,
    })
  }

  /** A request below `/.lychgate/`, which the proxy routes to the server. */
  async route(url: string | URL): Promise<Response> {
    const { pathname, search } = new URL(url, `https://${this.#host}`)
    const response = await this.#send(pathname + search, page)
    keepCookies(this.cookies, response.headers.getSetCookie())
    return response
  }

  /** Opens a page, and signs in on the way. @returns Where the browser is sent to in the end. */
  async signIn(uri = '/', user = alice): Promise<string> {
    return (await this.route(await this.reach(uri, user))).headers.get('location') ?? ''
  }

  /** The same, until the callback. */
  async reach(uri = '/', user = alice): Promise<URL> {
    const asked = await this.ask({ uri })
    const begun = await this.route(asked.headers.get('location') ?? '')
    const landing = await this.agent.open(begun.headers.get('location') ?? '')
    return signInAndApprove(this.agent, landing, { user })
  }

  /** `fetch` has a mode of its own, which a proxy would pass on. */
  #send(path: string, headers: Readonly<Record<string, string>>): Promise<Response> {
    const cookie = [...this.cookies].map((pair) => pair.join('=')).join('; ')
    return new Promise((resolve, reject) => {
      const sent = { 'x-forwarded-host': this.#host, ...(cookie && { cookie }), ...headers }
      get(this.#server.origin + path, { headers: sent }, (response) => {
        const pairs = Object.entries(response.headersDistinct).flatMap(([name, values = []]) =>
          values.map((value): [string, string] => [name, value]),
        )
        text(response).then(
          (body) => resolve(new Response(body, { status: response.statusCode ?? 0, headers: pairs })),
          reject,
        )
      }).on('error', reject)
    })
  }
}
