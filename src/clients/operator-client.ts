import { type AuditContext, auditEvent } from '../domain/audit.ts'
import { check } from '../domain/check.ts'
import { isDeceptive } from '../domain/deceptive.ts'
import { accept, type Decision, insert, remove, update, type Write } from '../domain/decision.ts'
import { OAuthError } from '../domain/errors.ts'
import { type Client, defaultGrantTypes, type Scope, type Seconds } from '../domain/model.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import {
  hasResponseParameter,
  isHttpsRedirect,
  isLoopbackUri,
  privateUseScheme,
  redirectFault,
} from '../domain/redirect-uri.ts'
import { isScope, parseScope } from '../domain/scope.ts'
import { hashSecret, mintSecret } from '../domain/secret.ts'
import type { OperatorClientMembers } from './core-members.ts'
import { changedMembers, configuredOf } from './describe.ts'
import { type ClientVocabulary, lastingMembers, recordWrites } from './members.ts'
import { readMembers } from './read-members.ts'

/** The form of a client id that an operator chooses. */
export const clientIdPattern = '^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$'

/** Random bytes: 16 for the id, 32 for the secret; or what the operator chose for either. */
export interface FreshClient {
  readonly id: Buffer | string
  readonly secret: Buffer | string
}

/**
 * A client that an operator vouches for, RFC 6749 §2, its secret if it has one, and what to write.
 * @throws {OAuthError} `invalid_redirect_uri` or `invalid_client_metadata`.
 */
export function addOperatorClient(
  request: OperatorClientMembers,
  vocabulary: ClientVocabulary,
  fresh: FreshClient,
  context: AuditContext,
): { readonly client: Client; readonly secret: string | undefined; readonly writes: readonly Write[] } {
  const secret = usesSecret(request, vocabulary) ? secretOf(fresh.secret) : undefined
  const client: Client = {
    id: typeof fresh.id === 'string' ? fresh.id : `client_${fresh.id.toString('base64url')}`,
    issuedAt: context.at,
    usedAt: context.at,
    ...settle(request, vocabulary),
    ...autoPkceOf(request, undefined, context.at),
    ...(secret !== undefined && { secretHash: hashSecret(secret) }),
  }
  return {
    client,
    secret,
    writes: [insert('client', client), ...writesWith(undefined, client, vocabulary, context)],
  }
}

/**
 * The same client with other metadata. What authenticates it stays, and so does what it was made for: a resource server
 * stays one.
 * @throws {OAuthError} `invalid_redirect_uri` or `invalid_client_metadata`; `invalid_client` for an unknown client, and
 * for one that registered itself: it changes itself, RFC 7592 §2.2.
 */
export function changeOperatorClient(
  client: Client | undefined,
  change: OperatorClientMembers,
  vocabulary: ClientVocabulary,
  context: AuditContext,
): Decision<Client> {
  const request = omitUndefined({ ...configuredOf(requireClient(client)), ...change })
  return replaceOperatorClient(client, request, vocabulary, context)
}

/**
 * The same client with this metadata and no other. What authenticates it stays, as above.
 * @throws {OAuthError} as above.
 */
export function replaceOperatorClient(
  client: Client | undefined,
  request: OperatorClientMembers,
  vocabulary: ClientVocabulary,
  context: AuditContext,
): Decision<Client> {
  const current = requireClient(client)
  check(
    current.origin !== 'registered',
    'lychgate-integration-known',
    'invalid_client',
    'a client that registered itself changes itself, RFC 7592 section 2.2',
  )
  assertSameKind(current, request, vocabulary)
  const { idTokenClaims, ...settled } = settle(request, vocabulary)
  // Those of a previous version have none until an operator wants them: that none is said of one changes nothing.
  const isAsBefore = current.idTokenClaims === undefined && idTokenClaims !== 'scope'
  const changed: Client = {
    ...settled,
    ...(!isAsBefore && { idTokenClaims }),
    ...autoPkceOf(request, current, context.at),
    ...lastingMembers(current),
  }
  return accept(changed, update('client', changed), ...writesWith(current, changed, vocabulary, context))
}

