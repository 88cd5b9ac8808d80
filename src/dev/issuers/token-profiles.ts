import type { FastifyRequest } from 'fastify'
import { isObject } from '../../domain/is-object.ts'
import {
  inClaims,
  inJson,
  insteadOfTokens,
  inTokens,
  remove,
  replace,
  replaceIdToken,
  set,
  signedByPublicKey,
  signedByStranger,
  swapKeys,
  unsigned,
  wronglySigned,
} from './changes.ts'
import {
  callsAnyway,
  keepsUsingTokens,
  onlyReported,
  repeatsTheRejected,
  showsNoToken,
  usesAnyToken,
  usesTheExpired,
  usesTheTokens,
} from './criteria.ts'
import { type Profile, profilesOf } from './profile.ts'

const otherClient = 'client_somebody_else'
const otherUser = { sub: 'user_somebody_else' }
const [json, html] = ['application/json; charset=utf-8', 'text/html; charset=utf-8']
const captivePortal = '<!doctype html><title>Sign in to the network</title><p>Please sign in to continue.'
const withZero = (value: unknown) => `${value}0`

/** The signature or a claim of the first ID Token is wrong, or the keys for it, or UserInfo. */
export const idTokens: readonly Profile[] = profilesOf(usesTheTokens, {
  'id-token-bad-signature': {
    ledger: 'oidc-core-2-signed',
    title: 'the signature of the ID Token does not verify',
    sound: 'verifies it with the keys at jwks_uri, OpenID Connect Core §3.1.3.7 (6)',
    alter: inTokens('authorization_code', replaceIdToken(wronglySigned)),
  },
  'id-token-alg-none': {
    ledger: 'oidc-core-2-signed',
    title: 'the ID Token is not signed: alg is none',
    sound:
      'accepts only the algorithm it registered, RS256 by default, and never takes it from the token, OpenID Connect Core §3.1.3.7 (7)',
    alter: inTokens('authorization_code', replaceIdToken(unsigned)),
  },
  'id-token-unknown-kid': {
    ledger: 'oidc-core-10.1-published-key',
    title: 'the ID Token is signed by a key that is not at jwks_uri',
    sound:
      'fetches the keys again, and rejects the token if the kid is still missing, OpenID Connect Core §10.1.1',
    alter: inTokens(
      'authorization_code',
      replaceIdToken((jws) => signedByStranger(jws, 'nobody-knows-this-key')),
    ),
  },
  'id-token-hmac-with-public-key': {
    ledger: 'oidc-core-10.1-no-symmetric-public',
    title: 'the ID Token is signed with HMAC, with the public key as the secret',
    sound: 'accepts only the algorithm it registered, and never uses the key with another one, RFC 8725 §3.1',
    alter: inTokens(
      'authorization_code',
      replaceIdToken((jws, { keys }) => signedByPublicKey(jws, keys)),
    ),
  },
  'id-token-wrong-iss': {
    ledger: 'oidc-core-2-iss',
    title: 'iss in the ID Token is another issuer',
    sound: 'compares iss with the issuer it discovered, OpenID Connect Core §3.1.3.7 (2)',
    alter: inFirstClaims(set({ iss: 'https://issuer.example' })),
  },
  'id-token-wrong-aud': {
    ledger: 'oidc-core-2-aud',
    title: 'aud in the ID Token is another client',
    sound: 'rejects an aud without its own client_id, OpenID Connect Core §3.1.3.7 (3)',
    alter: inFirstClaims(set({ aud: otherClient })),
  },
  'id-token-second-aud': {
    ledger: 'oidc-core-2-aud',
    title: 'aud in the ID Token contains a second, untrusted client',
    sound: 'rejects audiences it does not trust, OpenID Connect Core §3.1.3.7 (3)',
    alter: inFirstClaims(replace('aud', (client) => [client, otherClient])),
  },
  'id-token-wrong-azp': {
    ledger: 'oidc-core-2-azp',
    title: 'azp in the ID Token is another client',
    sound: 'compares azp, if present, with its own client_id, OpenID Connect Core §3.1.3.7 (5)',
    alter: inFirstClaims(set({ azp: otherClient })),
  },
  'id-token-wrong-nonce': {
    ledger: 'oidc-core-2-nonce',
    title: 'nonce in the ID Token is another value',
    sound: 'compares nonce with the one it sent, OpenID Connect Core §3.1.3.7 (11)',
    alter: inFirstClaims(replace('nonce', withZero)),
  },
  'id-token-without-nonce': {
    ledger: 'oidc-core-2-nonce',
    title: 'the nonce that was sent is missing from the ID Token',
    sound: 'rejects an ID Token without the nonce it sent, OpenID Connect Core §3.1.3.7 (11)',
    alter: inFirstClaims(remove('nonce')),
  },
  'id-token-expired': {
    ledger: 'oidc-core-2-exp-iat',
    title: 'the ID Token expired an hour ago',
    sound:
      'compares exp with the current time, with a tolerance of a few minutes at most, OpenID Connect Core §3.1.3.7 (9)',
    alter: inFirstClaims((claims) => ({ ...claims, exp: Number(claims['iat']) - 3600 })),
  },
  'id-token-without-exp': {
    ledger: 'oidc-core-2-exp-iat',
    title: 'exp is missing from the ID Token',
    sound: 'rejects an ID Token without a required claim',
    alter: inFirstClaims(remove('exp')),
  },
  'id-token-without-sub': {
    ledger: 'oidc-core-2-sub',
    title: 'sub is missing from the ID Token',
    sound: 'rejects an ID Token without a required claim',
    alter: inFirstClaims(remove('sub')),
  },
  'id-token-wrong-at-hash': {
    ledger: 'oidc-core-3.1.3.6-at-hash',
    title: 'at_hash in the ID Token belongs to another access token',
    sound:
      'may compare it with the access token, OpenID Connect Core §3.1.3.8; a client that does not is fooled here, but breaks no rule',
    alter: inFirstClaims(set({ at_hash: Buffer.alloc(16, 1).toString('base64url') })),
  },
  'id-token-missing': {
    ledger: 'oidc-core-3.1.3.3-id-token-returned',
    title: 'openid was granted, and there is no ID Token',
    sound: 'signs no user in without an ID Token',
    alter: inTokens('authorization_code', remove('id_token')),
  },
  'keys-swapped': {
    ledger: 'oidc-core-10.1.1-rotation',
    title: 'after the token response the keys change, but not their kid',
    sound: 'rejects the ID Token, which no longer verifies, instead of skipping the check',
    fooledWhen: usesAnyToken,
    alter: inJson('jwks', (members, { conduct }) =>
      conduct.has(({ place, gave }) => place === 'token' && gave.accessToken !== undefined)
        ? swapKeys(members)
        : undefined,
    ),
  },
  'userinfo-other-sub': {
    ledger: 'oidc-core-5.3.2-sub-always',
    title: 'UserInfo is about another user',
    sound:
      'compares sub with that of the ID Token, and ignores the response if they differ, OpenID Connect Core §5.3.2',
    fooledWhen: keepsUsingTokens,
    alter: inJson('userinfo', set(otherUser)),
  },
  'userinfo-without-sub': {
    ledger: 'oidc-core-5.3.2-sub-always',
    title: 'sub is missing from UserInfo',
    sound: 'ignores a response that does not identify its user',
    fooledWhen: keepsUsingTokens,
    alter: inJson('userinfo', remove('sub')),
  },
})

