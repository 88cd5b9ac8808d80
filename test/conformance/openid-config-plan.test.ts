/** The OpenID Foundation's config certification plan: one module that checks the discovery document. */
import t from 'tap'
import { grantType as deviceGrantType } from '../../src/specs/rfc8628-device-grant/rules/codes.ts'
import { tokenExchange } from '../../src/specs/rfc8693-token-exchange/schema.ts'
import { startServer } from '../helpers/server.ts'
import { json } from '../helpers/wire.ts'

const issuer = 'https://id.example.com'
/** Behind a TLS proxy: it listens on loopback, and its issuer is https. */
const { origin } = await startServer(t, {
  issuer,
  service: {
    documentation: 'https://docs.example.com',
    policy: 'https://example.com/privacy',
    terms: 'https://example.com/terms',
  },
})
const response = await fetch(`${origin}/.well-known/openid-configuration`)
const metadata = await json(response)
const listOf = (name: string) => metadata[name] as string[]

/** The registered names of OAuth authorization server metadata and OpenID Connect Discovery. */
const registered: Readonly<Record<string, 'url' | 'list' | 'flag'>> = {
  issuer: 'url',
  authorization_endpoint: 'url',
  token_endpoint: 'url',
  userinfo_endpoint: 'url',
  jwks_uri: 'url',
  registration_endpoint: 'url',
  revocation_endpoint: 'url',
  pushed_authorization_request_endpoint: 'url',
  device_authorization_endpoint: 'url',
  require_pushed_authorization_requests: 'flag',
  introspection_endpoint: 'url',
  end_session_endpoint: 'url',
  service_documentation: 'url',
  op_policy_uri: 'url',
  op_tos_uri: 'url',
  scopes_supported: 'list',
  response_types_supported: 'list',
  response_modes_supported: 'list',
  grant_types_supported: 'list',
  acr_values_supported: 'list',
  subject_types_supported: 'list',
  id_token_signing_alg_values_supported: 'list',
  token_endpoint_auth_methods_supported: 'list',
  revocation_endpoint_auth_methods_supported: 'list',
  introspection_endpoint_auth_methods_supported: 'list',
  token_endpoint_auth_signing_alg_values_supported: 'list',
  revocation_endpoint_auth_signing_alg_values_supported: 'list',
  introspection_endpoint_auth_signing_alg_values_supported: 'list',
  dpop_signing_alg_values_supported: 'list',
  code_challenge_methods_supported: 'list',
  prompt_values_supported: 'list',
  protected_resources: 'list',
  claim_types_supported: 'list',
  claims_supported: 'list',
  userinfo_signing_alg_values_supported: 'list',
  ui_locales_supported: 'list',
  claims_locales_supported: 'list',
  claims_parameter_supported: 'flag',
  request_parameter_supported: 'flag',
  request_uri_parameter_supported: 'flag',
  require_request_uri_registration: 'flag',
  require_signed_request_object: 'flag',
  request_object_signing_alg_values_supported: 'list',
  authorization_signing_alg_values_supported: 'list',
  authorization_response_iss_parameter_supported: 'flag',
  backchannel_logout_supported: 'flag',
  backchannel_logout_session_supported: 'flag',
  client_id_metadata_document_supported: 'flag',
}
const ofType = (type: string) => Object.keys(metadata).filter((name) => registered[name] === type)

t.test(
  '[oidc-disc-4.2-response] oidcc-discovery-endpoint-verification: the document is JSON, and each member is registered and of its type',
  async (t) => {
    t.equal(response.status, 200)
    t.match(response.headers.get('content-type'), /^application\/json(;|$)/)
    t.strictSame(
      Object.keys(metadata).filter((name) => !(name in registered)),
      [],
      'no member of our own',
    )
    t.equal(ofType('url').length, 14)
    for (const name of ofType('url')) t.ok(URL.canParse(String(metadata[name])), name)
    t.ok(ofType('list').length >= 14)
    for (const name of ofType('list')) {
      const list = listOf(name)
      t.ok(Array.isArray(list) && list.length > 0, name)
      t.equal(new Set(list).size, list.length, `${name} has nothing twice`)
      for (const value of list) t.type(value, 'string', name)
    }
    t.equal(ofType('flag').length, 10)
    for (const name of ofType('flag')) t.type(metadata[name], 'boolean', name)
  },
)

