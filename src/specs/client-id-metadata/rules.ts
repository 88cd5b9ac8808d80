import { type ClientDeclarations, type JsonObject, openToAll } from '../../clients/members.ts'
import { readMembers } from '../../clients/read-members.ts'
import { check } from '../../domain/check.ts'
import { OAuthError } from '../../domain/errors.ts'
import { isObject } from '../../domain/is-object.ts'
import {
  type Client,
  defaultGrantTypes,
  type PublishedClient,
  type Scope,
  type Seconds,
  type SigningAlgorithm,
} from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import {
  hasResponseParameter,
  isHttpsRedirect,
  isLoopbackRedirect,
  privateUseScheme,
} from '../../domain/redirect-uri.ts'
import { isScope, narrowScope, parseScope } from '../../domain/scope.ts'
import { hashSecret } from '../../domain/secret.ts'

/** Which documents are accepted. */
export interface DocumentPolicy {
  readonly mode: 'off' | 'allow-list' | 'any'
  /** Hosts, or whole URLs. */
  readonly allowed: readonly string[]
  /** Hosts whose documents were once accepted by default: clients of them that users approved stay accepted. */
  readonly formerHosts: readonly string[]
  /** Accepts http on loopback. */
  readonly isDevelopment: boolean
  readonly scopes: Scope
  readonly algorithms: readonly SigningAlgorithm[]
  /** The size of what is stored of a document, `limits.clientMetadataBytes`. */
  readonly metadataBytes: number
  readonly declared: ClientDeclarations
}

export const longestDocument = 5120
const longestUrl = 2048

/** Whether a client_id names a document; whether the URL can be used is decided by `assertClientIdUrl`. */
export function isDocumentUrl(clientId: string): boolean {
  return /^https?:/i.test(clientId)
}

const authority = String.raw`(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::[1-9]\d{0,4})?`
const loopback = String.raw`(?:127\.0\.0\.1|\[::1\]|localhost)(?::[1-9]\d{0,4})?`
const path = String.raw`/(?:[\w.~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*`
const query = String.raw`(?:\?(?:[\w.~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?`
const httpsUrl = new RegExp(`^https://${authority}${path}${query}$`)
const loopbackUrl = new RegExp(`^http://${loopback}${path}${query}$`)
/** A segment of one or two dots, also encoded: URL parsers remove it. */
const dotSegment = /\/(?:\.|%2e){1,2}(?=[/?]|$)/i

/**
 * Checks a client_id that is a URL (§3): https with a path, and without fragment, credentials and dot segments. The
 * text decides, because a URL parser repairs it. Nothing has been fetched then.
 * @throws {OAuthError} `invalid_client`
 */
export function assertClientIdUrl(clientId: string, { isDevelopment }: DocumentPolicy): void {
  const isWellFormed =
    clientId.length <= longestUrl &&
    (httpsUrl.test(clientId) || (isDevelopment && loopbackUrl.test(clientId))) &&
    !dotSegment.test(clientId.replace(/\?.*/, '')) &&
    URL.canParse(clientId)
  check(
    isWellFormed,
    'cimd-3-client-id-url',
    'invalid_client',
    'client_id must be an https URL with a path, without fragment, credentials and dot segments',
    { status: 400, received: clientId.slice(0, 100), passed: 'client_id is a well-formed https URL' },
  )
}

/** What a document says about its client. */
export type PublishedMetadata = Omit<Client, 'id' | 'issuedAt' | 'usedAt' | 'lockedAt' | 'published'> & {
  readonly published: PublishedClient
}

/**
 * Reads a document, §4.1. A member that this server does not understand is ignored, and so is a grant type or a
 * redirect URI of a kind that it does not support: a document is written for many servers.
 * @throws {OAuthError} `invalid_client`
 */
export function readDocument(json: unknown, clientId: string, policy: DocumentPolicy): PublishedMetadata {
  check(
    isObject(json),
    'cimd-4.1-json-document',
    'invalid_client',
    'the client metadata document is not a JSON object with each member once',
    { status: 400, passed: 'the document is a JSON object' },
  )
  check(
    json['client_id'] === clientId,
    'cimd-4.1-client-id-equals-url',
    'invalid_client',
    'client_id in the client metadata document is not the URL of the document',
    {
      status: 400,
      stored: textOf(json['client_id']),
      received: clientId,
      passed: 'client_id in the document is its URL',
    },
  )
  assertNoSecret(json)
  try {
    const metadata = metadataOf(json, clientId, policy)
    assertSize(metadata, policy)
    return metadata
  } catch (error) {
    if (!(error instanceof OAuthError) || error.code === 'invalid_client') throw error
    throw unusable(error.message, error)
  }
}

function assertSize(metadata: PublishedMetadata, { metadataBytes }: DocumentPolicy): void {
  const bytes = Buffer.byteLength(JSON.stringify(metadata))
  if (bytes <= metadataBytes) return
  throw new OAuthError(
    'invalid_client',
    `the client metadata document takes more than ${metadataBytes} bytes (limits.clientMetadataBytes)`,
    { rule: 'lychgate-limits-client-metadata-bytes', status: 400, stored: metadataBytes, received: bytes },
  )
}

/** Rejects what only a client with a shared secret has, §4.1: a public document cannot contain one. */
function assertNoSecret(json: JsonObject): void {
  const secret = Object.keys(json).find((name) => /^client_secret/i.test(name))
  check(
    secret === undefined,
    'cimd-4.1-no-shared-secrets',
    'invalid_client',
    `${secret} must not be in a client metadata document`,
    { status: 400, passed: 'the document has no client secret' },
  )
}

