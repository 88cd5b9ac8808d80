import type { Fault } from './fault.ts'

const plugin = 'src/specs/rfc7662-introspection/plugin.ts'
const rule = 'src/domain/access-token.ts'

/** Faults of introspection, RFC 7662. */
export const introspectionFaults = [
  {
    id: 'anyone-introspects-anything',
    rule: 'rfc7662-4-caller-privilege',
    file: rule,
    find: 'return token.resource.some(',
    replace: 'return own.length >= 0 || token.resource.some(',
  },
  {
    id: 'resource-server-learns-of-refresh-tokens',
    rule: 'rfc7662-4-caller-privilege',
    file: rule,
    find: "  if (token.kind !== 'access') return false\n",
    replace: '',
  },
  {
    id: 'inactive-with-a-reason',
    rule: 'rfc7662-2.2-inactive-no-extra',
    file: plugin,
    find: '{ active: false }',
    replace: "{ active: false, token_type: 'Bearer' }",
  },
  {
    id: 'unauthenticated-caller-is-400',
    rule: 'rfc7662-2.3-bad-client-401',
    file: plugin,
    find: 'alwaysUnauthorized: true',
    replace: 'alwaysUnauthorized: false',
  },
  {
    id: 'introspection-without-authentication',
    rule: 'rfc7662-2.1-caller-authorised',
    file: plugin,
    find: 'app.requireClient({ alwaysUnauthorized: true })],',
    replace: `async (request) => {
        request.client = await app.resolveClient(request.body.client_id ?? '')
      }],`,
  },
  {
    id: 'rotated-refresh-token-is-active',
    rule: 'rfc7662-4-all-state-checks',
    file: 'src/domain/access-token.ts',
    find: ' || handle.seq !== grant.seq) return undefined',
    replace: ') return undefined',
  },
  {
    id: 'audience-not-told',
    rule: 'service-4-token-resource',
    file: plugin,
    find: 'const [audience, ...others] = facts.resource',
    replace: 'const [audience, ...others] = [service.issuer]',
  },
  {
    id: 'refresh-token-told-as-bearer',
    rule: 'rfc7662-2.2-refresh-token-subject',
    file: plugin,
    find: "...(facts.kind === 'access' && { token_type: tokenTypeOf(facts.confirmation, bindings) })",
    replace: "token_type: 'Bearer'",
  },
] as const satisfies readonly Fault[]