/** What is written with a client that is added or changed. */
function writesWith(
  before: Client | undefined,
  after: Client,
  vocabulary: ClientVocabulary,
  context: AuditContext,
) {
  return [
    ...recordWrites(before, after, vocabulary.declared),
    ...changeEvents(before, after, vocabulary, context),
  ]
}

/** The event of a change: the members that differ, under their names on the wire, and what features say of them. */
export function changeEvents(
  before: Client | undefined,
  after: Client,
  { declared }: Pick<ClientVocabulary, 'declared'>,
  context: AuditContext,
): readonly Write[] {
  const { id: clientId, name = clientId } = after
  if (before === undefined) return [auditEvent('client-added', context, { clientId, name })]
  const names = changedMembers(before, after)
  if (names.length === 0) return []
  const more = names.map((name) =>
    declared.clientMetadata[name]?.factsOf?.(before.extra?.[name], after.extra?.[name]),
  )
  const facts = { clientId, changed: names.join(' '), ...Object.assign({}, ...more) }
  return [auditEvent('client-changed', context, facts)]
}

/** Everything that a request sets about a client: all but its identity and secret. */
function settle(
  request: OperatorClientMembers,
  vocabulary: ClientVocabulary,
): Omit<Client, 'id' | 'issuedAt' | 'usedAt' | 'idTokenClaims'> & Required<Pick<Client, 'idTokenClaims'>> {
  const { resources = [], redirect_uris: redirectUris = [] } = request
  const isResourceServer = asksForResourceServer(request, vocabulary)
  const isConfidential = request.token_endpoint_auth_method !== 'none'
  const scope = readScope(request.scope ?? '')
  requireName(request.client_name ?? '')
  requireRedirectUris(request, isResourceServer)
  requirePolicy(request, isResourceServer, isConfidential)
  requireConfidential(request, isConfidential, vocabulary)
  if (actsForItself(request, vocabulary)) requireMachine(scope, isConfidential)
  requireKnown(request, scope, vocabulary)
  const { token_endpoint_auth_method: authenticationMethod = 'client_secret_basic' } = request
  const members = readMembers(request, vocabulary.declared, vocabulary.algorithms)
  vocabulary.declared.clientAuthentication[authenticationMethod]?.assertRegistered?.(members.extra ?? {})
  return {
    ...members,
    origin: isResourceServer ? 'resource-server' : 'integration',
    // The port of a loopback redirect is free for native clients only, RFC 8252 §7.3.
    applicationType: redirectUris.some((uri) => isLoopbackUri(uri) || privateUseScheme(uri))
      ? 'native'
      : 'web',
    redirectUris,
    postLogoutRedirectUris: request.post_logout_redirect_uris ?? [],
    authenticationMethod,
    ...(request.token_endpoint_auth_method === undefined && { anySecretMethod: true }),
    grantTypes: grantTypesOf(request, isResourceServer, vocabulary),
    ...(scope.length > 0 && { scope }),
    idTokenClaims: request.id_token_claims ?? 'default',
    pkceOptional: request.pkce === 'optional' || request.pkce === 'auto',
    consent: request.consent ?? (isAssured(request) ? 'remember' : 'always'),
    introspects: isResourceServer ? resources : [],
    ...(!isResourceServer && resources.length > 0 && { resources }),
  }
}

/** What was learned about PKCE stays while it depends on what the client sends. */
function autoPkceOf(
  { pkce }: OperatorClientMembers,
  before: Client | undefined,
  now: Seconds,
): Partial<Pick<Client, 'pkceOptional' | 'pkceAutoSince' | 'pkceLearnedAt'>> {
  if (pkce !== 'auto') return {}
  const { pkceAutoSince = now, pkceLearnedAt } = before ?? {}
  return pkceLearnedAt === undefined
    ? { pkceAutoSince }
    : { pkceOptional: false, pkceAutoSince, pkceLearnedAt }
}

