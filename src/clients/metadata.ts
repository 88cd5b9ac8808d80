import { check } from '../domain/check.ts'
import { OAuthError } from '../domain/errors.ts'
import {
  type AdmittedClient,
  type Client,
  defaultGrantTypes,
  type Scope,
  type SigningAlgorithm,
} from '../domain/model.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import {
  hasResponseParameter,
  isHttpsRedirect,
  isLoopbackRedirect,
  missingOfLoopback,
} from '../domain/redirect-uri.ts'
import { isScope, narrowScope, parseScope } from '../domain/scope.ts'
import {
  type ClientDeclarations,
  isTextList,
  type JsonObject,
  openToAll,
  openWithToken,
  readChoice,
  readUri,
  rejection,
} from './members.ts'
import { type ReadMembers, readMembers } from './read-members.ts'

/** What registration allows. */
export interface RegistrationPolicy {
  /** Host names accepted in redirect URIs in addition to the loopback literals, RFC 8252 §8.3. */
  readonly loopbackHosts: readonly string[]
  /** What a redirect URI that is not loopback does: reject the whole request, or drop that entry. */
  readonly foreignRedirects: 'refuse' | 'drop'
  /** The most redirect URIs a client may have. */
  readonly redirectUris: number
  /** Bytes of everything a client registers about itself, as JSON. */
  readonly metadataBytes: number
  /** The scopes that a client may have without an operator. */
  readonly scopes: Scope
  /** What ID Tokens can be signed with. */
  readonly algorithms: readonly SigningAlgorithm[]
  readonly declared: ClientDeclarations
  /** The grant types that such clients cannot use here, each with the option that says so. */
  readonly closedGrantTypes?: ReadonlyMap<string, string>
  /** What an initial access token allows in addition, RFC 7591 §3; absent: open registration. */
  readonly admission?: Pick<AdmittedClient, 'redirects'>
}

/** The metadata that a client registers (RFC 7591 §2). */
export type ClientMetadata = Omit<ReadMembers, 'authenticationMethod'> &
  Pick<Client, 'applicationType' | 'redirectUris' | 'postLogoutRedirectUris' | 'grantTypes'> & {
    readonly authenticationMethod?: string
  }

/**
 * Reads the metadata of a client that registers itself, RFC 7591 §2 and OpenID Connect Registration §2. A member that
 * is null, or an empty text, counts as absent; one that this server does not understand is ignored.
 * @throws {OAuthError} `invalid_redirect_uri` for `redirect_uris`, `invalid_client_metadata` for everything else,
 * RFC 7591 §3.2.2.
 */
export function parseClientMetadata(members: JsonObject, policy: RegistrationPolicy): ClientMetadata {
  const grantTypes = readGrantTypes(members, policy)
  const redirectUris = readRedirectUris(members, grantTypes, policy)
  const { clientMetadata, clientAuthentication } = openDeclarations(policy)
  assertResponseTypes(members, grantTypes)
  assertIgnorable(members)
  // The redirects decide, so another type is replaced: RFC 7591 §3.2.1 lets the server substitute and say so.
  readChoice(members, 'application_type', ['native', 'web'], 'oidc-reg-2-application-type-values')
  const metadata: ClientMetadata = {
    ...readMembers(members, { ...policy.declared, clientMetadata }, policy.algorithms),
    applicationType: redirectUris.length > 0 && redirectUris.every(isHttpsRedirect) ? 'web' : 'native',
    redirectUris,
    postLogoutRedirectUris: readPostLogoutRedirectUris(members, policy),
    grantTypes,
    ...omitUndefined({
      authenticationMethod: readChoice(
        members,
        'token_endpoint_auth_method',
        Object.keys(clientAuthentication),
        'service-2-reg-auth-other',
      ),
      scope: readCeiling(members, policy.scopes),
    }),
  }
  clientAuthentication[metadata.authenticationMethod ?? '']?.assertRegistered?.(metadata.extra ?? {})
  assertSize(metadata, policy)
  return metadata
}

function openDeclarations({ admission, declared }: RegistrationPolicy) {
  const open = admission === undefined ? openToAll : openWithToken
  return {
    clientMetadata: open(declared.clientMetadata),
    clientAuthentication: open(declared.clientAuthentication),
  }
}

