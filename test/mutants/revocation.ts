import type { Fault } from './fault.ts'

const plugin = 'src/specs/rfc7009-revocation/plugin.ts'
const rule = 'src/specs/rfc7009-revocation/rules.ts'

/** Faults of revocation, RFC 7009. */
export const revocationFaults = [
  {
    id: 'foreign-token-revoked',
    rule: 'rfc7009-2.1-issued-to-client',
    file: rule,
    find: '  assertIssuedTo(grant, client.id)\n',
    replace: '',
  },
  {
    id: 'revocation-without-authentication',
    rule: 'rfc7009-2.1-confidential-authenticates',
    file: plugin,
    find: '      preHandler: app.requireClient(),',
    replace: `      preHandler: async (request) => {
        request.client = await app.resolveClient(request.body.client_id ?? '')
      },`,
  },
  {
    id: 'unknown-token-is-an-error',
    rule: 'rfc7009-2.2-unknown-token-200',
    file: plugin,
    find: 'else await revokeSigned(token, client.id, context)',
    replace: "else check(false, '', 'invalid_request', 'the token is unknown')",
  },
  {
    id: 'refresh-token-survives-revocation',
    rule: 'rfc7009-2-refresh-revocation',
    file: rule,
    find: ': revokeGrant(grant',
    replace: ': now > 0 ? accept(undefined) : revokeGrant(grant',
  },
  {
    id: 'access-tokens-survive-their-grant',
    rule: 'rfc7009-2.1-refresh-cascades',
    file: 'src/domain/access-token.ts',
    find: '    grant.revokedAt === undefined &&\n',
    replace: '',
  },
  {
    id: 'access-token-takes-its-grant-along',
    rule: 'rfc7009-2.1-access-may-cascade',
    file: rule,
    find: '? revokeOne(grant, handle.tokenId, handle.expiresAt, now)',
    replace: '? revokeGrant(grant, grant.id, now)',
  },
  {
    id: 'hint-hides-the-token',
    rule: 'rfc7009-2.1-hint-extends-search',
    file: plugin,
    find: "token, 'access', 'refresh')",
    replace: "token, request.body.token_type_hint === 'refresh_token' ? 'refresh' : 'access')",
  },
  {
    id: 'revocation-by-query',
    rule: 'rfc7009-2.1-token-required',
    file: plugin,
    find: 'const { token } = request.body',
    replace: 'const { token } = { ...(request.query as { token?: string }), ...request.body }',
  },
] as const satisfies readonly Fault[]
