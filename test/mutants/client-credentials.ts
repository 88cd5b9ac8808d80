import type { Fault } from './fault.ts'

const actingClient = ['test/storage/acting-client.test.ts'] as const
const rules = 'src/specs/rfc6749-client-credentials/rules.ts'

/** Faults of tokens that a client gets for itself, RFC 6749 §4.4. */
export const clientCredentialsFaults = [
  {
    id: 'registered-client-acts-for-itself',
    rule: 'rfc6749-4.4-client-credentials-confidential',
    file: 'src/specs/rfc6749-client-credentials/feature.ts',
    find: 'operatorOnly: true, ',
    replace: '',
  },
  {
    id: 'public-client-acts-for-itself',
    rule: 'rfc6749-4.4-client-credentials-confidential',
    file: 'src/clients/operator-client.ts',
    find: "    isConfidential,\n    'rfc6749-4.4-client-credentials-confidential',",
    replace: "    true,\n    'rfc6749-4.4-client-credentials-confidential',",
  },
  {
    id: 'removed-client-gets-a-token',
    rule: 'rfc6749-4.4.2-client-must-authenticate',
    file: 'src/specs/rfc6749-client-credentials/plugin.ts',
    find: 'issueToClient(acting?.client, ',
    replace: 'issueToClient(client, ',
    tests: ['test/domain/client-credentials.test.ts', 'test/conformance/rfc6749-client-credentials.test.ts'],
  },
  {
    id: 'token-for-a-client-that-has-changed',
    file: 'src/storage/statements.ts',
    find: "    and ${sameJson(clients.metadata, value('clientMetadata'))} ${sql.raw(forShare)}) as client`)",
    replace: '    ${sql.raw(forShare)}) as client`)',
    tests: actingClient,
  },
  {
    id: 'token-for-a-client-that-was-locked-before',
    file: 'src/storage/statements.ts',
    find: "value('clientId')} and ${clients.lockedAt} is null",
    replace: "value('clientId')}",
    tests: actingClient,
  },
  {
    id: 'token-for-a-client-that-is-locked-meanwhile',
    file: 'src/storage/postgres/prepared.ts',
    find: "forShare: 'for share'",
    replace: "forShare: ''",
    tests: actingClient,
  },
  {
    id: 'machine-scope-beyond-what-is-allowed',
    rule: 'rfc6749-4.4.2-scope-preapproved',
    file: rules,
    find: '!own.includes(name)',
    replace: 'false',
  },
  {
    id: 'machine-gets-scopes-about-users',
    rule: 'rfc6749-4.4.2-scope-preapproved',
    file: 'src/domain/current-grant.ts',
    find: ' && !userScopes.has(name)',
    replace: '',
  },
  {
    id: 'machine-resource-beyond-what-is-allowed',
    rule: 'rfc8707-2.2-not-granted',
    file: rules,
    find: 'allowed && identifiers.find(',
    replace: 'allowed && [].find(',
  },
  {
    id: 'machine-token-can-be-refreshed',
    rule: 'rfc6749-4.4.3-no-refresh-token',
    file: 'src/domain/grant.ts',
    find: '    absoluteExpiresAt: end,\n    expiresAt: end,',
    replace: '    refreshExpiresAt: end,\n    absoluteExpiresAt: end,\n    expiresAt: end,',
  },
  {
    id: 'machine-token-has-another-subject',
    rule: 'rfc9068-2.2-sub-semantics',
    file: 'src/domain/jwt-access-token.ts',
    find: 'return userId ?? clientId',
    replace: "return userId ?? 'client'",
  },
  {
    id: 'machine-token-signed-in',
    rule: 'rfc9068-2.2-sub-semantics',
    file: 'src/domain/jwt-access-token.ts',
    find: '...(userId !== undefined && { auth_time: authenticatedAt }),',
    replace: 'auth_time: authenticatedAt,',
  },
] as const satisfies readonly Fault[]