/** A resource server has no grants but those by tokens that it received. */
function grantTypesOf(
  { grant_types: grantTypes }: OperatorClientMembers,
  isResourceServer: boolean,
  { declared }: ClientVocabulary,
): readonly string[] {
  if (!isResourceServer) return grantTypes ?? defaultGrantTypes
  return grantTypes?.filter((name) => declared.grantTypes[name]?.fromToken) ?? []
}

/** As at registration: what is wrong is the metadata, not the scope of a request. */
function readScope(text: string): Scope {
  check(
    isScope(text),
    'rfc7591-2-scope-string',
    'invalid_client_metadata',
    'scope must be a string of scope names separated by spaces',
  )
  return parseScope(text)
}

function assertSameKind(client: Client, request: OperatorClientMembers, vocabulary: ClientVocabulary): void {
  const { token_endpoint_auth_method: authenticationMethod } = request
  check(
    usesSecret(request, vocabulary) === (client.secretHash !== undefined) &&
      (authenticationMethod === 'none') === (client.authenticationMethod === 'none'),
    'rfc6749-2.1-type-recorded',
    'invalid_client_metadata',
    'auth cannot change between none and a secret; add another client',
    { stored: client.authenticationMethod, received: authenticationMethod },
  )
  check(
    asksForResourceServer(request, vocabulary) === (client.origin === 'resource-server'),
    'lychgate-integration-resource-server',
    'invalid_client_metadata',
    client.origin === 'resource-server'
      ? 'a resource server has one or more resources'
      : 'resource is for resource servers and for clients with client_credentials; name no resource without it',
  )
}

function requireClient(client: Client | undefined): Client {
  check(client !== undefined, 'lychgate-integration-known', 'invalid_client', 'no client has this id')
  return client
}

/**
 * Locks a client: it cannot authenticate or be authorized, and everything issued to it is invalid until it is
 * unlocked.
 */
export function lockClient(found: Client | undefined, context: AuditContext): Decision<Client> {
  const client = requireClient(found)
  const locked = { ...client, lockedAt: client.lockedAt ?? context.at }
  const event = auditEvent('client-locked', context, { clientId: client.id })
  return accept(locked, update('client', locked), event)
}

/** Unlocks a client. Tokens that have not expired in the meantime are valid again. */
export function unlockClient(client: Client | undefined, context: AuditContext): Decision<Client> {
  const { lockedAt: _, ...unlocked } = requireClient(client)
  const event = auditEvent('client-unlocked', context, { clientId: unlocked.id })
  return accept(unlocked, update('client', unlocked), event)
}

/** Removes a client and every token it has. */
export function removeClient({ id: clientId, name }: Client, context: AuditContext): Decision<boolean> {
  const event = auditEvent('client-removed', context, { clientId, ...(name && { name }) })
  return accept(true, remove('client', clientId), event)
}

/**
 * Replaces a client's secret.
 * @param fresh 32 random bytes, or the secret that the operator chose.
 * @param keepUntil When the replaced secret stops being accepted; absent: at once. The one before that is invalid in
 * any case: there are never more than two.
 * @throws {OAuthError} `invalid_client` for an unknown client, `invalid_client_metadata` for a public one.
 */
export function rotateClientSecret(
  row: Client | undefined,
  fresh: FreshClient['secret'],
  context: AuditContext,
  keepUntil?: Seconds,
): Decision<{ readonly client: Client; readonly secret: string }> {
  const { previousSecret: _, secretUsedAt: usedAt, ...client } = requireClient(row)
  const { secretHash: replaced } = client
  check(
    replaced !== undefined,
    'rfc8252-8.5-shared-secret-not-proof',
    'invalid_client_metadata',
    'a public client has no secret',
  )
  const secret = secretOf(fresh)
  const rotated: Client = {
    ...client,
    secretHash: hashSecret(secret),
    ...(keepUntil !== undefined && {
      previousSecret: { hash: replaced, expiresAt: keepUntil, ...omitUndefined({ usedAt }) },
    }),
  }
  const facts = { clientId: client.id, ...omitUndefined({ oldWorksUntil: keepUntil }) }
  const event = auditEvent('client-secret-changed', context, facts)
  return accept({ client: rotated, secret }, update('client', rotated), event)
}

