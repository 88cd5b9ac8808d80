import type { RuleFault } from './fault.ts'

/** Faults of one file, each a violation of a MUST: the rule, the code, and its replacement. */
function breaking(
  file: string,
  ...edits: readonly (readonly [rule: string, find: string, replace: string])[]
): readonly RuleFault[] {
  return edits.map(([rule, find, replace]) => ({ id: `break-${rule}`, rule, file, find, replace }))
}

const advertised = 'issuer,\n    ...publishedMetadata.apply(metadata.all()),'
const grantTypes = 'grant_types_supported: Object.keys(deps.declared.grantTypes)'
const supported = 'assertSupported(parameters)\n  assertCodeFlow'
const rejecting = (rule: string, name: string) =>
  `check(parameters['${name}'] === undefined, '${rule}', 'invalid_request', '${name}', { passed: '' })\n  ${supported}`
const matches = "matches,\n    matches ? 'rfc8252-7.3-any-port'"
const foreign = "if (foreign < 0 || policy.foreignRedirects === 'drop') return accepted"

/** Faults against MUSTs that no fault of the other files covers. */
export const mustFaults: readonly RuleFault[] = [
  ...breaking(
    'src/specs/rfc6749-authorization/authorize.ts',
    ['mcp-discovery-pkce-in-oidc-document', "code_challenge_methods_supported: ['S256'],", ''],
    ['rfc8414-2-code-challenge-methods', "code_challenge_methods_supported: ['S256'],", ''],
    [
      'rfc8414-2-response-modes-default',
      'response_modes_supported: [...coreResponseModes, ...Object.keys(declared.responseModes)],',
      '',
    ],
    [
      'oidc-disc-3-response-types',
      "response_types_supported: ['code'],",
      "response_types_supported: ['token'],",
    ],
  ),
  ...breaking('src/specs/rfc9101-request-objects/plugin.ts', [
    'oidc-disc-3-request-param',
    'request_parameter_supported: true,',
    'request_parameter_supported: false,',
  ]),
  ...breaking(
    'src/specs/rfc6749-authorization/plugin.ts',
    ['oidc-disc-3-grant-types', grantTypes, ''],
    ['rfc8414-2-grant-types-default', grantTypes, "grant_types_supported: ['implicit']"],
  ),
  ...breaking(
    'src/specs/rfc6749-authorization/token.ts',
    [
      'oidc-disc-3-auth-methods',
      'app.seams.metadata.add({ token_endpoint_auth_methods_supported: Object.keys(declared.clientAuthentication) })',
      '',
    ],
    ['rfc8414-2-token-endpoint', "endpoint: 'token', ", ''],
    ['oidc-disc-3-token-endpoint', "endpoint: 'token', ", ''],
  ),
  ...breaking(
    'src/specs/rfc8414-metadata/plugin.ts',
    ['rfc8414-2-issuer', advertised, '...publishedMetadata.apply(metadata.all()),'],
    [
      'oidc-disc-3-issuer',
      advertised,
      '...publishedMetadata.apply(metadata.all()),\n    issuer: issuer.toUpperCase(),',
    ],
    [
      'oidc-disc-4.3-issuer-exact',
      advertised,
      '...publishedMetadata.apply(metadata.all()),\n    issuer: `${issuer}/`,',
    ],
    [
      'rfc9207-2.3-identical-to-metadata',
      advertised,
      '...publishedMetadata.apply(metadata.all()),\n    issuer: `${issuer}/`,',
    ],
    [
      'oidc-disc-3-scopes-openid',
      'scopes_supported: [...service.openScopes],',
      "scopes_supported: [...service.openScopes].filter((name) => name !== 'openid'),",
    ],
    [
      'mcp-overview-discovery-either',
      "pathsOf('oauth-authorization-server')",
      "pathsOf('oauth-authorization')",
    ],
    ['service-4-asm-path', "pathsOf('oauth-authorization-server')", "pathsOf('oauth-authorization')"],
    ['service-4-oidc-path', "pathsOf('openid-configuration')", "pathsOf('openid')"],
    ['oidc-disc-4-path-appended', '`${prefix}/.well-known/${name}`', '`/.well-known/${name}`'],
    [
      'rfc8414-3.2-no-empty-arrays',
      'scopes_supported: [...service.openScopes],',
      'scopes_supported: [...service.openScopes],\n    claims_locales_supported: [],',
    ],
  ),
  ...breaking(
    'src/domain/pkce.ts',
    [
      'rfc7636-4.4.1-challenge-required',
      'codeChallengeMethod === undefined && optional',
      'codeChallengeMethod === undefined',
    ],
    [
      'oauth21-4.1.1-pkce-for-all',
      'codeChallengeMethod === undefined && optional',
      'codeChallengeMethod === undefined',
    ],
    [
      'service-4-authorize-code-challenge',
      'codeChallengeMethod === undefined && optional',
      'codeChallengeMethod === undefined',
    ],
    ['service-4-authorize-ccm', "codeChallengeMethod === 'S256'", "codeChallengeMethod !== ''"],
    [
      'rfc7636-4.2-s256-mandatory',
      "hash('sha256', codeVerifier, 'base64url')",
      "hash('sha384', codeVerifier, 'base64url')",
    ],
    [
      'rfc7636-4.6-verify-s256',
      "hash('sha256', codeVerifier, 'base64url')",
      "hash('sha512', codeVerifier, 'base64url')",
    ],
  ),
  ...breaking(
    'src/domain/authorization-request.ts',
    ['rfc6749-3.1.1-response-type-unknown', "responseType === 'code'", "responseType !== ''"],
    ['service-4-authorize-response-type', "responseType === 'code'", "responseType !== ''"],
    [
      'oidc-core-3.1.2.6-registration-not-supported',
      "parameters['registration'] === undefined",
      "parameters['registration'] !== ''",
    ],
    [
      'oidc-core-6.2-request-uri-unsupported',
      "parameters['request_uri'] === undefined",
      "parameters['request_uri'] !== ''",
    ],
    ['oidc-core-5.2-claims-locales', supported, rejecting('oidc-core-5.2-claims-locales', 'claims_locales')],
    [
      'oidc-core-15.1-prompt-display-locales-acr',
      supported,
      rejecting('oidc-core-15.1-prompt-display-locales-acr', 'display'),
    ],
    [
      'oidc-core-3.1.2.1-display-accepted',
      supported,
      rejecting('oidc-core-3.1.2.1-display-accepted', 'display'),
    ],
    ['oidc-core-3.1.2.1-acr-values', supported, rejecting('oidc-core-3.1.2.1-acr-values', 'acr_values')],
    ['service-4-authorize-redirect-uri', matches, "true,\n    matches ? 'rfc8252-7.3-any-port'"],
    ['rfc9126-7.2-new-redirects-authenticated', matches, "true,\n    matches ? 'rfc8252-7.3-any-port'"],
    [
      'rfc6749-3.3-scope-omitted',
      'defaultScopeAt(resource, policy.resources).filter(isOpen)',
      '[...policy.scopes].filter(isOpen)',
    ],
    ['oidc-reg-2-require-auth-time', 'client.requireAuthTime ||', ''],
  ),
  ...breaking(
    'src/domain/scope.ts',
    [
      'rfc6749-3.3-scope-order-irrelevant',
      "[...new Set(text.split(' ').filter((name) => name !== ''))]",
      "text.split(' ').filter((name) => name !== '')",
    ],
    ['oidc-core-14-space-delimiter', "text.split(' ')", 'text.split(/[ ,+]/)'],
    ['service-4-authorize-scope-list', "text.split(' ')", "text.split(',')"],
  ),
  ...breaking('src/domain/client-authentication.ts', [
    'rfc6749-3.2.1-public-sends-client-id',
    "clientId !== undefined || method.findClientId !== undefined,\n    'rfc6749-3.2.1-public-sends-client-id'",
    "true,\n    'rfc6749-3.2.1-public-sends-client-id'",
  ]),
  ...breaking(
    'src/specs/rfc6749-authorization/client-secret.ts',
    [
      'oauth21-2.4.1-secret-post-mandatory',
      "single(parameters, 'client_secret')",
      "single(parameters, 'secret')",
    ],
    [
      'service-4-token-secret-form-field',
      "single(parameters, 'client_secret')",
      "single(parameters, 'secret')",
    ],
    [
      'rfc6749-2.3.1-basic-supported',
      '/^basic +([A-Za-z0-9+/]+={0,2}) *$/i',
      '/^none +([A-Za-z0-9+/]+={0,2}) *$/i',
    ],
  ),
  ...breaking(
    'src/domain/bearer.ts',
    ['service-5-bearer-api-calls', "scheme = 'Bearer'", "scheme = 'token'"],
    [
      'service-5-invalid-token-points-to-prm',
      '`resource_metadata="${resourceMetadata}"`',
      'error !== \'invalid_token\' && `resource_metadata="${resourceMetadata}"`',
    ],
    [
      'service-5-insufficient-scope-points-to-prm',
      '`resource_metadata="${resourceMetadata}"`',
      'error !== \'insufficient_scope\' && `resource_metadata="${resourceMetadata}"`',
    ],
  ),
  ...breaking(
    'src/specs/oidc-core/rules.ts',
    ['oidc-core-2-iss', 'iss: facts.issuer', 'iss: `${facts.issuer}/`'],
    ['oidc-core-2-sub', 'sub: facts.sub', 'sub: facts.sub.repeat(12)'],
    ['oidc-core-5.3.2-sub-always', 'sub: facts.sub', 'sub: grant.clientId'],
  ),
  ...breaking(
    'src/clients/metadata.ts',
    [
      'oidc-reg-2-application-type-values',
      "['native', 'web'], 'oidc-reg-2-application-type-values'",
      "['native', 'web', 'desktop', 'browser'], 'oidc-reg-2-application-type-values'",
    ],
    [
      'oidc-reg-2-subject-type',
      "readChoice(members, 'subject_type', ['public'], 'oidc-reg-2-subject-type')",
      '',
    ],
    [
      'rfc6749-3.1.2.2-public-must-register',
      "members['redirect_uris'] ?? undefined",
      "members['redirect_uris'] ?? ['http://127.0.0.1/callback']",
    ],
    ['rfc7591-5-redirects-required', foreign, 'if (foreign >= -1) return uris'],
    ['rfc9700-2.1-no-http-redirects', foreign, 'if (foreign >= -1) return uris'],
    ['oidc-reg-2-native-redirects', foreign, 'if (foreign >= -1) return uris'],
    ['rfc8252-8.4-complete-uri', foreign, 'if (foreign >= -1) return uris'],
    ['rfc6749-3.1.2-redirect-absolute', foreign, 'if (foreign >= -1) return uris'],
    ['rfc6749-3.1.2-redirect-no-fragment', foreign, 'if (foreign >= -1) return uris'],
  ),
  ...breaking(
    'src/clients/core-members.ts',
    ['oidc-reg-2-application-type-default', "    property: 'applicationType',\n", ''],
    ['service-2-reg-application-type-native', "property: 'applicationType'", "show: () => 'web'"],
    ['oidc-reg-2-id-token-alg', "?? 'RS256'", "?? 'ES256'"],
    ['service-2-reg-client-name', "    property: 'name',\n", ''],
  ),
  ...breaking(
    'src/clients/describe.ts',
    [
      'rfc7591-3.2.1-issued-at-number',
      'client_id_issued_at: client.issuedAt',
      'client_id_issued_at: client.issuedAt * 1000',
    ],
    ['service-2-reg-response-client-id', 'client_id: client.id,', ''],
  ),
  ...breaking(
    'src/specs/rfc7591-registration/rules.ts',
    ['rfc6749-2.2-client-id-unique', "`client_${fresh.clientId.toString('base64url')}`", "'client_of_all'"],
    [
      'service-2-reg-auth-post',
      'if (!usesSecret(authenticationMethod, policy)) return { client, registrationToken }',
      "if (authenticationMethod !== '') return { client, registrationToken }",
    ],
  ),
  ...breaking(
    'src/specs/rfc7662-introspection/plugin.ts',
    ['rfc7662-2.1-token-required', 'const { token } = request.body', "const { token = '' } = request.body"],
    ['rfc7662-2.2-inactive-form', '{ active: false }', '{ active: false, iss: service.issuer }'],
    ['rfc7662-2.2-active-boolean', '{ active: false }', '{ active: true }'],
    [
      'rfc7662-2.2-aud-shows-resource',
      'audience !== undefined && others.length === 0 ? audience : [...facts.resource]',
      'service.issuer',
    ],
    [
      'rfc8414-2-introspection-endpoint',
      'introspection_endpoint_auth_methods_supported: Object.keys(declared.clientAuthentication),',
      '',
    ],
  ),
  ...breaking(
    'src/specs/rfc9126-pushed-requests/plugin.ts',
    ['rfc9126-2-endpoint', "'/api/oauth/par',", "'/api/oauth/push',"],
    ['rfc9126-2-client-auth-as-token', "'/api/oauth/par',", "'/api/oauth/push',"],
    ['rfc9126-2.2-created', 'reply.code(201)', 'reply.code(200)'],
  ),
  ...breaking(
    'src/specs/rfc7591-registration/plugin.ts',
    ['service-4-register-path', "'/api/oauth/register',", "'/api/oauth/registration',"],
    ['service-4-asm-registration-endpoint', "endpoint: 'registration',", ''],
    ['service-5-registration-open', 'reply.code(201)', 'reply.code(401)'],
  ),
]
