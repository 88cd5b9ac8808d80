import { defaultAcrValues, requestedAcr } from './authentication-context.ts'
import { check, recordCheck } from './check.ts'
import { narrowClaims, scopeOfClaims } from './claims.ts'
import { parseClaims } from './claims-request.ts'
import { mayHave, type ScopePolicy } from './current-grant.ts'
import { parseUiLocales } from './language.ts'
import type { AuthorizationRequest, ClaimsRequest, Client, Scope, Seconds } from './model.ts'
import { omitUndefined } from './omit-undefined.ts'
import { assertNoneRepeated, every, type Parameters, single } from './parameters.ts'
import { requireCodeChallenge } from './pkce.ts'
import { isLoopbackUri, privateUseScheme, redirectUriMatches } from './redirect-uri.ts'
import { parseResource, type Resources, requireScopeAt, scopeAt } from './resource.ts'
import { parseScope } from './scope.ts'
import { defaultScope, offlineAccess } from './scope-catalogue.ts'

/** What an authorization request is validated against. */
export type AuthorizationPolicy = Pick<ScopePolicy, 'scopes' | 'openScopes' | 'scopeClaims' | 'resources'>

/** A validated redirect: from here on errors are redirects (RFC 6749 §4.1.2.1). */
export interface ProvenRedirect {
  readonly redirectUri: string
  readonly redirectUriSent: boolean
  /** One of those the server declares, see `responseModes` of feature/feature.ts. */
  readonly responseMode: string
  readonly state?: string
}

/** OAuth 2.0 Multiple Response Type Encoding Practices §2.1 and OAuth 2.0 Form Post Response Mode. */
export const coreResponseModes = ['query', 'form_post'] as const

/**
 * Phase one: validates the client and the redirect URI (RFC 6749 §3.1.2.3). Its errors are shown to the user on a page.
 * @param responseModes Those that the server knows.
 * @throws {OAuthError} `invalid_request`
 */
export function resolveRedirectUri(
  parameters: Parameters,
  client: Client,
  responseModes: readonly string[] = coreResponseModes,
): ProvenRedirect {
  const requested = single(parameters, 'redirect_uri')
  const redirectUri = requested ?? onlyRedirectUri(client, parameters)
  assertRegisteredRedirect(redirectUri, client)
  const responseMode = single(parameters, 'response_mode') ?? 'query'
  check(
    responseModes.includes(responseMode),
    'oidc-core-3.1.2.6-bad-response-mode',
    'invalid_request',
    `response_mode must be one of ${responseModes.join(', ')}`,
    { received: responseMode, passed: 'response_mode is one of the server' },
  )
  check(
    !responseMode.startsWith('form_post') || privateUseScheme(redirectUri) === undefined,
    'oidc-core-3.1.2.6-bad-response-mode',
    'invalid_request',
    'response_mode must not be form_post: a browser cannot post a form to an app',
    { received: responseMode, passed: 'the response mode suits the redirect_uri' },
  )
  // A repeated state is an error sent by redirect, without any state.
  const state = parameters['state']
  return {
    redirectUri,
    redirectUriSent: requested !== undefined,
    responseMode,
    ...(typeof state === 'string' && { state }),
  }
}

/**
 * Phase two: everything else of an authorization request, RFC 6749 §4.1.1, RFC 7636 §4.3, RFC 8707 §2 and OpenID
 * Connect Core §3.1.2.1. Its errors are redirects.
 * @param hintedSub The user the `id_token_hint` is about, verified by the caller.
 */
export function parseAuthorizationRequest(
  parameters: Parameters,
  client: Client,
  proven: ProvenRedirect,
  policy: AuthorizationPolicy,
  hintedSub: string | undefined,
): AuthorizationRequest {
  assertNoneRepeated(parameters)
  assertSupported(parameters)
  assertCodeFlow(parameters, client)
  const codeChallenge = requireCodeChallenge(
    {
      codeChallenge: single(parameters, 'code_challenge'),
      codeChallengeMethod: single(parameters, 'code_challenge_method'),
    },
    { optional: client.pkceOptional && privateUseScheme(proven.redirectUri) === undefined },
  )
  const { scope, resource } = parseScopeAndResource(parameters, client, policy)
  const { claims, sub, essentialAcr, requestedAcrValues } = parseClaims(single(parameters, 'claims'))
  const acrValues = single(parameters, 'acr_values')?.split(' ') ?? []
  const named = [...acrValues, ...requestedAcrValues]
  const acr = requestedAcr(essentialAcr, named.length > 0 ? named : defaultAcrValues(client))
  const maxAgeSeconds = maxAge(single(parameters, 'max_age')) ?? client.defaultMaxAgeSeconds
  const requiredSub = hintedSub ?? sub
  const optional = {
    codeChallenge,
    maxAgeSeconds,
    requiredSub,
    acr,
    nonce: single(parameters, 'nonce'),
    loginHint: single(parameters, 'login_hint')?.slice(0, 256),
    uiLocales: parseUiLocales(parameters),
  }
  check(
    hintedSub === undefined || sub === undefined || hintedSub === sub,
    'oidc-core-3.1.2.2-specific-sub',
    'login_required',
    'id_token_hint and claims name different users',
    { stored: hintedSub, received: sub, passed: 'no two different users are requested' },
  )
  return {
    clientId: client.id,
    ...proven,
    scope,
    resource,
    prompt: prompt(single(parameters, 'prompt')),
    ...reachOfClaims(claims, scope, client, policy),
    ...omitUndefined(optional),
  }
}

