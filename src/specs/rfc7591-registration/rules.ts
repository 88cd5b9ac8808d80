import { type JsonObject, lastingMembers, rejection } from '../../clients/members.ts'
import { parseClientMetadata, type RegistrationPolicy } from '../../clients/metadata.ts'
import { bearerChallenge, isUnderItsScheme, type NamedScheme, type SentToken } from '../../domain/bearer.ts'
import type { Confirmation } from '../../domain/confirmation.ts'
import { OAuthError } from '../../domain/errors.ts'
import { type InitialToken, nameOfToken, wrongInitialToken } from '../../domain/initial-token.ts'
import type { AdmittedClient, Client, Hash, Seconds } from '../../domain/model.ts'
import { hashSecret, mintSecret, secretMatches } from '../../domain/secret.ts'

/** Random bytes of one registration: 16 for the identifier, `secretBytes` for each secret. */
export interface FreshRegistration {
  readonly clientId: Buffer
  readonly clientSecret: Buffer
  readonly registrationToken: Buffer
}

/** The time and the network of a registration. */
export interface RegistrationContext {
  readonly now: Seconds
  readonly from: string
  /** The initial access token that the client sent. */
  readonly token?: InitialToken
  /** The key that the client proved. */
  readonly confirmation?: Confirmation | undefined
}

/** A client that was just registered, with the secrets that are sent once and stored only as hashes. */
export interface Registration {
  readonly client: Client
  readonly clientSecret?: string
  readonly registrationToken: string
}

/** RFC 7592 §2.2: members that the server issues must not be sent in an update. */
const issuedMembers = [
  'registration_access_token',
  'registration_client_uri',
  'client_secret_expires_at',
  'client_id_issued_at',
] as const

/**
 * Registers a client, RFC 7591 §3.2.1. The server chooses a unique identifier, RFC 6749 §2.2, and the omitted members,
 * RFC 7591 §2: `none` as the authentication method of a native client (RFC 8252 §8.4), and both grant types.
 * Every registration has a different secret, RFC 6749 §10.1.
 * @throws {OAuthError} `invalid_redirect_uri`, `invalid_client_metadata`
 */
export function registerClient(
  metadata: JsonObject,
  policy: RegistrationPolicy,
  fresh: FreshRegistration,
  { now, from, token, confirmation }: RegistrationContext,
): Registration {
  const { authenticationMethod: named, ...sent } = parseClientMetadata(metadata, policy)
  const said = withExtra(sent, token?.extra)
  const authenticationMethod = named ?? (said.applicationType === 'web' ? 'client_secret_basic' : 'none')
  const registrationToken = mintSecret('registration', fresh.registrationToken)
  const client: Client = {
    ...said,
    id: `client_${fresh.clientId.toString('base64url')}`,
    origin: 'registered',
    issuedAt: now,
    usedAt: now,
    registeredFrom: from,
    authenticationMethod,
    registrationTokenHash: hashSecret(registrationToken),
    ...(confirmation && { registrationKey: confirmation }),
    pkceOptional: token?.pkce === 'optional' && authenticationMethod !== 'none',
    consent: token?.redirects === 'https' ? 'remember' : 'always',
    introspects: [],
    ...(token && { admitted: admissionOf(token, authenticationMethod, said) }),
  }
  if (!usesSecret(authenticationMethod, policy)) return { client, registrationToken }
  const clientSecret = mintSecret('clientSecret', fresh.clientSecret)
  return { client: { ...client, secretHash: hashSecret(clientSecret) }, clientSecret, registrationToken }
}

/** What a client keeps of its initial access token. */
function admissionOf(
  token: InitialToken,
  authenticationMethod: string,
  said: Pick<Client, 'redirectUris' | 'extra'>,
): AdmittedClient {
  const { redirects, extra } = token
  const terms = termsOf(authenticationMethod, said)
  return { by: nameOfToken(token), redirects, ...(extra && { extra }), terms }
}

/** Adds to the metadata of a client what the operator set with its initial access token. */
function withExtra<T extends Pick<Client, 'extra'>>(sent: T, extra: Client['extra']): T {
  return extra === undefined ? sent : { ...sent, extra: { ...sent.extra, ...extra } }
}

/** Consent is asked for again when these change. */
function termsOf(method: string, { redirectUris, extra }: Pick<Client, 'redirectUris' | 'extra'>): Hash {
  return hashSecret(JSON.stringify([redirectUris, method, extra?.['jwks'], extra?.['jwks_uri']]))
}

/**
 * The client after an update, RFC 7592 §2.2: all its metadata is replaced, what is left out falls back to its
 * default. The client secret and the registration access token stay; an authentication method left out stays too,
 * because its default would turn a confidential client into a public one.
 * @throws {OAuthError} `invalid_redirect_uri`, `invalid_client_metadata`
 */
