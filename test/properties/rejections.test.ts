import t from 'tap'
import { parseClientMetadata } from '../../src/clients/metadata.ts'
import { parseAuthorizationRequest, resolveRedirectUri } from '../../src/domain/authorization-request.ts'
import { indexScopeClaims } from '../../src/domain/claims.ts'
import { OAuthError } from '../../src/domain/errors.ts'
import { assertNoneRepeated, type Parameters, parseParameters } from '../../src/domain/parameters.ts'
import { parseResource } from '../../src/domain/resource.ts'
import { defaultScopeCatalogue } from '../../src/domain/scope-catalogue.ts'
import { declared } from '../../src/features.ts'
import { parseLogoutRequest } from '../../src/specs/oidc-logout/rules.ts'
import { readCredentials } from '../helpers/client-methods.ts'
import { fc } from '../helpers/generated.ts'
import { operatorClient, publicClient, resources } from '../helpers/samples.ts'

/** A marker in every value, so that a description that quotes one is detected. */
const marker = 'zqx'
const value = fc
  .oneof(
    fc.string({ unit: 'binary', maxLength: 12 }),
    fc.constantFrom(
      '',
      '"',
      '\\',
      '\r\n',
      '\u00e5',
      '\0',
      'none',
      'code',
      'S256',
      'openid',
      '0',
      '{}',
      '{"userinfo":1}',
      '\u202e',
    ),
    fc.constantFrom(
      publicClient.id,
      operatorClient.id,
      'http://127.0.0.1:51004/callback',
      'https://api.example/',
    ),
  )
  .chain((text) => fc.constantFrom(text, `${marker}${text}`, `${text}${marker}`))
const name = fc.constantFrom(
  ...[
    'client_id',
    'client_secret',
    'redirect_uri',
    'response_type',
    'response_mode',
    'state',
    'scope',
    'resource',
  ],
  ...[
    'code_challenge',
    'code_challenge_method',
    'prompt',
    'max_age',
    'claims',
    'request',
    'request_uri',
    'registration',
  ],
  ...[
    'nonce',
    'login_hint',
    'id_token_hint',
    'post_logout_redirect_uri',
    '__proto__',
    `${marker}"`,
    '\u00e5',
  ],
)
const parameters: fc.Arbitrary<Parameters> = fc
  .array(
    fc.tuple(
      name,
      fc.oneof({ weight: 8, arbitrary: value }, fc.array(value, { minLength: 2, maxLength: 3 })),
    ),
    { maxLength: 10 },
  )
  .map((pairs) => Object.fromEntries(pairs))

const scopes = defaultScopeCatalogue.map(({ name }) => name)
const policy = {
  scopes: new Set(scopes),
  openScopes: new Set(scopes),
  scopeClaims: indexScopeClaims(defaultScopeCatalogue),
  resources,
}
const registration = {
  loopbackHosts: [],
  foreignRedirects: 'refuse',
  redirectUris: 5,
  metadataBytes: 8192,
  declared,
  scopes,
  algorithms: ['RS256'],
} as const
const proven = { redirectUri: 'http://127.0.0.1/cb', redirectUriSent: true, responseMode: 'query' } as const

/** The error codes of RFC 6749 §4.1.2.1 and §5.2 and their extensions; written out, not imported. */
const codes = (
  'invalid_request invalid_client invalid_grant unauthorized_client unsupported_grant_type unsupported_response_type ' +
  'invalid_scope access_denied invalid_token insufficient_scope invalid_redirect_uri invalid_client_metadata ' +
  'invalid_target login_required consent_required account_selection_required request_not_supported ' +
  'request_uri_not_supported registration_not_supported'
).split(' ')

/** What is wrong with the error a call throws; returned values do not matter here. */
function faultOf(call: () => unknown): string | undefined {
  try {
    call()
    return undefined
  } catch (error) {
    if (!(error instanceof OAuthError)) return `it throws ${error}`
    if (!codes.includes(error.code)) return `code ${error.code}`
    const characters = Array.from({ length: error.message.length }, (_, at) => error.message.charCodeAt(at))
    const isAllowed = (code: number) => code >= 0x20 && code <= 0x7e && code !== 0x22 && code !== 0x5c
    if (error.message === '' || !characters.every(isAllowed))
      return `description ${JSON.stringify(error.message)}`
    if (error.message.includes(marker)) return `it quotes: ${error.message}`
    const challenge = error.headers['www-authenticate'] ?? ''
    return challenge.includes(marker) ? `it quotes in the challenge: ${challenge}` : undefined
  }
}

