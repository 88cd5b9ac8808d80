import type { FastifyRequest } from 'fastify'
import {
  callsAnyway,
  onlyTold,
  repeatsTheRejected,
  showsNoToken,
  usesTheExpired,
  usesTheTokens,
} from './criteria.ts'
import { inJson, insteadOfTokens, inTokens, type Profile, without } from './lie.ts'
import { withClaims } from './sign.ts'

const page = '<!doctype html><title>Sign in to the network</title><p>Please sign in to continue.'

/** Lies in the response to a code. */
const exchanges: readonly Profile[] = [
  {
    id: 'token-type-odd',
    title: 'token_type is unknown',
    clause: 'RFC 6749 §7.1',
    ledger: 'rfc6749-5.1-success-shape',
    sound: 'does not use a token of a type it does not understand, RFC 6749 §7.1',
    fooledWhen: usesTheTokens,
    lie: inTokens('authorization_code', (members) => ({ ...members, token_type: 'Bearer2' })),
  },
  {
    id: 'token-type-missing',
    title: 'token_type is missing',
    clause: 'RFC 6749 §5.1',
    ledger: 'rfc6749-5.1-success-shape',
    sound: 'rejects a response without a required member',
    fooledWhen: usesTheTokens,
    lie: inTokens('authorization_code', (members) => without(members, 'token_type')),
  },
  {
    id: 'expires-in-string',
    title: 'expires_in is a string of digits',
    clause: 'RFC 6749 §5.1',
    ledger: 'rfc6749-5.1-expires-in-number',
    sound:
      'rejects the response, or parses the number; it does not add a string to the time and use the token forever',
    fooledWhen: usesTheExpired,
    lie: inTokens('authorization_code', (members) => ({
      ...members,
      expires_in: String(members['expires_in']),
    })),
  },
  {
    id: 'scope-narrowed-silently',
    title: 'the token has less scope than requested, and the response does not say so',
    clause: 'RFC 6749 §3.3',
    ledger: 'rfc6749-3.3-scope-in-response-when-different',
    sound: 'accepts the 403: requests the scope from the user, or continues without it, RFC 6750 §3.1',
    fooledWhen: repeatsTheRejected,
    ask: askForLess,
    lie: inTokens('authorization_code', (members, { conduct }) =>
      conduct.has(({ isAltered }) => isAltered) ? without(members, 'scope') : undefined,
    ),
  },
  {
    id: 'error-as-200',
    title: 'the token endpoint sends an error with status 200',
    clause: 'RFC 6749 §5.2',
    ledger: 'rfc6749-5.2-status-400',
    sound: 'finds no access token, and ends the flow',
    fooledWhen: callsAnyway,
    lie: insteadOfTokens(
      'authorization_code',
      'application/json; charset=utf-8',
      '{"error":"invalid_grant"}',
    ),
  },
  {
    id: 'html-as-tokens',
    title: 'the token endpoint responds with an HTML page, as a captive portal does',
    clause: 'RFC 6749 §5.1',
    ledger: 'rfc6749-5.1-success-shape',
    sound: 'accepts only JSON, and ends the flow',
    fooledWhen: callsAnyway,
    lie: insteadOfTokens('authorization_code', 'text/html; charset=utf-8', page),
  },
]

/** Lies in the response to a refresh token. */
const refreshes: readonly Profile[] = [
  {
    id: 'refresh-empty',
    title: 'the response to a refresh is 200 with an empty body',
    clause: 'RFC 6749 §6',
    ledger: 'rfc6749-5.1-success-shape',
    sound: 'keeps its tokens, and retries or starts a new authorization',
    fooledWhen: showsNoToken,
    lie: insteadOfTokens('refresh_token', 'application/json; charset=utf-8', ''),
  },
  {
    id: 'refresh-without-access-token',
    title: 'the response to a refresh has no access token',
    clause: 'RFC 6749 §5.1',
    ledger: 'rfc6749-5.1-success-shape',
    sound: 'rejects the response; it does not overwrite its token with nothing',
    fooledWhen: showsNoToken,
    lie: inTokens('refresh_token', (members) => without(members, 'access_token')),
  },
  {
    id: 'refresh-without-refresh-token',
    title: 'the refresh token is rotated, but the new one is not sent',
    clause: 'RFC 6749 §6',
    sound: 'keeps the old one, RFC 6749 §6; it does not overwrite it with nothing',
    fooledWhen: showsNoToken,
    lie: inTokens('refresh_token', (members) => without(members, 'refresh_token')),
  },
  {
    id: 'refresh-other-sub',
    title: 'the ID Token of a refresh is about another user',
    clause: 'OpenID Connect Core §12.2',
    ledger: 'oidc-core-12.2-refresh-id-token',
    sound: 'compares sub with that of the first ID Token, OpenID Connect Core §12.2',
    fooledWhen: usesTheTokens,
    lie: inTokens('refresh_token', (members, { keys }) =>
      withClaims(members, keys, (claims) => ({ ...claims, sub: 'person_somebody_else' })),
    ),
  },
]

/** Lies in what a client gets for a code, a refresh token, or a question about a token. */
export const tokenResponses: readonly Profile[] = [
  ...exchanges,
  ...refreshes,
  {
    id: 'introspection-active-text',
    title: 'introspection returns active as the string "false" for an inactive token',
    clause: 'RFC 7662 §2.2',
    ledger: 'rfc7662-2.2-active-boolean',
    sound: 'treats a token as active only if active is true',
    fooledWhen: onlyTold,
    lie: inJson('introspection', (members) =>
      members['active'] === false ? { active: 'false' } : undefined,
    ),
  },
]

/** Takes the last scope but openid out of an authorization request. */
function askForLess({ url, query, body }: FastifyRequest): boolean {
  if (!url.split('?', 1)[0]?.endsWith('/oauth/authorize')) return false
  const parameters = [query, body].find(hasScope)
  const scopes = parameters?.scope.split(' ') ?? []
  const dropped = scopes.findLast((scope) => scope !== 'openid')
  if (parameters === undefined || dropped === undefined || scopes.length < 2) return false
  parameters.scope = scopes.filter((scope) => scope !== dropped).join(' ')
  return true
}

function hasScope(parameters: unknown): parameters is { scope: string } {
  return (
    typeof parameters === 'object' &&
    parameters !== null &&
    'scope' in parameters &&
    typeof parameters.scope === 'string'
  )
}