/** The response to a code, a refresh token or an introspection is wrong. */
export const tokenResponses: readonly Profile[] = profilesOf(usesTheTokens, {
  'token-type-odd': {
    clause: 'RFC 6749 §7.1',
    ledger: 'rfc6749-5.1-success-shape',
    title: 'token_type is unknown',
    sound: 'does not use a token of a type it does not understand, RFC 6749 §7.1',
    alter: inTokens('authorization_code', set({ token_type: 'Bearer2' })),
  },
  'token-type-missing': {
    ledger: 'rfc6749-5.1-success-shape',
    title: 'token_type is missing',
    sound: 'rejects a response without a required member',
    alter: inTokens('authorization_code', remove('token_type')),
  },
  'expires-in-string': {
    ledger: 'rfc6749-5.1-expires-in-number',
    title: 'expires_in is a string of digits',
    sound:
      'rejects the response, or parses the number; it does not add a string to the time and use the token forever',
    fooledWhen: usesTheExpired,
    alter: inTokens('authorization_code', replace('expires_in', String)),
  },
  'scope-narrowed-silently': {
    ledger: 'rfc6749-3.3-scope-in-response-when-different',
    title: 'the token has less scope than requested, and the response does not say so',
    sound: 'accepts the 403: requests the scope from the user, or continues without it, RFC 6750 §3.1',
    fooledWhen: repeatsTheRejected,
    alterRequest: requestLessScope,
    alter: inTokens('authorization_code', (members, response) =>
      response.conduct.has(({ isAltered }) => isAltered) ? remove('scope')(members, response) : undefined,
    ),
  },
  'error-as-200': {
    ledger: 'rfc6749-5.2-status-400',
    title: 'the token endpoint sends an error with status 200',
    sound: 'finds no access token, and ends the flow',
    fooledWhen: callsAnyway,
    alter: insteadOfTokens('authorization_code', json, '{"error":"invalid_grant"}'),
  },
  'html-as-tokens': {
    ledger: 'rfc6749-5.1-success-shape',
    title: 'the token endpoint responds with an HTML page, as a captive portal does',
    sound: 'accepts only JSON, and ends the flow',
    fooledWhen: callsAnyway,
    alter: insteadOfTokens('authorization_code', html, captivePortal),
  },
  'refresh-empty': {
    clause: 'RFC 6749 §6',
    ledger: 'rfc6749-5.1-success-shape',
    title: 'the response to a refresh is 200 with an empty body',
    sound: 'keeps its tokens, and retries or starts a new authorization',
    fooledWhen: showsNoToken,
    alter: insteadOfTokens('refresh_token', json, ''),
  },
  'refresh-without-access-token': {
    ledger: 'rfc6749-5.1-success-shape',
    title: 'the response to a refresh has no access token',
    sound: 'rejects the response; it does not overwrite its token with nothing',
    fooledWhen: showsNoToken,
    alter: inTokens('refresh_token', remove('access_token')),
  },
  'refresh-without-refresh-token': {
    clause: 'RFC 6749 §6',
    title: 'the refresh token is rotated, but the new one is not sent',
    sound: 'keeps the old one, RFC 6749 §6; it does not overwrite it with nothing',
    fooledWhen: showsNoToken,
    alter: inTokens('refresh_token', remove('refresh_token')),
  },
  'refresh-other-sub': {
    ledger: 'oidc-core-12.2-refresh-id-token',
    title: 'the ID Token of a refresh is about another user',
    sound: 'compares sub with that of the first ID Token, OpenID Connect Core §12.2',
    alter: inTokens('refresh_token', inClaims(set(otherUser))),
  },
  'introspection-active-text': {
    ledger: 'rfc7662-2.2-active-boolean',
    title: 'introspection returns active as the string "false" for an inactive token',
    sound: 'treats a token as active only if active is true',
    fooledWhen: onlyReported,
    alter: inJson(
      'introspection',
      replace('active', (active) => (active === false ? 'false' : undefined)),
    ),
  },
})

function inFirstClaims(change: Parameters<typeof inClaims>[0]) {
  return inTokens('authorization_code', inClaims(change))
}

/** Removes the last scope other than openid from an authorization request. */
function requestLessScope({ url, query, body, server }: FastifyRequest): boolean {
  if (server.endpointAt(url.split('?', 1)[0] ?? '') !== 'authorization') return false
  const parameters = [query, body].find(hasScope)
  const scopes = parameters?.scope.split(' ') ?? []
  const dropped = scopes.findLast((scope) => scope !== 'openid')
  if (parameters === undefined || dropped === undefined || scopes.length < 2) return false
  parameters.scope = scopes.filter((scope) => scope !== dropped).join(' ')
  return true
}

function hasScope(parameters: unknown): parameters is { scope: string } {
  return isObject(parameters) && typeof parameters['scope'] === 'string'
}