function assertNoFault<T>(input: fc.Arbitrary<T>, call: (input: T) => unknown): void {
  fc.assert(
    fc.property(input, (each) => {
      const fault = faultOf(() => call(each))
      if (fault !== undefined) throw new Error(fault)
    }),
    { numRuns: 3000 },
  )
}

t.test(
  'every rejected form has a registered error code and a description in its charset that quotes nothing',
  async (t) => {
    const body = fc
      .array(fc.tuple(name, value), { maxLength: 6 })
      .map((pairs) => pairs.map((each) => each.join('=')).join('&'))
    assertNoFault(body, (text) =>
      assertNoneRepeated(parseParameters(text, { parameters: 5, parameterBytes: 16 })),
    )
    assertNoFault(parameters, assertNoneRepeated)
    t.pass()
  },
)

t.test('every rejected client authentication does', async (t) => {
  const header = fc.option(
    value.chain((text) =>
      fc.constantFrom(
        text,
        `Basic ${text}`,
        `Bearer ${text}`,
        `Basic ${btoa(encodeURIComponent(text.toWellFormed()))}`,
      ),
    ),
    { nil: undefined },
  )
  assertNoFault(fc.tuple(header, parameters, fc.boolean()), ([authorization, given, alwaysUnauthorized]) =>
    readCredentials(authorization, given, alwaysUnauthorized),
  )
  t.pass()
})

t.test('every rejected authorization request does', async (t) => {
  const client = fc.constantFrom(publicClient, operatorClient, {
    ...operatorClient,
    pkceOptional: true,
    scope: ['openid'],
  })
  assertNoFault(fc.tuple(parameters, client), ([given, by]) => resolveRedirectUri(given, by))
  const nearly = parameters.map(
    (given): Parameters => ({
      response_type: 'code',
      scope: 'openid email',
      code_challenge: 'A'.repeat(43),
      code_challenge_method: 'S256',
      ...given,
    }),
  )
  const hinted = fc.option(value, { nil: undefined })
  assertNoFault(fc.tuple(fc.oneof(parameters, nearly), client, hinted), ([given, by, sub]) =>
    parseAuthorizationRequest(given, by, proven, policy, sub),
  )
  assertNoFault(fc.array(value, { maxLength: 3 }), (identifiers) => parseResource(identifiers, resources))
  t.pass()
})

t.test('every rejected registration and sign-out does', async (t) => {
  const member = fc.oneof(value, fc.array(value, { maxLength: 6 }), fc.jsonValue() as fc.Arbitrary<unknown>)
  const members = fc.constantFrom(
    ...['redirect_uris', 'client_name', 'client_name#fr', 'client_uri', 'contacts', 'scope', 'grant_types'],
    ...[
      'response_types',
      'application_type',
      'token_endpoint_auth_method',
      'subject_type',
      'jwks',
      'jwks_uri',
      `${marker}"`,
    ],
    ...[
      'id_token_signed_response_alg',
      'default_max_age',
      'require_auth_time',
      'post_logout_redirect_uris',
      'software_id',
    ],
  )
  const metadata = fc
    .array(fc.tuple(members, member), { maxLength: 5 })
    .map((pairs) => Object.fromEntries(pairs))
  const nearly = metadata.map((each) => ({ redirect_uris: ['http://127.0.0.1/cb'], ...each }))
  assertNoFault(fc.oneof(metadata, nearly), (each) => parseClientMetadata(each, registration))
  const claims = fc.option(fc.record({ sub: value, aud: fc.oneof(value, fc.constant(publicClient.id)) }), {
    nil: undefined,
  })
  assertNoFault(fc.tuple(parameters, claims), ([given, hint]) =>
    parseLogoutRequest(given, hint, publicClient),
  )
  t.pass()
})