/**
 * Parses what a client requests access to: `scope` (RFC 6749 §3.3) and `resource` (RFC 8707 §2).
 * @throws {OAuthError} `invalid_scope` or `invalid_target`
 */
export function parseScopeAndResource(
  parameters: Parameters,
  client: Client,
  policy: AuthorizationPolicy,
): Pick<AuthorizationRequest, 'scope' | 'resource'> {
  const resource = parseResource(every(parameters, 'resource'), policy.resources)
  const scope = requestedScope(single(parameters, 'scope'), resource, client, policy)
  requireScopeAt(scope, resource, policy.resources)
  return { scope, resource }
}

/** Whether the ID Token must contain `auth_time`, OpenID Connect Core §2 and OpenID Connect Registration §2. */
export function owesAuthTime(request: AuthorizationRequest, client: Client): boolean {
  return (
    client.requireAuthTime ||
    request.maxAgeSeconds !== undefined ||
    request.claims.idToken.includes('auth_time')
  )
}

/**
 * Checks that the redirect URI is one of the client's, RFC 6749 §3.1.2.3.
 * @throws {OAuthError} `invalid_request`
 */
export function assertRegisteredRedirect(redirectUri: string, client: Client): void {
  const facts = { stored: client.redirectUris, received: redirectUri, passed: 'redirect_uri is registered' }
  if (client.redirectUris.includes(redirectUri)) {
    recordCheck('rfc6749-3.1.2.3-simple-string-match', facts.passed, facts.stored, facts.received)
    return
  }
  const anyPort = client.applicationType === 'native'
  const matches = client.redirectUris.some((registered) =>
    redirectUriMatches(registered, redirectUri, { anyPort }),
  )
  // Of an https redirect nothing may differ.
  const portMayDiffer = anyPort && isLoopbackUri(redirectUri) && client.redirectUris.some(isLoopbackUri)
  const hint = portMayDiffer ? '; only its port may differ' : ''
  const remedy = client.origin === 'integration' ? ' (lychgate client set --redirect-uri)' : hint
  check(
    matches,
    matches ? 'rfc8252-7.3-any-port' : 'rfc6749-3.1.2.3-simple-string-match',
    'invalid_request',
    `redirect_uri is not registered for this client${remedy}`,
    facts,
  )
}

function onlyRedirectUri(client: Client, parameters: Parameters): string {
  const [only, ...others] = client.redirectUris
  const openid = typeof parameters['scope'] === 'string' && parameters['scope'].split(' ').includes('openid')
  // The port of a loopback redirect is chosen per request, so a registered one says nothing about this request.
  check(
    only !== undefined && others.length === 0 && !openid && !isLoopbackUri(only),
    openid ? 'oidc-core-3.1.2.1-redirect-uri-required' : 'rfc6749-3.1.2.3-required-when-ambiguous',
    'invalid_request',
    'redirect_uri is missing',
    { stored: client.redirectUris, passed: 'redirect_uri is the only registered one' },
  )
  return only
}

/** What a feature loads has these parameters no more. */
function assertSupported(parameters: Parameters): void {
  check(
    parameters['request'] === undefined,
    'oidc-core-6.1-request-unsupported',
    'request_not_supported',
    'request is not supported; send the parameters themselves',
    { passed: 'no request object' },
  )
  check(
    parameters['request_uri'] === undefined,
    'oidc-core-6.2-request-uri-unsupported',
    'request_uri_not_supported',
    'request_uri is not supported; send the parameters themselves',
    { passed: 'no request_uri' },
  )
  check(
    parameters['registration'] === undefined,
    'oidc-core-3.1.2.6-registration-not-supported',
    'registration_not_supported',
    'registration is not supported; use the registration endpoint',
    { passed: 'no registration parameter' },
  )
}