export function updateClient(client: Client, metadata: JsonObject, policy: RegistrationPolicy): Client {
  const member = issuedMembers.find((name) => (metadata[name] ?? undefined) !== undefined)
  if (member !== undefined) {
    throw rejection(`${member} must not be in an update`, { rule: 'rfc7592-2.2-forbidden-members' })
  }
  if (metadata['client_id'] !== client.id) {
    throw rejection('client_id must be the one of this client', { rule: 'rfc7592-2.2-client-id-must-match' })
  }
  assertOwnSecret(client, metadata['client_secret'] ?? undefined)
  const { authenticationMethod = client.authenticationMethod, ...sent } = parseClientMetadata(
    metadata,
    policy,
  )
  const said = withExtra(sent, client.admitted?.extra)
  assertSameType(client, authenticationMethod, policy)
  return {
    ...said,
    ...lastingMembers(client),
    ...(client.admitted && {
      admitted: { ...client.admitted, terms: termsOf(authenticationMethod, said) },
    }),
    authenticationMethod,
    pkceOptional: client.pkceOptional,
    consent: client.consent,
    introspects: client.introspects,
  }
}

/**
 * Returns the initial access token of a request, RFC 7591 §3; undefined without one: registration is open.
 * @throws {OAuthError} `invalid_token`
 */
export function readInitialToken({ credentials }: SentToken<NamedScheme>): string | undefined {
  if (credentials.kind === 'malformed') throw wrongInitialToken('the initial access token is malformed')
  return credentials.kind === 'token' ? credentials.token : undefined
}

/**
 * Checks that an initial access token, which is bound to no key, comes with a proof if its scheme says so.
 * @throws {OAuthError} `invalid_token`
 */
export function assertProven(
  { scheme }: SentToken<NamedScheme>,
  confirmation: Confirmation | undefined,
): void {
  if (scheme === undefined || isUnderItsScheme(scheme, confirmation)) return
  throw wrongInitialToken(`a token under ${scheme.name} needs a proof; send it as a bearer token`)
}

/**
 * The registration access token of a request, RFC 7592 §2.
 * @param challenges What a client may send instead.
 * @throws {OAuthError} `invalid_token`
 */
export function requireRegistrationToken(
  { scheme, credentials }: SentToken<NamedScheme>,
  challenges: readonly string[],
): string {
  if (credentials.kind === 'token') return credentials.token
  if (credentials.kind === 'malformed') throw wrongToken('rfc7592-2-bearer-required', scheme)
  // RFC 6750 §3.1: a request without authentication gets the schemes and no error code.
  throw new OAuthError('invalid_token', 'the registration access token is missing', {
    rule: 'rfc7592-2-bearer-required',
    headers: { 'www-authenticate': ['Bearer realm="client configuration"', ...challenges].join(', ') },
  })
}

/**
 * Checks the right to manage a client (RFC 7592 §2): it registered itself and this is its registration access token,
 * under the scheme that it was issued for (RFC 9449 §7.2). An unknown client gets the same error as a wrong token
 * (RFC 7592 §5).
 * @throws {OAuthError} `invalid_token`
 */
export function assertMayConfigure(
  client: Client | undefined,
  registrationToken: string,
  scheme: NamedScheme | undefined,
): asserts client is Client {
  const own = client?.origin === 'registered' ? client.registrationTokenHash : undefined
  if (!secretMatches(registrationToken, own))
    throw wrongToken(client === undefined ? 'rfc7592-5-no-404' : 'rfc7592-2-bearer-required', scheme)
  if (!isUnderItsScheme(scheme, client?.registrationKey)) throw wrongToken('rfc9449-7.2-no-downgrade', scheme)
}

function wrongToken(rule: string, scheme: NamedScheme | undefined): OAuthError {
  return new OAuthError('invalid_token', 'the registration access token is not valid', {
    rule,
    headers: { 'www-authenticate': bearerChallenge({ scheme, error: 'invalid_token' }) },
  })
}

function assertOwnSecret(client: Client, clientSecret: unknown): void {
  if (clientSecret === undefined) return
  if (typeof clientSecret === 'string' && secretMatches(clientSecret, client.secretHash)) return
  throw rejection('client_secret must be the current one of this client', {
    rule: 'rfc7592-2.2-secret-not-overwritten',
  })
}

function usesSecret(method: string, { declared }: RegistrationPolicy): boolean {
  return declared.clientAuthentication[method]?.usesSecret === true
}

function assertSameType(client: Client, authenticationMethod: string, policy: RegistrationPolicy): void {
  const isSame = usesSecret(authenticationMethod, policy) === (client.secretHash !== undefined)
  if (isSame && (authenticationMethod === 'none') === (client.authenticationMethod === 'none')) return
  throw rejection('token_endpoint_auth_method cannot change between none and a client secret', {
    rule: 'rfc6749-2.1-type-recorded',
    stored: client.authenticationMethod,
    received: authenticationMethod,
  })
}
