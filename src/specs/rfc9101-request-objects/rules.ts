import { isTextList, type JsonObject, readUri, rejection } from '../../clients/members.ts'
import { check } from '../../domain/check.ts'
import { OAuthError } from '../../domain/errors.ts'
import { foreignMember, isInstant, type Jws, parseJws, type SignatureRules, shown } from '../../domain/jws.ts'
import type { AuthorizationRequest, Client, Seconds } from '../../domain/model.ts'
import { type ParameterLimits, type Parameters, single } from '../../domain/parameters.ts'
import { isLoopbackUri } from '../../domain/redirect-uri.ts'
import { isDeeperThan } from '../../domain/strict-json.ts'

/** The rules of the signature, RFC 9101 §6.2. */
export const signatureRules: SignatureRules = {
  code: 'invalid_request_object',
  signature: 'rfc9101-6.2-signature',
  algorithm: 'rfc9101-6.2-signature',
}

/** The name under which an authorization request stores that it was signed. */
const extraName = 'requestObject'
/** What an authorization request stores about its request object. */
export const signedExtra: NonNullable<AuthorizationRequest['extra']> = { [extraName]: true }

/** The references of RFC 9126, which are no request objects. */
const pushedPrefix = 'urn:ietf:params:oauth:request_uri:'
/** By how much the clock of a client may differ from that of this server. */
const skewSeconds = 10
/** How far ahead `exp` may be, and how long ago `nbf`. */
const mostSeconds = 3600
const mostUris = 20
/** RFC 7519 §4.1: about the JWT, not about the request. */
const registeredClaims = ['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti']

/** How a request object is sent. */
export type Sent = { readonly value: string } | { readonly uri: string }

/** Returns whether an authorization request has a request object, RFC 9101 §5; a pushed request is none. */
export function hasRequestObject({ request, request_uri: uri }: Parameters): boolean {
  return request !== undefined || (uri !== undefined && !String(uri).startsWith(pushedPrefix))
}

/**
 * Reads how the request object is sent, RFC 9101 §5: by one of the two parameters. A reference must be registered.
 * @throws {OAuthError} `invalid_request`, `invalid_request_uri`
 */
export function readSent(parameters: Parameters, { extra }: Client): Sent {
  const [value, uri] = [single(parameters, 'request'), single(parameters, 'request_uri')]
  check(
    value === undefined || uri === undefined,
    'rfc9101-5-not-both',
    'invalid_request',
    'request and request_uri exclude each other',
    { passed: 'the request is sent by value or by reference' },
  )
  if (uri === undefined) return { value: value ?? '' }
  // `as`: readRequestUris alone writes this member.
  const registered = (extra?.['request_uris'] ?? []) as readonly string[]
  check(
    registered.includes(uri),
    'rfc9101-10.4-ssrf-dos',
    'invalid_request_uri',
    'request_uri is not registered for this client (lychgate client set --request-uris)',
    { stored: registered, received: uri, passed: 'request_uri is registered' },
  )
  return { uri }
}

/** Returns the error of a request object that cannot be fetched, RFC 9101 §5.2.3. */
export function notFetched(uri: string, cause: unknown): OAuthError {
  const detail = { rule: 'rfc9101-5.2.3-fetch', stored: uri, received: String(cause), cause }
  return new OAuthError('invalid_request_uri', 'the request object at request_uri cannot be fetched', detail)
}

/**
 * Parses a request object, RFC 9101 §4: signed, and not encrypted.
 * @throws {OAuthError} `invalid_request_object`
 */
export function parseRequestObject(text: string): Jws {
  must(
    !/^[\w-]+(\.[\w-]*){4}$/.test(text),
    'rfc9101-6.1-decryption',
    'the request object is encrypted, which is not supported; sign it only',
    undefined,
  )
  must(
    !/^[\w-]+\.[\w-]+\.$/.test(text),
    'rfc9101-10.5-require-signed',
    'the request object is not signed',
    undefined,
  )
  const object = parseJws(text)
  const description = 'the request object is not one signed JWT without repeated members'
  if (object === undefined)
    throw new OAuthError('invalid_request_object', description, { rule: 'rfc9101-4-signed-jwt' })
  return object
}

/**
 * Checks the header and the claims of a request object, RFC 9101 §4, §6.3 and §10.8.
 * @throws {OAuthError} `invalid_request_object`
 */
export function assertRequestObject(
  { header, claims }: Jws,
  client: Client,
  issuer: string,
  now: Seconds,
): void {
  const { typ } = header
  const { iss, sub, aud, client_id: clientId } = claims
  const foreign = foreignMember(header)
  must(
    foreign === undefined,
    'rfc9101-4-signed-jwt',
    'the header of the request object has a member that is not accepted',
    foreign,
  )
  must(
    typ === undefined || /^(application\/)?(jwt|oauth-authz-req\+jwt)$/i.test(String(typ)),
    'rfc9101-10.8-explicit-type',
    'typ is that of another kind of JWT; use oauth-authz-req+jwt',
    typ,
  )
  const nested = ['request', 'request_uri'].find((name) => name in claims)
  must(
    nested === undefined,
    'rfc9101-10.3-nested-forbidden',
    'a request object must not have request or request_uri',
    nested,
  )
  must(
    clientId === client.id,
    'rfc9101-5-client-id-in-query',
    'client_id of the request object is missing, or not the client_id of the request',
    clientId,
    client.id,
  )
  must(
    iss === undefined || iss === client.id,
    'rfc9101-4-iss-aud',
    'iss of the request object is not the client_id',
    iss,
    client.id,
  )
  // RFC 9101 §10.8: an assertion of the client has it as its subject.
  must(
    sub !== client.id,
    'rfc9101-10.8-explicit-type',
    'sub of the request object must not be the client_id',
    sub,
  )
  must(
    [aud].flat().includes(issuer),
    'rfc9101-4-iss-aud',
    'aud of the request object is not the issuer',
    aud,
    issuer,
  )
  assertTimes(claims, now)
}