// Each member has its own limit; together they would still fill a disk.
function assertSize(metadata: ClientMetadata, { metadataBytes }: RegistrationPolicy): void {
  const bytes = Buffer.byteLength(JSON.stringify(metadata))
  if (bytes <= metadataBytes) return
  throw rejection(`the metadata takes more than ${metadataBytes} bytes (limits.clientMetadataBytes)`, {
    rule: 'lychgate-limits-client-metadata-bytes',
    stored: metadataBytes,
    received: bytes,
  })
}

// RFC 7591 §5: they are required of a client that browsers are redirected to. OpenID Connect Registration §3.2: they
// are kept as they were sent, or rejected.
function readRedirectUris(
  members: JsonObject,
  grantTypes: readonly string[],
  policy: RegistrationPolicy,
): readonly string[] {
  const uris = members['redirect_uris'] ?? undefined
  const isNone = uris === undefined || (Array.isArray(uris) && uris.length === 0)
  if (isNone && !grantTypes.includes('authorization_code')) return []
  check(
    isTextList(uris) && uris.length !== 0,
    uris === undefined ? 'rfc6749-3.1.2.2-public-must-register' : 'service-2-reg-redirect-uris-array',
    'invalid_redirect_uri',
    'redirect_uris must be a non-empty array of strings',
    { passed: 'redirect_uris is a non-empty array of strings' },
  )
  const accepted = acceptedOf('redirect_uris', uris, policy, 'invalid_redirect_uri')
  check(
    accepted.length > 0,
    'service-5-registration-loopback-only',
    'invalid_redirect_uri',
    `redirect_uris has no entry of the form ${acceptedForm(policy)}; ${remedyFor(uris[0] ?? '', policy, false)}`,
    { received: uris, passed: 'every redirect URI that is kept is accepted' },
  )
  return accepted
}

function readPostLogoutRedirectUris(members: JsonObject, policy: RegistrationPolicy): readonly string[] {
  const uris = members['post_logout_redirect_uris'] ?? []
  if (!isTextList(uris)) throw rejection('post_logout_redirect_uris must be an array of strings')
  return acceptedOf('post_logout_redirect_uris', uris, policy, 'invalid_client_metadata')
}

function acceptedOf(
  member: string,
  uris: readonly string[],
  policy: RegistrationPolicy,
  code: 'invalid_redirect_uri' | 'invalid_client_metadata',
): readonly string[] {
  if (uris.length > policy.redirectUris) {
    const description = `${member} has more than ${policy.redirectUris} entries (limits.redirectUris)`
    throw new OAuthError(code, description, {
      rule: 'lychgate-limits-redirect-uris',
      received: uris.length,
    })
  }
  const accepted = uris.filter((uri) => isAccepted(uri, policy))
  const foreign = uris.findIndex((uri) => !isAccepted(uri, policy))
  const doubled = uris.findIndex(hasResponseParameter)
  check(
    doubled < 0,
    'rfc6749-3.1-no-duplicate-response-params',
    code,
    `${member}[${doubled}] contains a reserved authorization response parameter`,
    { received: uris[doubled], passed: 'no URI contains a parameter of the response' },
  )
  if (foreign < 0 || policy.foreignRedirects === 'drop') return accepted
  const description = `${member}[${foreign}] is not of the form ${acceptedForm(policy)}`
  const remedy = remedyFor(uris[foreign] ?? '', policy, accepted.length > 0)
  throw new OAuthError(code, `${description}; ${remedy}`, {
    rule: 'service-5-registration-loopback-only',
    received: uris[foreign],
  })
}

function isAccepted(uri: string, { loopbackHosts, admission }: RegistrationPolicy): boolean {
  return isLoopbackRedirect(uri, loopbackHosts) || (admission?.redirects === 'https' && isHttpsRedirect(uri))
}

