import type { Fault } from './fault.ts'

const redemption = 'src/domain/authorization-code.ts'
const grant = 'src/domain/grant.ts'
const issuer = 'src/specs/rfc6749-authorization/issue-tokens.ts'

/** Faults of the token endpoint and of the code it redeems. */
export const tokenFaults = [
  {
    id: 'code-works-twice',
    rule: 'rfc6749-4.1.2-code-single-use',
    file: grant,
    find: 'if (grant.seq > 0) {',
    replace: 'if (grant.seq > 0) return accept(grant)\n  if (grant.seq < 0) {',
  },
  {
    id: 'tokens-kept-after-replay',
    rule: 'rfc6749-4.1.2-code-replay-revokes',
    file: grant,
    find: 'return reject(replayed,',
    replace: 'if (grant.seq > 0) throw replayed\n    return reject(replayed,',
  },
  {
    id: 'invalid-replay-revokes',
    rule: 'oauth21-7.5.2-replay-only-if-valid',
    file: redemption,
    find: 'verifyCodeVerifier(codeVerifier, grant.codeChallenge)',
    replace: 'if (grant.seq === 0) verifyCodeVerifier(codeVerifier, grant.codeChallenge)',
  },
  {
    id: 'code-lives-at-its-end',
    rule: 'rfc6749-4.1.2-code-short-lived',
    file: grant,
    find: 'now < grant.expiresAt, ',
    replace: 'now <= grant.expiresAt, ',
  },
  {
    id: 'code-of-another-client',
    rule: 'rfc6749-4.1.3-code-issued-to-client',
    file: redemption,
    find: 'grant.clientId === client.id,',
    replace: "grant.clientId !== '',",
  },
  {
    id: 'redirect-uri-not-compared-at-exchange',
    rule: 'rfc6749-4.1.3-redirect-uri-identical',
    file: redemption,
    find: '? !grant.redirectUriSent : redirectUri === grant.redirectUri',
    replace: '? !grant.redirectUriSent : true',
  },
  {
    id: 'redirect-uri-left-out-at-exchange',
    rule: 'rfc6749-4.1.3-redirect-uri-required',
    file: redemption,
    find: '? !grant.redirectUriSent : redirectUri',
    replace: '? true : redirectUri',
  },
  {
    id: 'grant-type-not-registered',
    rule: 'rfc6749-5.2-unauthorized-client',
    file: 'src/specs/rfc6749-authorization/token.ts',
    find: 'client.grantTypes.includes(grantType)',
    replace: 'handlers.has(grantType)',
  },
  {
    id: 'missing-grant-type-taken-for-code',
    rule: 'rfc6749-4.1.3-grant-type-required',
    file: 'src/specs/rfc6749-authorization/token.ts',
    find: "single(parameters, 'grant_type'), client",
    replace: "single(parameters, 'grant_type') ?? 'authorization_code', client",
  },
  {
    id: 'repeated-field-accepted',
    rule: 'rfc6749-3.2-no-duplicates',
    file: 'src/domain/parameters.ts',
    find: 'if (earlier === undefined) parameters[name] = value',
    replace: "if (earlier === undefined || name !== 'resource') parameters[name] = value",
  },
  {
    id: 'json-accepted-as-form',
    rule: 'service-4-token-path-form',
    file: 'src/http/parameters.ts',
    find: '    app.removeAllContentTypeParsers()\n',
    replace: '',
  },
  {
    id: 'expires-in-is-wrong',
    rule: 'rfc6749-5.1-expires-in-number',
    file: issuer,
    find: 'expires_in: terms.seconds',
    replace: 'expires_in: terms.seconds + 60',
  },
  {
    id: 'access-token-outlives-its-end',
    rule: 'rfc6750-5.2-lifetime-limited',
    file: 'src/domain/access-token.ts',
    find: 'now >= handle.expiresAt',
    replace: 'now > handle.expiresAt',
  },
  {
    id: 'narrowed-scope-not-told',
    rule: 'rfc6749-3.3-scope-in-response-when-different',
    file: 'src/pages/sign-in/consent.ts',
    find: 'narrowScope(pending.request.scope, allowed)',
    replace: 'allowed.length > 0 ? pending.request.scope : []',
  },
  {
    id: 'no-refresh-token-for-public-clients',
    rule: 'service-4-token-response-tokens',
    file: issuer,
    find: 'grant.refreshExpiresAt === undefined ? undefined : sealRefreshToken',
    replace: 'client.secretHash === undefined ? undefined : sealRefreshToken',
  },
] as const satisfies readonly Fault[]