/** RFC 7519 §4.1.4 to §4.1.6. RFC 9101 requires none of them: a file at request_uri may be signed once. */
function assertTimes({ exp, nbf, iat }: JsonObject, now: Seconds): void {
  must(
    exp === undefined || (isInstant(exp) && now < exp + skewSeconds),
    'rfc9101-4-exp-nbf',
    'exp of the request object is over',
    exp,
    now,
  )
  must(
    exp === undefined || Number(exp) <= now + mostSeconds + skewSeconds,
    'rfc9101-4-exp-nbf',
    'exp of the request object is more than 60 minutes ahead',
    exp,
    now,
  )
  for (const [name, at] of Object.entries({ nbf, iat }))
    must(
      at === undefined || (isInstant(at) && at <= now + skewSeconds),
      'rfc9101-4-exp-nbf',
      `${name} of the request object is no instant, or in the future`,
      at,
      now,
    )
  must(
    nbf === undefined || Number(nbf) >= now - mostSeconds - skewSeconds,
    'rfc9101-4-exp-nbf',
    'nbf of the request object is more than 60 minutes ago',
    nbf,
    now,
  )
}

/**
 * Returns the parameters of a request object, RFC 9101 §4: strings, numbers, the object of `claims` and the list of
 * `resource`. What has another type, and no name of a parameter, is ignored as an unknown parameter is.
 * @param names The parameters that this server knows.
 * @throws {OAuthError} `invalid_request_object`
 */
export function parametersOf(
  { claims }: Jws,
  names: readonly string[],
  limits: ParameterLimits & { readonly jsonDepth: number },
): Parameters {
  must(
    Object.keys(claims).length <= limits.parameters && !isDeeperThan(limits.jsonDepth, claims),
    'rfc9101-4-parameters',
    'the request object has too many members, or is nested too deep (limits.parameters, limits.jsonDepth)',
    Object.keys(claims).length,
    limits.parameters,
  )
  const parameters: Record<string, string | readonly string[]> = Object.create(null)
  for (const [name, member] of Object.entries(claims)) {
    if (registeredClaims.includes(name)) continue
    const value = textOf(name, member)
    const texts = [value ?? ''].flat()
    must(
      (value !== undefined || !names.includes(name)) &&
        texts.every((text) => text.isWellFormed() && !text.includes('\0')) &&
        texts.every((text) => Buffer.byteLength(text) <= limits.parameterBytes),
      'rfc9101-4-parameters',
      `${names.includes(name) ? name : 'a parameter'} of the request object has a wrong type, or is too long`,
      member,
    )
    if (value !== undefined && value !== '') parameters[name] = value
  }
  return parameters
}

function textOf(name: string, member: unknown): string | readonly string[] | undefined {
  if (typeof member === 'string') return member
  if (typeof member === 'number') return String(member)
  if (name === 'resource' && isTextList(member) && member.length > 0) return member
  const isJson = ['claims', 'registration'].includes(name) && typeof member === 'object' && member !== null
  return isJson ? JSON.stringify(member) : undefined
}

/**
 * Checks that a client which must sign its requests does, RFC 9101 §10.5.
 * @throws {OAuthError} `invalid_request`
 */
export function assertSigned(
  client: Client,
  extra: NonNullable<AuthorizationRequest['extra']>,
  isRequired: boolean,
): void {
  const mustSign = isRequired || client.extra?.['require_signed_request_object'] === true
  check(
    !mustSign || extraName in extra,
    'rfc9101-10.5-require-signed',
    'invalid_request',
    isRequired
      ? 'this server accepts signed authorization requests only (requestObjects.required)'
      : 'this client registered to sign its authorization requests (require_signed_request_object)',
    { passed: mustSign ? 'the request was signed' : 'the request need not be signed' },
  )
}

/**
 * Reads `request_uris`, OpenID Connect Registration §2: https, or loopback for development.
 * @throws {OAuthError} `invalid_client_metadata`
 */
export function readRequestUris(members: JsonObject, name: string): readonly string[] | undefined {
  const value = members[name] ?? []
  if (!isTextList(value)) throw rejection(`${name} must be an array of strings`)
  if (value.length > mostUris) throw rejection(`${name} has more than ${mostUris} entries`)
  const wrong = value.find((uri) => !isRequestUri(uri, name))
  if (wrong !== undefined)
    throw rejection(`${name} must have https URIs only`, {
      rule: 'oidc-reg-2-request-uris',
      received: wrong,
    })
  return value.length > 0 ? value : undefined
}

function isRequestUri(uri: string, name: string): boolean {
  const read = readUri({ [name]: uri }, name)?.replace(/#.*/, '')
  return read !== undefined && (/^https:/i.test(read) || isLoopbackUri(read))
}

function must(
  ok: boolean,
  rule: string,
  description: string,
  received: unknown,
  stored?: string | number,
): void {
  check(ok, rule, 'invalid_request_object', description, { stored, received: shown(received) })
}
