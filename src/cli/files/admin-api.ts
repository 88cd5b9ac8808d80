import { randomUUID } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import * as oauth from 'oauth4webapi'
import { isObject } from '../../domain/is-object.ts'
import { parseScope } from '../../domain/scope.ts'
import { adminApiRoot } from '../../http/admin-listener.ts'
import { CommandFailed, TryAgain } from '../failure.ts'
import type { Wanted } from './read.ts'

type Json = Readonly<Record<string, unknown>>

/** A response that has what was asked for. */
export interface HttpResponse {
  readonly body: Json
  readonly etag: string
}

/** The admin API of a running server. */
export interface AdminApi {
  readonly callerId?: string | undefined
  /** Reads what a path names; undefined if it is not there. */
  find(path: string, what: string): Promise<Json | undefined>
  /** Sends one request. @param what What it is about, in front of messages; empty: nothing. */
  send(method: string, path: string, what: string, sent?: Sent): Promise<HttpResponse>
}

interface Sent {
  readonly body?: object
  readonly ifMatch?: string
  /** Nothing being there (404) is a response like another one, without members. */
  readonly mayBeAbsent?: true
  /** Where a change comes from, for the audit log of the server. */
  readonly file?: string | undefined
}

/** How the admin API is called: with a token, or by a client with a secret or a private key. */
export type Credentials =
  | { readonly token: string }
  | { readonly clientId: string; readonly secret: string }
  | { readonly clientId: string; readonly key: oauth.PrivateKey }

/** Which server is called. */
export interface Server {
  /** The issuer. */
  readonly issuer: string
  /** Where the admin API is, if not at the issuer. */
  readonly api?: string | undefined
}

/** What is done with users, groups, clients and upstreams: which scopes it needs follows from that. */
export interface Use {
  /** Absent: everything is read. */
  readonly wanted?: Wanted
  readonly writes?: boolean
}

/** Nothing of the admin API is imported: it is another server's, and may be absent in this build. */
const isOfAdminApi = (scope: string) => scope.startsWith('admin:')

/** Returns the scopes that a use needs, and no other. */
export function scopesFor({ wanted: entries, writes = false }: Use): readonly string[] {
  const hasClients = entries === undefined || entries.clients !== undefined
  const withSecrets = (entries?.clients ?? []).filter(
    ({ entry }) => (entry.secret ?? entry.secretFile ?? entry.newSecretFile) !== undefined,
  )
  const hasUpstreams = entries === undefined || entries.upstreams !== undefined
  const comparesUpstreams = (entries?.upstreams ?? []).some(
    ({ entry }) => (entry.secret ?? entry.secretFile) !== undefined,
  )
  const changesUsers = writes && (entries?.users ?? entries?.groups) !== undefined
  const scopes: readonly string[] = [
    'admin:users:read',
    ...(changesUsers ? ['admin:users:write'] : []),
    ...(hasClients ? ['admin:clients:read'] : []),
    // Comparing a secret needs it, too, and whatever the client with the secret may do here.
    ...(hasClients && (writes || withSecrets.length > 0) ? ['admin:clients:write'] : []),
    ...(hasUpstreams ? ['admin:upstreams:read'] : []),
    ...(hasUpstreams && (writes || comparesUpstreams) ? ['admin:upstreams:write'] : []),
    ...withSecrets.flatMap(({ entry }) => parseScope(String(entry['scope'] ?? '')).filter(isOfAdminApi)),
  ]
  return [...new Set(scopes)]
}

/** Gets an access token, and returns the admin API of the server. */
export async function connectAdminApi(
  { issuer, api = issuer }: Server,
  credentials: Credentials,
  scopes: readonly string[],
): Promise<AdminApi> {
  const server = requireSafe(issuer, '--server').href
  const { href } = requireSafe(api, '--api')
  const root = href.replace(/\/$/, '') + adminApiRoot
  const obtain = () => obtainToken(server, credentials, scopes)
  let token = await obtain()

  async function send(
    method: string,
    path: string,
    what: string,
    { body, ifMatch, file, mayBeAbsent }: Sent = {},
  ) {
    const key = method === 'POST' ? randomUUID() : undefined
    for (let attempt = 1; ; attempt += 1) {
      const response = await fetch(root + path, {
        method,
        redirect: 'error',
        headers: {
          authorization: `Bearer ${token}`,
          ...(body && { 'content-type': 'application/json' }),
          ...(key && { 'idempotency-key': key }),
          ...(ifMatch && { 'if-match': ifMatch }),
          ...(file && { 'audit-file': encodeURIComponent(file) }),
        },
        ...(body && { body: JSON.stringify(body) }),
      }).catch((cause: unknown) => unreachable(href, cause))
      const mayRepeat = attempt < attempts
      const { status, headers } = response
      if ((status === 429 || status === 503) && mayRepeat) {
        await setTimeout(waitOf(headers) * 1000)
        continue
      }
      const challenge = headers.get('www-authenticate') ?? ''
      if (
        status === 401 &&
        challenge.includes('error="invalid_token"') &&
        mayRepeat &&
        'clientId' in credentials
      ) {
        token = await obtain()
        continue
      }
      const members = await bodyOf(response)
      if (response.ok) return { body: members, etag: headers.get('etag') ?? '' }
      if (status === 404 && mayBeAbsent) return { body: {}, etag: '' }
      const isList = /[?&]limit=/.test(path)
      const line = what === '' ? said(members, status) : `${what}: ${said(members, status)}`
      throw failureOf(status, challenge, line, { isList, code: String(members['error'] ?? '') })
    }
  }

  return {
    callerId: 'clientId' in credentials ? credentials.clientId : undefined,
    send,
    async find(path, what) {
      const { body } = await send('GET', path, what, { mayBeAbsent: true })
      return Object.keys(body).length === 0 ? undefined : body
    },
  }
}