function metadataOf(json: JsonObject, clientId: string, policy: DocumentPolicy): PublishedMetadata {
  const { declared } = policy
  const { host, hostname } = new URL(clientId)
  const isRedirect = redirectOf(hostname)
  const redirectUris = readRedirectUris(json, isRedirect)
  const authenticationMethod = readMethod(json, policy)
  const published = Object.fromEntries(
    Object.entries(declared.clientMetadata).filter(([name]) => keyMembers.includes(name)),
  )
  const members = readMembers(
    { ...json, require_auth_time: json['require_auth_time'] === true },
    { clientMetadata: { ...openToAll(declared.clientMetadata), ...published } },
    policy.algorithms,
  )
  const { extra } = members
  declared.clientAuthentication[authenticationMethod]?.assertRegistered?.(extra ?? {})
  const keys = keyMembers.map((name) => extra?.[name])
  return {
    ...members,
    origin: 'registered',
    // It decides about loopback redirects alone: any port of them matches, RFC 8252 §7.3.
    applicationType: redirectUris.some((uri) => isLoopback(uri)) ? 'native' : 'web',
    redirectUris,
    postLogoutRedirectUris: textsOf(json['post_logout_redirect_uris']).filter(isRedirect),
    authenticationMethod,
    grantTypes: readGrantTypes(json, policy),
    pkceOptional: false,
    consent: 'remember',
    introspects: [],
    published: {
      host,
      terms: hashSecret(JSON.stringify([redirectUris, authenticationMethod, ...keys])),
    },
    ...omitUndefined({ scope: readScope(json, policy.scopes) }),
  }
}

/** What a client may publish about its keys, though clients that register themselves have none. */
const keyMembers: readonly string[] = ['jwks', 'jwks_uri', 'token_endpoint_auth_signing_alg']

function readRedirectUris(json: JsonObject, isRedirect: (uri: string) => boolean): readonly string[] {
  const usable = textsOf(json['redirect_uris']).filter(isRedirect)
  if (usable.length > 0) return [...new Set(usable)]
  throw unusable('redirect_uris has no https URI and no loopback URI')
}

/** Of the schemes of apps a document has the name of its own host, in reverse order (RFC 8252 §7.1). */
function redirectOf(hostname: string): (uri: string) => boolean {
  const own = hostname.split('.').reverse().join('.')
  const isOwn = (uri: string) => own.includes('.') && privateUseScheme(uri) === own
  return (uri) => (isHttpsRedirect(uri) || isLoopback(uri) || isOwn(uri)) && !hasResponseParameter(uri)
}

function isLoopback(uri: string): boolean {
  return isLoopbackRedirect(uri, ['localhost'])
}

/**
 * §4.1: no method with a shared secret. A document is written for many servers: if this one does not support the method
 * it prefers, the first that it also offers counts (OpenID Connect Relying Party Metadata Choices 1.0). A method that
 * proves a key comes before `none`, whatever is preferred: a client that publishes a key must not be believed without
 * it (SEP-3149 of MCP, as proposed in August 2026). ChatGPT prefers `private_key_jwt` and offers `none`, too.
 */
function readMethod(json: JsonObject, { declared }: DocumentPolicy): string {
  const others = Object.entries(declared.clientAuthentication).filter(([, { usesSecret }]) => !usesSecret)
  const methods = [...new Set(['none', ...others.map(([method]) => method)])]
  const preferred = json['token_endpoint_auth_method']
  const offered = textsOf(json['token_endpoint_auth_methods_supported'])
  const isSecret = typeof preferred === 'string' && preferred.startsWith('client_secret')
  const candidates = [preferred ?? offered[0] ?? 'none', ...(isSecret ? [] : offered)]
  const usable = candidates.flatMap((one) => methods.find((known) => known === one) ?? [])
  const hasKey = json['jwks'] !== undefined || json['jwks_uri'] !== undefined
  const method = (hasKey ? usable.find((name) => name !== 'none') : undefined) ?? usable[0]
  check(
    method !== undefined,
    'cimd-4.1-no-shared-secrets',
    'invalid_client',
    `token_endpoint_auth_method in the client metadata document must be ${methods.join(' or ')}`,
    {
      status: 400,
      received: textsOf(candidates).map((one) => one.slice(0, 200)),
      passed: 'the authentication method needs no shared secret',
    },
  )
  return method
}

function readGrantTypes(json: JsonObject, { declared }: DocumentPolicy): readonly string[] {
  const open = Object.keys(openToAll(declared.grantTypes))
  const wanted = json['grant_types'] === undefined ? defaultGrantTypes : textsOf(json['grant_types'])
  return open.filter((name) => wanted.includes(name))
}

/** Reads the limit of what the client may request: what this server does not know is left out. */
function readScope(json: JsonObject, catalogue: Scope): Scope | undefined {
  const text = json['scope'] ?? ''
  if (typeof text !== 'string' || !isScope(text)) throw unusable('scope is not a list of scope names')
  const wanted = parseScope(text)
  return wanted.length === 0 ? undefined : narrowScope(wanted, catalogue)
}

/** Returns the client of a document: the one of before keeps what the document does not say. */
export function clientOf(
  metadata: PublishedMetadata,
  id: string,
  before: Client | undefined,
  now: Seconds,
): Client {
  const { issuedAt = now, usedAt = now, lockedAt } = before ?? {}
  return { ...metadata, id, issuedAt, usedAt, ...omitUndefined({ lockedAt }) }
}

/** The error of a document that cannot be used. */
export function unusable(why: string, cause?: OAuthError): OAuthError {
  return new OAuthError('invalid_client', `the client metadata document cannot be used: ${why}`, {
    ...(cause?.detail ?? {}),
    rule: cause?.detail.rule ?? 'cimd-4.1-json-document',
    status: 400,
  })
}

function textsOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value.slice(0, 200) : undefined
}
