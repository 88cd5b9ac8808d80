import type { Fault } from './fault.ts'

const bearer = 'src/domain/bearer.ts'
const guard = 'src/guard/guard.ts'

/** Faults of bearer tokens and the guard, RFC 6750. */
export const bearerFaults = [
  {
    id: 'audience-not-checked',
    rule: 'rfc9700-2.3-rs-checks-audience',
    file: guard,
    find: 'if (!access.audience.includes(resource)) {',
    replace: 'if (access.audience.length === 0) {',
  },
  {
    id: 'bad-token-is-anonymous',
    rule: 'service-7-invalid-token-401',
    file: guard,
    find: "  if (access === undefined || !('audience' in access)) {",
    replace: `  if ((access === undefined || !('audience' in access)) && anonymous === 'allow') return undefined
  if (access === undefined || !('audience' in access)) {`,
  },
  {
    id: 'missing-token-is-challenged',
    rule: 'service-5-no-token-anonymous',
    file: 'src/guard/protected-api/plugin.ts',
    find: "anonymous: 'allow'",
    replace: "anonymous: 'challenge'",
  },
  {
    id: 'built-in-api-served-though-off',
    file: 'src/guard/protected-api/plugin.ts',
    find: "  if (config.builtInApi === 'off') return\n",
    replace: '',
    tests: ['test/cli/init.test.ts'],
  },
  {
    id: 'insufficient-scope-without-scope',
    rule: 'rfc6750-3.1-insufficient-scope-403',
    file: bearer,
    find: '    scope && scope.length > 0 && `scope="${scope.join(\' \')}"`,\n',
    replace: '',
  },
  {
    id: 'any-scope-is-enough',
    rule: 'rfc6750-3.1-insufficient-scope-403',
    file: guard,
    find: 'needed.every((name)',
    replace: 'needed.some((name)',
  },
  {
    id: 'read-opens-write',
    rule: 'service-5-scope-read-write-split',
    file: 'src/guard/protected-api/plugin.ts',
    find: 'app.requireScope(name)',
    replace: "app.requireScope(name.replace(':write', ':read'))",
  },
  {
    id: 'challenge-without-metadata',
    rule: 'rfc9728-5.1-resource-metadata-param',
    file: bearer,
    find: '    resourceMetadata && `resource_metadata="${resourceMetadata}"`,\n',
    replace: '',
  },
  {
    id: 'two-challenges',
    rule: 'rfc6750-3-params-once',
    file: bearer,
    find: "headers: { 'www-authenticate': challenge }",
    replace: 'headers: { \'www-authenticate\': `${challenge}, Bearer error="${error}"` }',
  },
  {
    id: 'error-without-credentials',
    rule: 'rfc6750-3.1-no-error-without-credentials',
    file: guard,
    find: 'bearerChallenge({ resourceMetadata })',
    replace: "bearerChallenge({ resourceMetadata, error: 'invalid_token' })",
  },
  {
    id: 'second-authorization-header-ignored',
    rule: 'rfc6750-3.1-invalid-request-400',
    file: guard,
    find: 'if (headers > 1 || (',
    replace: 'if ((',
  },
  {
    id: 'token-by-two-methods',
    rule: 'rfc6750-2-one-method',
    file: guard,
    find: ' || (headers === 1 && field !== undefined)) {',
    replace: ') {',
  },
  {
    id: 'token-read-from-the-query',
    rule: 'oauth21-5.1-query-token-ignored',
    file: guard,
    find: 'options.formToken ? formField(request) : undefined',
    replace:
      'options.formToken ? formField(request) : (request.query as { access_token?: string }).access_token',
  },
  {
    id: 'token-read-from-any-body',
    rule: 'rfc6750-2.2-form-conditions',
    file: guard,
    find: 'options.formToken ? formField(request) : undefined',
    replace: 'formField(request)',
  },
  {
    id: 'scheme-compared-with-its-case',
    rule: 'oauth21-5.1.1-scheme-case-insensitive',
    file: bearer,
    find: 'name.toLowerCase() !== scheme.toLowerCase()',
    replace: 'name !== scheme',
  },
  {
    id: 'text-behind-the-token-ignored',
    rule: 'rfc6750-2.1-credentials-syntax',
    file: bearer,
    find: '(\\S+) *$/',
    replace: '(\\S+)/',
  },
  {
    id: 'revoked-token-opens-the-api',
    rule: 'rfc6750-3.1-invalid-token-401',
    file: 'src/domain/access-token.ts',
    find: '  if (grant.revokedTokens.includes(handle.tokenId)) return undefined\n',
    replace: '',
  },
] as const satisfies readonly Fault[]
