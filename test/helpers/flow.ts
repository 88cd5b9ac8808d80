import { createHash, randomBytes } from 'node:crypto'
import { alice } from './server.ts'
import { type Landing, type Page, UserAgent } from './user-agent.ts'

/** What a client knows about a server. */
export interface Issuer {
  readonly issuer: string
}

/** What a test knows about a client. */
export interface TestClient {
  readonly id: string
  readonly secret?: string
  /** Its authentication method at the token endpoint. */
  readonly method: string
  readonly redirectUri: string
}

export interface Tokens {
  readonly access_token: string
  readonly token_type: string
  readonly expires_in: number
  readonly refresh_token: string
  readonly scope: string
  readonly id_token: string
}

export type Fields = Readonly<Record<string, string | readonly string[] | undefined>>

export const redirectUri = 'http://127.0.0.1:51004/callback'

/** A PKCE pair, RFC 7636 §4.1 and §4.2. */
export function pkce(verifier = randomBytes(32).toString('base64url')) {
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') }
}

/** Registers a client over HTTP; a public loopback one unless the metadata says otherwise. */
export async function register(server: Issuer, metadata: Record<string, unknown> = {}): Promise<TestClient> {
  const response = await fetch(`${server.issuer}/api/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'Test client', redirect_uris: [redirectUri], ...metadata }),
  })
  const body = (await response.json()) as Record<string, string>
  if (response.status !== 201)
    throw new Error(`registration responded ${response.status} ${JSON.stringify(body)}`, { cause: response })
  const { client_id: id = '', client_secret: secret, token_endpoint_auth_method: method = '' } = body
  const [first = redirectUri] = (metadata['redirect_uris'] as string[] | undefined) ?? []
  return { id, method, redirectUri: first, ...(secret !== undefined && { secret }) }
}

/** The URL of an authorization request; a value of undefined omits the parameter. */
export function authorizationUrl(server: Issuer, client: TestClient, fields: Fields = {}): string {
  const query = form({
    response_type: 'code',
    client_id: client.id,
    redirect_uri: client.redirectUri,
    scope: 'openid',
    state: 'a-state',
    code_challenge: pkce('v'.repeat(43)).challenge,
    code_challenge_method: 'S256',
    ...fields,
  })
  return `${server.issuer}/oauth/authorize?${query}`
}

/** An authorization request sent by a fresh browser without following redirects. */
export function authorize(
  server: Issuer,
  client: TestClient,
  fields: Fields = {},
  agent = new UserAgent(server.issuer),
) {
  return agent.send(authorizationUrl(server, client, fields))
}

/** The query parameters of a redirect, as one object. */
export function responseOf(response: Response): Record<string, string> {
  const location = response.headers.get('location')
  if (location === null) throw new Error(`no redirect: ${response.status}`)
  return Object.fromEntries(new URL(location).searchParams)
}

/** Signs in and approves on every page, until the browser is redirected away. */
export async function signInAndApprove(
  agent: UserAgent,
  landing: Landing,
  { user = alice, scope }: { readonly user?: typeof alice; readonly scope?: readonly string[] } = {},
): Promise<URL> {
  let now = landing
  for (let step = 0; step < 6; step += 1) {
    if (now.at === 'redirect') return now.location
    now = await responsePage(agent, now.page, user, scope)
  }
  throw new Error(`stuck at ${now.at === 'page' ? now.page.url : now.location}`)
}

function responsePage(
  agent: UserAgent,
  page: Page,
  user: typeof alice,
  scope: readonly string[] | undefined,
) {
  const fields = page.forms[0]?.fields.map(({ name }) => name) ?? []
  if (fields.includes('password')) return agent.submit(page, user)
  const buttons = page.forms[0]?.buttons ?? []
  const decisions = buttons.map(({ value }) => value)
  const [first] = buttons.filter(({ name }) => name === 'account')
  if (first !== undefined) return agent.submit(page, { account: first.value })
  if (!decisions.includes('approve'))
    throw new Error(`unexpected page ${page.status}: ${page.html}`, { cause: page })
  return agent.submit(page, { decision: 'approve', ...(scope && { scope }) })
}

export interface CodeOptions {
  readonly fields?: Fields
  readonly agent?: UserAgent
  readonly user?: typeof alice
  /** The scopes that stay ticked on the consent page; all by default. */
  readonly scope?: readonly string[]
}

/** The code of a whole authorization with sign-in and consent. The verifier is 43 times `v` unless fields say otherwise. */
export async function obtainCode(
  server: Issuer,
  client: TestClient,
  options: CodeOptions = {},
): Promise<string> {
  const agent = options.agent ?? new UserAgent(server.issuer)
  const landing = await agent.open(authorizationUrl(server, client, options.fields))
  const location = await signInAndApprove(agent, landing, options)
  const code = location.searchParams.get('code')
  if (code === null) throw new Error(`no code: ${location}`, { cause: location })
  return code
}

/** A POST of form fields to an endpoint below the issuer. */
export function post(server: Issuer, path: string, fields: Fields, headers: Record<string, string> = {}) {
  return fetch(server.issuer + path, { method: 'POST', body: form(fields), headers, redirect: 'manual' })
}

/** The same as this client: with its secret, by its method. */
export function postAs(server: Issuer, client: TestClient, path: string, fields: Fields) {
  const { id, secret = '', method } = client
  if (method === 'client_secret_basic') {
    const authorization = `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}`
    return post(server, path, fields, { authorization })
  }
  return post(server, path, {
    client_id: id,
    ...(client.secret !== undefined && { client_secret: secret }),
    ...fields,
  })
}

/** The response of the token endpoint to a code; fields override or (undefined) omit. */
export function exchange(
  server: Issuer,
  client: TestClient,
  code: string,
  fields: Fields = {},
): Promise<Response> {
  const own = {
    grant_type: 'authorization_code',
    code,
    redirect_uri: client.redirectUri,
    code_verifier: 'v'.repeat(43),
  }
  return postAs(server, client, '/api/oauth/token', { ...own, ...fields })
}

export function refresh(
  server: Issuer,
  client: TestClient,
  token: string,
  fields: Fields = {},
): Promise<Response> {
  return postAs(server, client, '/api/oauth/token', {
    grant_type: 'refresh_token',
    refresh_token: token,
    ...fields,
  })
}

/** Tokens of a whole flow. */
export async function obtainTokens(
  server: Issuer,
  client: TestClient,
  options: CodeOptions = {},
): Promise<Tokens> {
  const response = await exchange(server, client, await obtainCode(server, client, options))
  if (response.status !== 200)
    throw new Error(`no tokens: ${response.status} ${await response.text()}`, { cause: response })
  return (await response.json()) as Tokens
}

/** A call with a bearer token, to a path below the issuer. */
export function callApi(
  server: Issuer,
  path: string,
  token?: string,
  init: RequestInit = {},
): Promise<Response> {
  const headers = new Headers(init.headers)
  if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
  return fetch(server.issuer + path, { ...init, headers })
}

/** The claims of a JWS, unverified. */
export function claimsOf(jws: string): Record<string, unknown> {
  return JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString())
}

export function form(fields: Fields): URLSearchParams {
  const body = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) {
    for (const each of value === undefined ? [] : [value].flat()) body.append(name, each)
  }
  return body
}