function assertCodeFlow(parameters: Parameters, client: Client): void {
  const responseType = single(parameters, 'response_type')
  check(
    responseType !== undefined,
    'rfc6749-3.1.1-response-type-missing',
    'invalid_request',
    'response_type is missing',
    { passed: 'response_type is present' },
  )
  check(
    responseType === 'code',
    'rfc6749-3.1.1-response-type-unknown',
    'unsupported_response_type',
    'response_type must be code',
    { received: responseType, passed: 'response_type is code' },
  )
  check(
    client.grantTypes.includes('authorization_code'),
    'rfc6749-4.1.2.1-unauthorized-client',
    'unauthorized_client',
    'this client is not registered for the authorization_code grant',
    { stored: client.grantTypes, passed: 'the client is registered for the authorization_code grant' },
  )
}

function requestedScope(
  text: string | undefined,
  resource: readonly string[],
  client: Client,
  policy: AuthorizationPolicy,
): Scope {
  const isOpen = (name: string) => mayHave(name, client, policy)
  if (text === undefined) {
    const scope = defaultScopeAt(resource, policy.resources).filter(isOpen)
    check(
      scope.length > 0,
      'rfc6749-3.3-scope-omitted',
      'invalid_scope',
      'scope is missing and this client has no default one',
      { stored: client.scope, passed: 'no scope: the default one' },
    )
    return scope
  }
  const scope = parseScope(text)
  const closed = scope.find((name) => !isOpen(name))
  check(
    closed === undefined,
    'rfc6749-4.1.2.1-invalid-scope',
    'invalid_scope',
    whyClosed(closed, client, policy),
    { stored: client.scope, received: closed ?? scope, passed: 'the client may request every scope' },
  )
  check(
    scope.some((name) => name !== offlineAccess.name),
    'rfc6749-4.1.2.1-invalid-scope',
    'invalid_scope',
    'scope names nothing to have access to',
    { passed: 'scope names something to have access to' },
  )
  // OpenID Connect Core §11: without refresh tokens offline_access is ignored.
  return client.grantTypes.includes('refresh_token')
    ? scope
    : scope.filter((name) => name !== offlineAccess.name)
}

/** RFC 6749 §3.3: who the user is or, at APIs without these scopes, everything they offer. */
function defaultScopeAt(identifiers: readonly string[], resources: Resources): Scope {
  if (scopeAt(defaultScope, identifiers, resources).length > 0) return defaultScope
  const offered = new Set(identifiers.flatMap((id) => [...(resources.find(id)?.scopes ?? [])]))
  offered.delete(offlineAccess.name)
  return [...offered]
}

function whyClosed(name = '', client: Client, { scopes }: AuthorizationPolicy): string {
  if (!scopes.has(name)) return 'scope has a value that this server does not know (the option scopes)'
  return client.origin === 'integration'
    ? 'scope has a value that is not open to this client (lychgate client set --scope)'
    : 'scope has a value that this client did not register'
}

/** Claims asked for one by one are personal data like those of a scope: they need that scope from client and user. */
function reachOfClaims(
  claims: ClaimsRequest,
  scope: Scope,
  client: Client,
  policy: AuthorizationPolicy,
): Pick<AuthorizationRequest, 'claims' | 'claimScope'> {
  if (claims.userinfo.length + claims.idToken.length === 0) return { claims }
  const within = new Map([...policy.scopeClaims].filter(([name]) => mayHave(name, client, policy)))
  // UserInfo and ID Token, where claims go, are for openid alone.
  const claimScope = scope.includes('openid') ? scopeOfClaims(claims, scope, within) : []
  return {
    claims: narrowClaims(claims, [...scope, ...claimScope], within),
    ...(claimScope.length > 0 && { claimScope }),
  }
}

function prompt(text: string | undefined): readonly string[] {
  const values = text?.split(' ').filter(Boolean) ?? []
  check(
    !values.includes('none') || values.length <= 1,
    'oidc-core-3.1.2.1-prompt-none-exclusive',
    'invalid_request',
    'prompt=none must not be combined with other values',
    { passed: 'prompt is a valid combination' },
  )
  return values.filter((value) => ['none', 'login', 'consent', 'select_account'].includes(value))
}

function maxAge(text: string | undefined): Seconds | undefined {
  if (text === undefined) return undefined
  check(
    /^[0-9]{1,10}$/.test(text),
    'oidc-core-3.1.2.1-max-age',
    'invalid_request',
    'max_age must be a number of seconds',
    { passed: 'max_age is a number of seconds' },
  )
  return Number(text)
}