/** What would make the redirect URI accepted: a part that it lacks, a setting or a command. */
function remedyFor(uri: string, policy: RegistrationPolicy, isMixed: boolean): string {
  const lack = missingOfLoopback(uri)
  const setting = 'the option registration.loopbackHosts can add localhost'
  if (lack !== undefined) {
    const said = `it has no ${lack.missing.join(' and no ')}, the form is ${lack.form}`
    return isAccepted(lack.form, policy) ? said : `${said}, and ${setting}`
  }
  if (isLoopbackRedirect(uri, ['localhost'])) return setting
  if (isMixed) return 'the option registration.foreignRedirects=drop would drop it and keep the others'
  return 'an operator adds a client with https redirects by lychgate client add'
}

function acceptedForm({ loopbackHosts, admission }: RegistrationPolicy): string {
  const hosts = ['127.0.0.1', '[::1]', ...loopbackHosts]
  const forms = hosts.map((host) => `http://${host}:port/path`)
  return [...forms, ...(admission?.redirects === 'https' ? ['https://host/path'] : [])].join(' or ')
}

function readGrantTypes(
  members: JsonObject,
  { declared, closedGrantTypes: closed }: RegistrationPolicy,
): readonly string[] {
  const asked = members['grant_types'] ?? defaultGrantTypes
  if (!isTextList(asked)) throw rejection('grant_types must be an array of strings')
  const open = Object.keys(openToAll(declared.grantTypes))
  const unknown = asked.find((grantType) => !open.includes(grantType))
  if (unknown !== undefined) {
    throw rejection(`grant_types may have ${open.join(' and ')} only`, { received: unknown })
  }
  const isStart = (name: string) =>
    name === 'authorization_code' || declared.grantTypes[name]?.withoutRedirect === true
  // RFC 7591 §2.1: the code response type, the only one here, goes with the authorization_code grant.
  if (!asked.some(isStart)) {
    throw rejection('grant_types must have authorization_code, as response_types has code', {
      rule: 'rfc7591-2.1-grant-response-consistency',
      received: asked,
    })
  }
  const granted = open.filter((name) => asked.includes(name) && closed?.has(name) !== true)
  if (granted.some(isStart)) return granted
  // RFC 7591 §3.2.1: the server may leave one out, but not the only one.
  const options = asked.flatMap((name) => closed?.get(name) ?? [])
  throw rejection(`grant_types has none that clients which register themselves can use (${options})`, {
    rule: 'lychgate-grant-type-open',
    received: asked,
  })
}

function assertResponseTypes(members: JsonObject, grantTypes: readonly string[]): void {
  const hasCode = grantTypes.includes('authorization_code')
  const responseTypes = members['response_types'] ?? (hasCode ? ['code'] : [])
  if (!isTextList(responseTypes) || (hasCode && responseTypes.length === 0)) {
    throw rejection('response_types must be a non-empty array of strings')
  }
  if (!responseTypes.every((responseType) => responseType === 'code'))
    throw rejection('response_types may have code only', { received: responseTypes })
  if (hasCode || responseTypes.length === 0) return
  throw rejection('response_types must be empty without the authorization_code grant type', {
    rule: 'rfc7591-2.1-grant-response-consistency',
    received: responseTypes,
  })
}

// Metadata that is validated but has no effect here.
function assertIgnorable(members: JsonObject): void {
  readChoice(members, 'subject_type', ['public'], 'oidc-reg-2-subject-type')
  const [jwks, jwksUri] = [members['jwks'] ?? undefined, readUri(members, 'jwks_uri')]
  if (jwks !== undefined && jwksUri !== undefined) {
    throw rejection('jwks and jwks_uri exclude each other', { rule: 'rfc7591-2-jwks-exclusive' })
  }
  if (jwks === undefined || (typeof jwks === 'object' && !Array.isArray(jwks))) return
  throw rejection('jwks must be an object')
}

function readCeiling(members: JsonObject, catalogue: Scope): Scope | undefined {
  const text = members['scope'] ?? ''
  if (typeof text !== 'string' || !isScope(text)) {
    throw rejection('scope must be a string of scope names separated by spaces', {
      rule: 'rfc7591-2-scope-string',
    })
  }
  const asked = parseScope(text)
  const ceiling = narrowScope(asked, catalogue)
  if (asked.length === 0) return undefined
  if (ceiling.length > 0) return ceiling
  throw rejection('scope has no name that this server knows (the option scopes)', {
    rule: 'rfc7591-2-scope-string',
    received: asked,
  })
}
