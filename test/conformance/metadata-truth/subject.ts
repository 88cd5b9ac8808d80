import type { Test } from 'tap'
import { integrate } from '../../helpers/authorization.ts'
import {
  authorizationUrl,
  type Fields,
  type Issuer,
  postAs,
  redirectUri,
  signInAndApprove,
  type TestClient,
  type Tokens,
} from '../../helpers/flow.ts'
import { type ServerOptions, startServer, type TestServer } from '../../helpers/server.ts'
import { UserAgent } from '../../helpers/user-agent.ts'
import { type Json, json } from '../../helpers/wire.ts'

/** A server that is known only by one metadata document: every URL is from there. */
export interface Subject {
  readonly server: TestServer
  readonly document: Json
  /** Alice is signed in. */
  readonly agent: UserAgent
  /** Registered here, so consent is asked every time. */
  readonly client: TestClient
  /** Added by an operator, so consent is never asked. */
  readonly firstParty: TestClient
}

/** A running server and clients that read this document. */
export async function openSubject(t: Test, url: (issuer: string) => string, options: ServerOptions) {
  const server = await startServer(t, options)
  const response = await fetch(url(server.issuer))
  if (response.status !== 200) throw new Error(`${response.url} answered ${response.status}`)
  const known = { server, document: await json(response), agent: new UserAgent(server.issuer) }
  const subject: Subject = {
    ...known,
    client: await newClient(known),
    firstParty: await integrate(server, { consent: 'skip' }),
  }
  await codeOf(subject, subject.client)
  return subject
}

type Known = Pick<Subject, 'server' | 'document' | 'agent'>

const anywhere: Issuer = { issuer: '' }

/** The URL in the document for this. */
export function addressOf({ document }: Pick<Subject, 'document'>, name: string): string {
  const url = document[name]
  if (typeof url === 'string' && URL.canParse(url)) return url
  throw new Error(`the document has no ${name}`)
}

export function registerAt(known: Known, metadata: Json): Promise<Response> {
  return fetch(addressOf(known, 'registration_endpoint'), {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ redirect_uris: [redirectUri], ...metadata }),
  })
}

/** A client that registered with this metadata. */
export async function newClient(known: Known, metadata: Json = {}): Promise<TestClient> {
  const response = await registerAt(known, metadata)
  const body = (await response.json()) as Record<string, string>
  const { client_id: id, client_secret: secret, token_endpoint_auth_method: method } = body
  if (id === undefined || method === undefined) throw new Error(`no client: ${JSON.stringify(body)}`)
  return { id, method, redirectUri, ...(secret !== undefined && { secret }) }
}

export function requestUrl(known: Known, client: TestClient, fields: Fields = {}): string {
  const { search } = new URL(authorizationUrl(known.server, client, fields))
  return addressOf(known, 'authorization_endpoint') + search
}

/** The response of the authorization endpoint itself. */
export function askAt(known: Known, client: TestClient, fields: Fields = {}, agent = known.agent) {
  return agent.send(requestUrl(known, client, fields))
}

/** The error parameters for the client; empty if the user gets a page. */
export function errorOf(response: Response): Record<string, string> {
  const location = response.headers.get('location') ?? ''
  return location.startsWith(redirectUri) ? Object.fromEntries(new URL(location).searchParams) : {}
}

/** The parameters of the response after sign-in and consent. */
export async function approveAt(known: Known, client: TestClient, fields: Fields = {}): Promise<Json> {
  const landing = await known.agent.open(requestUrl(known, client, fields))
  return Object.fromEntries((await signInAndApprove(known.agent, landing)).searchParams)
}

export async function codeOf(known: Known, client: TestClient, fields: Fields = {}): Promise<string> {
  const { code, error } = await approveAt(known, client, fields)
  if (typeof code !== 'string') throw new Error(`no code: ${error}`)
  return code
}

/** A form from this client, with its credentials. */
export function send(known: Known, endpoint: string, client: TestClient, fields: Fields): Promise<Response> {
  return postAs(anywhere, client, addressOf(known, endpoint), fields)
}

export function redeemAt(known: Known, client: TestClient, code: string, fields: Fields = {}) {
  return send(known, 'token_endpoint', client, {
    grant_type: 'authorization_code',
    code,
    redirect_uri: client.redirectUri,
    code_verifier: 'v'.repeat(43),
    ...fields,
  })
}

export async function tokensOf(known: Known, client: TestClient, fields: Fields = {}): Promise<Tokens> {
  const response = await redeemAt(known, client, await codeOf(known, client, fields))
  if (response.status === 200) return (await response.json()) as Tokens
  throw new Error(`no tokens: ${await response.text()}`)
}

export async function introspectAt(known: Known, client: TestClient, token: string): Promise<Json> {
  return json(await send(known, 'introspection_endpoint', client, { token }))
}

export function userInfoAt(known: Known, token: string, init: RequestInit = {}): Promise<Response> {
  return fetch(addressOf(known, 'userinfo_endpoint'), {
    ...init,
    headers: { authorization: `Bearer ${token}` },
  })
}
