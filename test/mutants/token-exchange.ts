import type { Fault } from './fault.ts'

const rules = 'src/specs/rfc8693-token-exchange/rules.ts'
const token = 'src/domain/access-token.ts'
const over = ['test/conformance/rfc8693-token-exchange.test.ts']

/** Faults of the exchange of tokens, RFC 8693. */
export const tokenExchangeFaults = [
  {
    id: 'exchange-by-a-public-client',
    rule: 'rfc8693-2.1-client-authentication',
    file: rules,
    find: "client.authenticationMethod !== 'none',\n    'rfc8693",
    replace: "true,\n    'rfc8693",
  },
  {
    id: 'exchange-by-anyone-who-has-the-token',
    rule: 'rfc8693-2.2.2-invalid-subject',
    file: rules,
    find: "if (!mayPresent(client, subject, policy.resources)) throw unacceptable('it is meant for others')",
    replace: '',
  },
  {
    id: 'exchange-of-a-refresh-token',
    rule: 'rfc8693-2.2.2-invalid-subject',
    file: rules,
    find: "if (subject.kind !== 'access') throw unacceptable('it is a refresh token')",
    replace: '',
  },
  {
    id: 'exchange-widens-the-scope',
    rule: 'rfc8693-2.1-scope-within',
    file: rules,
    find: 'const beyond = scope.find((name) => !allowed.includes(name))',
    replace: 'const beyond = scope.find(() => false)',
  },
  {
    id: 'exchange-reaches-another-api',
    rule: 'rfc8693-2.2.2-invalid-target',
    file: rules,
    find: 'identifiers.find((identifier) => !allowed.includes(identifier))',
    replace: 'identifiers.find(() => false)',
  },
  {
    id: 'exchange-outlives-the-subject-token',
    file: rules,
    find: 'Math.min(terms.seconds, subject.expiresAt - now)',
    replace: 'terms.seconds',
    tests: over,
  },
  {
    id: 'exchange-ignores-may-act',
    rule: 'rfc8693-4.4-may-act',
    file: rules,
    find: 'sub === clientId,',
    replace: 'true,',
  },
  {
    id: 'exchange-forgets-earlier-actors',
    rule: 'rfc8693-4.1-act-chain',
    file: rules,
    find: '...(before && { act: before })',
    replace: '',
  },
  {
    id: 'exchange-loses-the-binding',
    file: rules,
    find: 'subject.confirmation === undefined || confirmation !== undefined,',
    replace: 'true,',
    tests: over,
  },
  {
    id: 'exchanged-token-outlives-its-grant',
    file: token,
    find: 'if (subject.revokedAt !== undefined || subject.revokedTokens.includes(tokenId))',
    replace: 'if (subject.revokedTokens.includes(tokenId))',
    tests: over,
  },
  {
    id: 'exchanged-token-outlives-the-revoked-token',
    file: token,
    find: 'if (subject.revokedAt !== undefined || subject.revokedTokens.includes(tokenId))',
    replace: 'if (subject.revokedAt !== undefined)',
    tests: over,
  },
  {
    id: 'exchanged-token-ends-with-the-nearest-only',
    file: 'src/http/token-reader.ts',
    find: 'left = withinSubject(left, from, subject, service)\n    from = subject?.exchangedFrom',
    replace: 'left = withinSubject(left, from, subject, service)\n    from = undefined',
    tests: over,
  },
  {
    id: 'exchanged-grants-push-out-sign-ins',
    file: 'src/users/sessions.ts',
    find: 'const isExchanged = exchangedFrom !== undefined',
    replace: 'const isExchanged = exchangedFrom === null',
    tests: ['test/users/exchanged-grants.test.ts'],
  },
  {
    id: 'exchanged-grant-shown-active',
    file: 'src/admin/operations/grants.ts',
    find: 'return isLoss(left) ?',
    replace: 'return isLoss(left) && left.rule === undefined ?',
    tests: ['test/users/exchanged-grants.test.ts'],
  },
] as const satisfies readonly Fault[]