function requireName(name: string): void {
  check(
    name.trim() !== '' && [...name].length <= 200 && !isDeceptive(name),
    'lychgate-integration-name',
    'invalid_client_metadata',
    'name must have 1 to 200 characters, none of them invisible',
  )
}

function requireRedirectUris(request: OperatorClientMembers, isResourceServer: boolean): void {
  const { redirect_uris: redirectUris = [], post_logout_redirect_uris: postLogoutRedirectUris = [] } = request
  check(
    !isResourceServer || redirectUris.length + postLogoutRedirectUris.length <= 0,
    'lychgate-integration-resource-server',
    'invalid_redirect_uri',
    'a resource server has no redirect URIs',
  )
  check(
    isResourceServer ||
      !(request.grant_types ?? defaultGrantTypes).includes('authorization_code') ||
      redirectUris.length !== 0,
    'rfc6749-3.1.2.2-all-register',
    'invalid_redirect_uri',
    'redirect-uri is missing',
  )
  for (const [name, uris] of Object.entries({ redirectUris, postLogoutRedirectUris })) {
    const flag = name === 'redirectUris' ? 'redirect-uri' : 'post-logout-redirect-uri'
    const doubled = uris.findIndex(hasResponseParameter)
    check(
      doubled < 0,
      'rfc6749-3.1-no-duplicate-response-params',
      'invalid_redirect_uri',
      `${flag} ${doubled + 1} contains a reserved authorization response parameter`,
    )
    const pattern = uris.findIndex((uri) => uri.includes('*'))
    check(
      pattern < 0,
      'rfc6749-3.1.2.3-simple-string-match',
      'invalid_redirect_uri',
      `${flag} ${pattern + 1} must not have a *: URIs are compared as text, so it would never match; name each one`,
    )
    const anyScheme = request.any_redirect_scheme === true
    const [[wrong, fault] = []] = uris.flatMap((uri, at) => {
      const found = redirectFault(uri, { anyScheme })
      return found === undefined ? [] : [[at + 1, found] as const]
    })
    if (wrong === undefined) continue
    throw new OAuthError('invalid_redirect_uri', `${flag} ${wrong} ${fault}`, {
      rule: 'rfc9700-2.1-no-http-redirects',
    })
  }
}

function requirePolicy(
  request: OperatorClientMembers,
  isResourceServer: boolean,
  isConfidential: boolean,
): void {
  check(
    !isResourceServer || isConfidential,
    'rfc7662-2.1-caller-authorised',
    'invalid_client_metadata',
    'auth must not be none: introspection needs a secret, RFC 7662 section 2.1',
  )
  check(
    (request.pkce ?? 'required') === 'required' || isConfidential,
    'rfc8252-8.1-native-pkce-required',
    'invalid_client_metadata',
    `pkce may be ${request.pkce} for a confidential client only`,
  )
  check(
    request.consent === undefined || request.consent === 'always' || isAssured(request),
    'rfc8252-8.6-no-automatic-approval',
    'invalid_client_metadata',
    'consent must be always for a public client with a loopback redirect URI or one of an app',
  )
}

/** RFC 8693 §2.1: who exchanges a token is known by its authentication alone. */
function requireConfidential(
  { grant_types: grantTypes = [] }: OperatorClientMembers,
  isConfidential: boolean,
  { declared }: ClientVocabulary,
): void {
  check(
    isConfidential || !grantTypes.some((name) => declared.grantTypes[name]?.fromToken),
    'rfc8693-2.1-client-authentication',
    'invalid_client_metadata',
    'auth must not be none for a client that exchanges tokens',
  )
}

