import type { Fault } from './fault.ts'

const resource = 'src/domain/resource.ts'

/** Faults of resource indicators, RFC 8707, and of tokens for one resource. */
export const resourceFaults = [
  {
    id: 'unknown-resource-taken-for-ours',
    rule: 'rfc8707-2-unknown-invalid-target',
    file: resource,
    find: 'const resource = resources.find(text)',
    replace: 'const resource = resources.find(text) ?? resources.own',
  },
  {
    id: 'one-resource-only',
    rule: 'rfc8707-2-repeatable',
    file: 'src/domain/parameters.ts',
    find: "repeatable: readonly string[] = ['resource']",
    replace: 'repeatable: readonly string[] = []',
  },
  {
    id: 'no-default-resource',
    rule: 'rfc8707-2.1-omitted-default',
    file: resource,
    find: '    return [resources.own.identifier]',
    replace: '    return [`${resources.own.identifier}/`]',
  },
  {
    id: 'resource-beyond-the-grant',
    rule: 'rfc8707-2.2-not-granted',
    file: resource,
    find: 'grant.resource.includes(identifier),',
    replace: 'resources.find(identifier) !== undefined,',
  },
  {
    id: 'scope-not-cut-to-the-resource',
    rule: 'rfc8707-2.2-downscope',
    file: resource,
    find: 'scope: requireScopeAt(scope, identifiers, resources)',
    replace: 'scope',
  },
  {
    id: 'scope-no-resource-knows',
    rule: 'rfc8707-2.2-invalid-combination',
    file: 'src/domain/authorization-request.ts',
    find: '  requireScopeAt(scope, resource, policy.resources)\n',
    replace: '',
  },
  {
    id: 'binding-of-the-request-lost',
    rule: 'rfc8707-2.1-applies-to-grant',
    file: 'src/domain/resource.ts',
    find: 'requested.length === 0 ? grant.resource :',
    replace: 'requested.length === 0 ? [resources.own.identifier, ...grant.resource] :',
  },
  {
    id: 'token-of-another-api-accepted',
    rule: 'rfc8707-2-audience-restrict',
    file: 'src/guard/guard.ts',
    find: 'if (!access.audience.includes(resource)) {',
    replace: 'if (access.audience.length > 1) {',
  },
  {
    id: 'jwt-for-another-audience',
    rule: 'rfc9068-3-aud-from-resource',
    file: 'src/domain/jwt-access-token.ts',
    find: 'aud: others.length === 0 ? audience : terms.resource',
    replace: 'aud: [audience, ...others, issuer]',
  },
  {
    id: 'jwt-outlives-its-revocation',
    file: 'src/domain/jwt-access-token.ts',
    find: 'if (grant.revokedTokens.includes(tokenId)) return undefined',
    replace: '',
    tests: ['test/conformance/rfc9068-access-token.test.ts', 'test/conformance/rfc7009-revocation.test.ts'],
  },
  {
    id: 'default-scope-that-no-resource-knows',
    rule: 'rfc6749-3.3-scope-omitted',
    file: 'src/domain/authorization-request.ts',
    find: 'if (scopeAt(defaultScope, identifiers, resources).length > 0) return defaultScope',
    replace: 'if (identifiers.length > 0) return defaultScope',
  },
  {
    id: 'default-scope-of-every-resource',
    rule: 'rfc6749-3.3-scope-omitted',
    file: 'src/domain/authorization-request.ts',
    find: 'if (scopeAt(defaultScope, identifiers, resources).length > 0) return defaultScope',
    replace: '',
  },
] as const satisfies readonly Fault[]
