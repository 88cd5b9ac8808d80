import type { Fault } from './fault.ts'

const refresh = 'src/domain/refresh-token.ts'
const grant = 'src/domain/grant.ts'
const current = 'src/domain/current-grant.ts'
const currentTests = ['test/conformance/current-grant.test.ts']
const tests = ['test/conformance/rfc6749-refresh.test.ts'] as const

/** Faults of refresh tokens, RFC 6749 §6 and RFC 9700 §4.14. */
export const refreshFaults = [
  {
    id: 'scope-taken-from-a-client-is-issued-again',
    file: current,
    find: 'return name === offlineAccess.name || (client.scope?.includes(name) ?? isOpen)',
    replace: 'return true',
    tests: currentTests,
  },
  {
    id: 'resource-taken-from-the-configuration-stays',
    file: current,
    find: 'resources.find(id) !== undefined && ',
    replace: '',
    tests: currentTests,
  },
  {
    id: 'resource-taken-from-a-client-stays',
    file: current,
    find: '(!isWithinOwn || (client.resources?.includes(id) ?? true))',
    replace: 'true',
    tests: currentTests,
  },
  {
    id: 'grant-outlives-its-grant-type',
    file: current,
    find: '!client.grantTypes.some((name) => begun.includes(name))',
    replace: 'false',
    tests: currentTests,
  },
  {
    id: 'refresh-token-outlives-its-grant-type',
    file: 'src/domain/access-token.ts',
    find: "kind === 'refresh' && !row.client.grantTypes.includes('refresh_token')",
    replace: 'false',
    tests: currentTests,
  },
  {
    id: 'claim-outlives-its-scope',
    file: current,
    find: 'const claims = currentClaims(terms, scope, client, policy)',
    replace: 'const { claims } = terms',
    tests: currentTests,
  },
  {
    id: 'waiting-request-grants-what-was-taken',
    file: 'src/pages/sign-in/pending.ts',
    find: 'return { ...visit, request: current, client',
    replace: 'return { ...visit, request: pendingRequest, client',
    tests: currentTests,
  },
  {
    id: 'refresh-token-not-rotated',
    rule: 'mcp-security-refresh-rotation',
    file: grant,
    find: 'if (seq === grant.seq) {',
    replace: 'if (seq === grant.seq) return accept(grant)\n  if (seq > grant.seq) {',
  },
  {
    id: 'refresh-needs-client-id',
    rule: 'rfc6749-6-bound-to-client',
    file: 'src/specs/rfc6749-authorization/grant-types.ts',
    find: "return client?.authenticationMethod === 'none' ? client.id : undefined",
    replace: 'return client && undefined',
  },
  {
    id: 'refresh-token-names-a-confidential-client',
    rule: 'rfc6749-3.2.1-confidential-must-authenticate',
    file: 'src/specs/rfc6749-authorization/grant-types.ts',
    find: "return client?.authenticationMethod === 'none' ? client.id : undefined",
    replace: 'return client?.id',
  },
  {
    id: 'refresh-token-overrules-client-id',
    rule: 'rfc6749-6-bound-to-client',
    file: 'src/http/client-authentication.ts',
    find: 'const inferred = isAnonymous ?',
    replace: 'const inferred = isAnonymous || authorization === undefined ?',
  },
  {
    id: 'refresh-widens-the-scope',
    rule: 'rfc6749-6-scope-exceed',
    file: refresh,
    find: 'scope.find((name) => !grant.scope.includes(name))',
    replace: 'scope.find((name) => grant.scope.length === 0 && name.length > 0)',
  },
  {
    id: 'refresh-scope-not-narrowed',
    rule: 'rfc6749-6-scope-narrow',
    file: refresh,
    find: 'filtered(scope, (name) => left.includes(name))',
    replace: 'left',
  },
  {
    id: 'refresh-without-scope-gives-less',
    rule: 'rfc6749-6-scope-omitted-original',
    file: refresh,
    find: 'left)\n    return left',
    replace: 'left)\n    return left.slice(0, 1)',
  },
  {
    id: 'another-client-refreshes',
    rule: 'rfc6749-6-bound-to-client',
    file: refresh,
    find: 'grant.clientId === client.id,',
    replace: "grant.clientId !== '',",
  },
  {
    id: 'reuse-does-not-revoke',
    rule: 'rfc9700-4.14.2-reuse-revokes-family',
    file: grant,
    find: 'return reject(reused,',
    replace: 'if (grant.seq > 0) throw reused\n  return reject(reused,',
  },
  {
    id: 'reuse-window-for-ever',
    rule: 'rfc9700-4.14.2-reuse-revokes-family',
    file: grant,
    find: ' < lifetimes.refreshReuseSeconds\n',
    replace: ' < lifetimes.refreshReuseSeconds + 86_400\n',
  },
  {
    id: 'reuse-of-any-older-token',
    rule: 'rfc9700-4.14.2-reuse-revokes-family',
    file: grant,
    find: 'seq === grant.seq - 1 && isRetry',
    replace: 'seq < grant.seq && isRetry',
  },
  {
    id: 'idle-refresh-token-lives',
    rule: 'rfc9700-4.14.2-inactive-expiry',
    file: grant,
    find: 'now < (grant.refreshExpiresAt ?? 0)',
    replace: 'now < grant.absoluteExpiresAt',
  },
  {
    id: 'refresh-token-without-absolute-end',
    file: grant,
    find: 'Math.min(now + lifetimes.refreshTokenIdleSeconds, grant.absoluteExpiresAt)',
    replace: 'now + lifetimes.refreshTokenIdleSeconds',
    tests,
  },
  {
    id: 'access-token-refreshes',
    rule: 'rfc6749-6-invalid-refresh',
    file: 'src/specs/rfc6749-authorization/grant-types.ts',
    find: "keys.open(refreshToken, 'refresh')",
    replace: "keys.open(refreshToken, 'refresh', 'access')",
  },
  {
    id: 'code-refreshes',
    rule: 'rfc6749-6-invalid-refresh',
    file: 'src/specs/rfc6749-authorization/grant-types.ts',
    find: "keys.open(refreshToken, 'refresh')",
    replace: "keys.open(refreshToken, 'refresh', 'code')",
  },
  {
    id: 'unticked-scope-granted',
    rule: 'rfc9700-4.14.2-bound-to-consent',
    file: 'src/domain/interaction.ts',
    find: '!offered.includes(name) || ticked.includes(name)',
    replace: '!offered.includes(name) || ticked.length > 0',
  },
] as const satisfies readonly Fault[]