/** RFC 6749 §4.4: the client acts for itself, so an operator says what it may do. */
function requireMachine(scope: Scope, isConfidential: boolean): void {
  check(
    isConfidential,
    'rfc6749-4.4-client-credentials-confidential',
    'invalid_client_metadata',
    'auth must not be none for a client that acts for itself',
  )
  check(
    scope.length > 0,
    'rfc6749-4.4.2-scope-preapproved',
    'invalid_client_metadata',
    'scope is missing: it lists what a client that acts for itself may do',
  )
}

function requireKnown(request: OperatorClientMembers, scope: Scope, vocabulary: ClientVocabulary): void {
  check(
    !request.grant_types?.some((name) => !Object.hasOwn(vocabulary.declared.grantTypes, name)),
    'rfc7591-2.1-grant-response-consistency',
    'invalid_client_metadata',
    'grant-type is not one that this server offers',
  )
  const { token_endpoint_auth_method: authenticationMethod = 'client_secret_basic' } = request
  check(
    Object.hasOwn(vocabulary.declared.clientAuthentication, authenticationMethod),
    'lychgate-integration-auth',
    'invalid_client_metadata',
    'auth is not a method that this server offers',
    {
      received: authenticationMethod.slice(0, 100),
      stored: Object.keys(vocabulary.declared.clientAuthentication),
    },
  )
  check(
    !scope.some((name) => !vocabulary.scopes.includes(name)),
    'rfc7591-2-scope-string',
    'invalid_client_metadata',
    'scope names something that is not in the scope catalogue',
  )
  const { id_token_signed_response_alg: algorithm = 'RS256' } = request
  check(
    vocabulary.algorithms?.includes(algorithm) ?? true,
    'oidc-reg-2-id-token-alg',
    'invalid_client_metadata',
    'id-token-alg is not one that this server signs with: keys.ed25519 is off',
    { received: algorithm, ...(vocabulary.algorithms && { stored: vocabulary.algorithms }) },
  )
  check(
    !request.resources?.some((identifier) => !vocabulary.resources.includes(identifier)),
    'rfc8707-2-unknown-invalid-target',
    'invalid_client_metadata',
    'resource must be the issuer or an identifier listed in `resources`',
  )
}

function asksForResourceServer(request: OperatorClientMembers, vocabulary: ClientVocabulary): boolean {
  return (
    request.resources !== undefined && request.resources.length > 0 && !actsForItself(request, vocabulary)
  )
}

function actsForItself(
  { grant_types: grantTypes = [] }: OperatorClientMembers,
  { declared }: ClientVocabulary,
): boolean {
  return grantTypes.some((name) => declared.grantTypes[name]?.withoutUser)
}

function secretOf(fresh: FreshClient['secret']): string {
  if (typeof fresh !== 'string') return mintSecret('clientSecret', fresh)
  check(
    /^[!-~]{32,200}$/.test(fresh),
    'lychgate-integration-secret',
    'invalid_client_metadata',
    'a secret has 32 to 200 characters of ASCII, without spaces; make one with openssl rand -hex 32',
  )
  return fresh
}

function usesSecret(
  { token_endpoint_auth_method: authenticationMethod }: OperatorClientMembers,
  { declared }: ClientVocabulary,
): boolean {
  return (
    authenticationMethod === undefined ||
    declared.clientAuthentication[authenticationMethod]?.usesSecret === true
  )
}

/** Whether the identity of the client is assured (RFC 8252 §8.6): by its secret or by https callbacks. */
function isAssured({
  token_endpoint_auth_method: method,
  redirect_uris: uris = [],
}: OperatorClientMembers): boolean {
  return method !== 'none' || uris.every(isHttpsRedirect)
}
