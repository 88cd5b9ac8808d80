/** The one lie of each profile: where it differs from the true issuer first, and how. */
interface Lie {
  /** Null is what is missing. */
  readonly says: Readonly<Record<string, Readonly<Record<string, unknown>>>>
  /** The places that differ, too, because somebody believed it, or because the same is said there. */
  readonly so?: readonly string[]
}

const elsewhere = 'https://issuer.example'
const [calls, refreshes] = [
  ['second call', 'second refresh'],
  ['first call', 'refresh', 'refreshed id_token', 'second call', 'second refresh'],
]

export const lies: Readonly<Record<string, Lie>> = {
  'metadata-other-issuer': { says: { metadata: { issuer: elsewhere } } },
  'metadata-issuer-with-slash': { says: { metadata: { issuer: '{issuer}/' } } },
  'metadata-without-s256': {
    says: { metadata: { code_challenge_methods_supported: ['plain'] } },
    so: ['callback', 'token', 'id_token', ...refreshes],
  },
  'metadata-http-endpoint': {
    says: {
      metadata: {
        token_endpoint: 'http://[::ffff:7f00:1]:{port}/_dev/issuers/metadata-http-endpoint/api/oauth/token',
      },
    },
  },
  'metadata-without-token-endpoint': { says: { metadata: { token_endpoint: null } } },
  'resource-metadata-other-resource': {
    says: { 'resource metadata': { resource: 'https://api.example' } },
    so: ['challenged'],
  },
  'challenge-foreign-metadata': { says: { challenged: { resource: 'https://api.example' } } },
  'iss-missing': { says: { callback: { iss: null } } },
  'iss-wrong': { says: { callback: { iss: elsewhere } } },
  'iss-with-slash': { says: { callback: { iss: '{issuer}/' } } },
  'state-missing': { says: { callback: { state: null } } },
  'state-changed': { says: { callback: { state: 'a-state0' } } },
  'code-in-fragment': { says: { callback: { in: 'fragment' } } },
  'code-twice': { says: { callback: { codes: 2 } } },
  'code-and-error': { says: { callback: { error: 'access_denied' } } },
  'id-token-bad-signature': { says: { id_token: { verifies: false } } },
  'id-token-alg-none': { says: { id_token: { verifies: false, alg: 'none' } } },
  'id-token-unknown-kid': { says: { id_token: { verifies: false } } },
  'id-token-hmac-with-public-key': { says: { id_token: { verifies: false, alg: 'HS256' } } },
  'id-token-wrong-iss': { says: { id_token: { iss: elsewhere } } },
  'id-token-wrong-aud': { says: { id_token: { aud: ['client_somebody_else'] } } },
  'id-token-second-aud': { says: { id_token: { aud: ['client', 'client_somebody_else'] } } },
  'id-token-wrong-azp': { says: { id_token: { azp: 'client_somebody_else' } } },
  'id-token-wrong-nonce': { says: { id_token: { nonce: 'a-nonce0' } } },
  'id-token-without-nonce': { says: { id_token: { nonce: null } } },
  'id-token-expired': { says: { id_token: { lives: -3600 } } },
  'id-token-without-exp': { says: { id_token: { lives: null } } },
  'id-token-without-sub': { says: { id_token: { sub: null } } },
  'id-token-wrong-at-hash': { says: { id_token: { isHashRight: false } } },
  'id-token-missing': { says: { token: { id_token: null } }, so: ['id_token'] },
  'keys-swapped': { says: { id_token: { verifies: false } }, so: ['refreshed id_token'] },
  'userinfo-other-sub': { says: { 'first call': { sub: 'person_somebody_else' } }, so: ['second call'] },
  'userinfo-without-sub': { says: { 'first call': { sub: null } }, so: ['second call'] },
  'token-type-odd': { says: { token: { token_type: 'Bearer2' } } },
  'token-type-missing': { says: { token: { token_type: null } } },
  'expires-in-string': { says: { token: { expires_in: '3600' } }, so: ['first call'] },
  'scope-narrowed-silently': {
    says: { token: { scope: null } },
    so: ['first call', 'refresh', 'second call'],
  },
  'error-as-200': {
    says: {
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
    says: {
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
    says: {
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
    says: { refresh: { access_token: null } },
    so: ['refreshed id_token', 'second call'],
  },
  'refresh-without-refresh-token': { says: { refresh: { refresh_token: null } }, so: ['second refresh'] },
  'refresh-other-sub': { says: { 'refreshed id_token': { sub: 'person_somebody_else' } } },
  'introspection-active-text': { says: { introspection: { active: 'false' } } },
}