t.test(
  '[oidc-disc-3-issuer] [oidc-disc-4.3-issuer-exact] oidcc-discovery-endpoint-verification: the issuer is https, has no query or fragment, and is the prefix of the URL',
  async (t) => {
    t.equal(metadata['issuer'], issuer)
    const { protocol, search, hash, pathname } = new URL(String(metadata['issuer']))
    t.strictSame([protocol, search, hash], ['https:', '', ''])
    t.notMatch(String(metadata['issuer']), /\/$|[?#]/)
    t.equal(new URL(response.url).pathname, `${pathname}.well-known/openid-configuration`)
  },
)

t.test(
  '[oidc-disc-3-authorization-endpoint] [oidc-disc-3-token-endpoint] [oidc-disc-3-jwks-uri] [oidc-rpl-2.1-metadata] oidcc-discovery-endpoint-verification: every endpoint is https, below the issuer, without fragment',
  async (t) => {
    for (const [name, path, clause] of [
      ['authorization_endpoint', '/oauth/authorize', '[oidc-disc-3-authorization-endpoint]'],
      ['token_endpoint', '/api/oauth/token', '[oidc-disc-3-token-endpoint]'],
      ['userinfo_endpoint', '/api/oauth/userinfo', '[oidc-disc-3-userinfo-endpoint]'],
      ['jwks_uri', '/api/oauth/jwks', '[oidc-disc-3-jwks-uri]'],
      ['registration_endpoint', '/api/oauth/register', '[oidc-disc-3-registration-endpoint]'],
      ['end_session_endpoint', '/oauth/logout', '[oidc-rpl-2.1-metadata]'],
    ] as const)
      t.equal(metadata[name], issuer + path, clause)
    const urls = Object.keys(metadata).filter((name) => /_endpoint$|_uri$/.test(name))
    for (const name of urls) {
      const { protocol, hash } = new URL(String(metadata[name]))
      t.strictSame([protocol, hash], ['https:', ''], name)
    }
  },
)

t.test(
  '[oidc-disc-3-response-types] [oidc-disc-3-subject-types] [oidc-disc-3-id-token-algs] [oidc-disc-3-grant-types] oidcc-discovery-endpoint-verification: the lists contain what the profile needs',
  async (t) => {
    t.strictSame(listOf('response_types_supported'), ['code'], '[oidc-disc-3-response-types]')
    t.strictSame(listOf('subject_types_supported'), ['public'], '[oidc-disc-3-subject-types]')
    const algorithms = listOf('id_token_signing_alg_values_supported')
    t.ok(algorithms.includes('RS256'), '[oidc-disc-3-id-token-algs]')
    t.notOk(algorithms.includes('none'))
    t.strictSame(
      listOf('grant_types_supported'),
      ['authorization_code', 'refresh_token', 'client_credentials', deviceGrantType, tokenExchange],
      '[oidc-disc-3-grant-types]',
    )
    for (const name of ['openid', 'profile', 'email'])
      t.ok(listOf('scopes_supported').includes(name), `[oidc-disc-3-scopes-openid] ${name}`)
    for (const name of ['sub', 'iss', 'auth_time', 'acr', 'name', 'given_name', 'email'])
      t.ok(listOf('claims_supported').includes(name), `[oidc-disc-3-claims-supported] ${name}`)
    t.strictSame(listOf('code_challenge_methods_supported'), ['S256'])
    t.ok(listOf('token_endpoint_auth_methods_supported').includes('client_secret_basic'))
    t.ok(listOf('token_endpoint_auth_methods_supported').includes('client_secret_post'))
    t.strictSame(listOf('claim_types_supported'), ['normal'])
  },
)

t.test(
  '[oidc-disc-3-request-uri-default-true] [oidc-disc-3-optional-lists] oidcc-discovery-endpoint-verification: a flag that defaults to true is true, and locales are language tags',
  async (t) => {
    t.equal(metadata['request_uri_parameter_supported'], true, '[oidc-disc-3-request-uri-default-true]')
    t.equal(metadata['request_parameter_supported'], true)
    t.notMatch(metadata['request_object_signing_alg_values_supported'], /none/)
    t.equal(metadata['claims_parameter_supported'], true)
    const locales = listOf('ui_locales_supported')
    t.strictSame(Intl.getCanonicalLocales([...locales]), locales, 'BCP 47')
    for (const name of ['claims_locales_supported', 'display_values_supported'])
      t.notOk(name in metadata, name)
  },
)