const attempts = 10
const longestWait = 120

function waitOf(headers: Headers): number {
  const seconds = Number(headers.get('retry-after') ?? 1)
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0), longestWait) : 1
}

async function bodyOf(response: Response): Promise<Json> {
  const text = await response.text()
  try {
    const body: unknown = JSON.parse(text)
    return isObject(body) ? body : {}
  } catch {
    return {}
  }
}

function said({ error_description: description, error }: Json, status: number): string {
  return String(description ?? error ?? `the server responded with ${status}`)
}

function failureOf(
  status: number,
  challenge: string,
  line: string,
  { isList, code }: { readonly isList: boolean; readonly code: string },
): CommandFailed {
  if (challenge.includes('insufficient_user_authentication'))
    return new CommandFailed(`${line}; get a token after a sign-in with two factors`)
  if (status === 404 && isList)
    return new CommandFailed(`${line}; is admin.api on, and at this place (--api)?`)
  const isPassing = [404, 412, 429, 502, 503, 504].includes(status)
  return isPassing
    ? new TryAgain(`${line}; run the command again`, { code })
    : new CommandFailed(line, { code })
}

function unreachable(server: string, error: unknown): never {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const reason = cause instanceof Error ? ('code' in cause ? String(cause.code) : cause.message) : cause
  throw new TryAgain(`${server} does not respond (${reason})`)
}

/**
 * Finds the authorization server by the metadata of the API (RFC 9728, RFC 8414), and gets a token for the API
 * (RFC 6749 §4.4, RFC 8707).
 * @throws {CommandFailed}
 */
async function obtainToken(
  server: string,
  credentials: Credentials,
  scopes: readonly string[],
): Promise<string> {
  if ('token' in credentials) return credentials.token
  const { clientId } = credentials
  try {
    const api = requireSafe(server, '--server')
    const discovery = await oauth.resourceDiscoveryRequest(api, optionsFor(api))
    const { resource, authorization_servers: issuers = [] } = await oauth.processResourceDiscoveryResponse(
      api,
      discovery,
    )
    const issuer = requireSafe(issuers[0] ?? '', 'the authorization server of the admin API')
    const metadata = await oauth.discoveryRequest(issuer, { ...optionsFor(issuer), algorithm: 'oauth2' })
    const as = await oauth.processDiscoveryResponse(issuer, metadata)
    const endpoint = requireSafe(as.token_endpoint ?? '', 'the token endpoint')
    const client = { client_id: clientId }
    const response = await oauth.clientCredentialsGrantRequest(
      as,
      client,
      'key' in credentials
        ? oauth.PrivateKeyJwt(credentials.key)
        : oauth.ClientSecretBasic(credentials.secret),
      { resource, scope: scopes.join(' ') },
      optionsFor(endpoint),
    )
    const tokens = await oauth.processClientCredentialsResponse(as, client, response)
    return tokens.access_token
  } catch (error) {
    if (error instanceof CommandFailed) throw error
    if (error instanceof oauth.WWWAuthenticateChallengeError)
      throw new CommandFailed(`${clientId}: the server does not know this client, or it has another secret`)
    if (error instanceof oauth.ResponseBodyError)
      throw new CommandFailed(`${clientId}: ${error.error_description ?? error.error}`, { code: error.error })
    if (error instanceof TypeError) return unreachable(server, error)
    throw new CommandFailed(`${server}: ${error instanceof Error ? error.message : error}`)
  }
}

/** Only this computer is called without TLS. */
function optionsFor({ protocol }: URL) {
  return { [oauth.allowInsecureRequests]: protocol === 'http:' }
}

/** @throws {CommandFailed} for what a credential must not be sent to in the clear. */
function requireSafe(text: string, what: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isLoopback = url?.protocol === 'http:' && /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname)
  if (url === undefined || (url.protocol !== 'https:' && !isLoopback))
    throw new CommandFailed(`${what} must be an https URL, or one of this computer`)
  return url
}
