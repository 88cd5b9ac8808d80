/** The one fault of each profile: where it first differs from the correct issuer, and how. */
interface Lie {
  /** Null means missing. */
  readonly msg: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** The other places that differ, because a client accepted the fault, or because the same value appears there. */
  readonly so?: readonly string[]
}

const elsewhere = 'https://issuer.example'
const [calls, refreshes] = [
  ['second call', 'second refresh'],
  ['first call', 'refresh', 'refreshed id_token', 'second call', 'second refresh'],
]

export const lies: Readonly<Record<string, Lie>> = {
  'metadata-other-issuer': { msg: { metadata: { issuer: elsewhere } } },
  'metadata-issuer-with-slash': { msg: { metadata: { issuer: '{issuer}/' } } },
  'metadata-without-s256': {
    msg: { metadata: { code_challenge_methods_supported: ['plain'] } },
    so: ['callback', 'token', 'id_token', ...refreshes],
  },
  'metadata-http-endpoint': {
    msg: {
      metadata: {
        token_endpoint: 'http://[::ffff:7f00:1]:{port}/_dev/issuers/metadata-http-endpoint/api/oauth/token',
      },
    },
  },
  'metadata-without-token-endpoint': { msg: { metadata: { token_endpoint: null } } },
  'metadata-without-documents': { msg: { metadata: { client_id_metadata_document_supported: null } } },
  'resource-metadata-other-resource': {
    msg: { 'resource metadata': { resource: 'https://api.example' } },
    so: ['challenged'],
  },
  'challenge-foreign-metadata': { msg: { challenged: { resource: 'https://api.example' } } },
  'iss-missing': { msg: { callback: { iss: null } } },
  'iss-wrong': { msg: { callback: { iss: elsewhere } } },
  'iss-with-slash': { msg: { callback: { iss: '{issuer}/' } } },
  'state-missing': { msg: { callback: { state: null } } },
  'state-changed': { msg: { callback: { state: 'a-state0' } } },
  'code-in-fragment': { msg: { callback: { in: 'fragment' } } },
  'code-twice': { msg: { callback: { codes: 2 } } },
  'code-and-error': { msg: { callback: { error: 'access_denied' } } },
  'id-token-bad-signature': { msg: { id_token: { verifies: false } } },
  'id-token-alg-none': { msg: { id_token: { verifies: false, alg: 'none' } } },
  'id-token-unknown-kid': { msg: { id_token: { verifies: false } } },
  'id-token-hmac-with-public-key': { msg: { id_token: { verifies: false, alg: 'HS256' } } },
  'id-token-wrong-iss': { msg: { id_token: { iss: elsewhere } } },
  'id-token-wrong-aud': { msg: { id_token: { aud: ['client_somebody_else'] } } },
  'id-token-second-aud': { msg: { id_token: { aud: ['client', 'client_somebody_else'] } } },
  'id-token-wrong-azp': { msg: { id_token: { azp: 'client_somebody_else' } } },
  'id-token-wrong-nonce': { msg: { id_token: { nonce: 'a-nonce0' } } },
  'id-token-without-nonce': { msg: { id_token: { nonce: null } } },
  'id-token-expired': { msg: { id_token: { lives: -3600 } } },
  'id-token-without-exp': { msg: { id_token: { lives: null } } },
  'id-token-without-sub': { msg: { id_token: { sub: null } } },
  'id-token-wrong-at-hash': { msg: { id_token: { isHashRight: false } } },
  'id-token-missing': { msg: { token: { id_token: null } }, so: ['id_token'] },
  'keys-swapped': { msg: { id_token: { verifies: false } }, so: ['refreshed id_token'] },
  'userinfo-other-sub': { msg: { 'first call': { sub: 'user_somebody_else' } }, so: ['second call'] },
  'userinfo-without-sub': { msg: { 'first call': { sub: null } }, so: ['second call'] },
  'token-type-odd': { msg: { token: { token_type: 'Bearer2' } } },
  'token-type-missing': { msg: { token: { token_type: null } } },
  'expires-in-string': { msg: { token: { expires_in: '3600' } }, so: ['first call'] },
  'scope-narrowed-silently': {
    msg: { token: { scope: null } },
    so: ['first call', 'refresh', 'second call'],
  },
  'error-as-200': {
    msg: {
      token: {
        access_token: null,
        token_type: null,
        expires_in: null,
        refresh_token: null,
        scope: null,
        id_token: null,
        error: 'invalid_grant',
      },
    },
    so: ['id_token', ...refreshes],
  },
  'html-as-tokens': {
    msg: {
      token: {
        type: 'text/html; charset=utf-8',
        access_token: null,
        token_type: null,
        expires_in: null,
        refresh_token: null,
        scope: null,
        id_token: null,
      },
    },
    so: ['id_token', ...refreshes],
  },
  'refresh-empty': {
    msg: {
      refresh: {
        access_token: null,
        token_type: null,
        expires_in: null,
        refresh_token: null,
        scope: null,
        id_token: null,
      },
    },
    so: ['refreshed id_token', ...calls],
  },
  'refresh-without-access-token': {
    msg: { refresh: { access_token: null } },
    so: ['refreshed id_token', 'second call'],
  },
  'refresh-without-refresh-token': { msg: { refresh: { refresh_token: null } }, so: ['second refresh'] },
  'refresh-other-sub': { msg: { 'refreshed id_token': { sub: 'user_somebody_else' } } },
  'introspection-active-text': { msg: { introspection: { active: 'false' } } },
  'service-refresh-token': {
    msg: { 'service token': { refresh_token: 'string' } },
    so: ['service refresh'],
  },
  'service-token-type-missing': {
    msg: { 'service token': { token_type: null } },
    so: ['bound token', 'bound call'],
  },
  'service-without-access-token': {
    msg: { 'service token': { access_token: null, id_token: 'string' } },
    so: ['service call', 'bound call'],
  },
  'assertion-hmac-only': {
    msg: { metadata: { token_endpoint_auth_signing_alg_values_supported: ['HS256', 'none'] } },
    so: ['service metadata', 'service token', 'service call'],
  },
  'assertion-other-audience': {
    msg: {
      'service token': {
        status: 400,
        access_token: null,
        token_type: null,
        expires_in: null,
        scope: null,
        error: 'invalid_client',
        error_description: 'aud must be https://issuer.example',
      },
    },
    so: ['service call', 'bound token', 'bound call'],
  },
  'dpop-nonce-endless': { msg: { 'bound token': { status: 400, token_type: null } }, so: ['bound call'] },
  'dpop-hmac-only': {
    msg: { metadata: { dpop_signing_alg_values_supported: ['HS256', 'none'] } },
    so: ['key metadata', 'bound token', 'bound call'],
  },
  'dpop-token-as-bearer': { msg: { 'bound token': { token_type: 'Bearer' } }, so: ['bound call'] },
  'pushed-expires-at-once': { msg: { pushed: { seconds: 0 } } },
  'request-object-hmac-only': {
    msg: { metadata: { request_object_signing_alg_values_supported: ['HS256', 'none'] } },
    so: ['signed request'],
  },
  'step-up-endless': {
    msg: { 'first call': { api: 401 } },
    so: ['second call', 'service call', 'bound call', 'step up'],
  },
}
