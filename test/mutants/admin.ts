import type { Fault } from './fault.ts'

const rules = 'src/admin-api/rules.ts'
const administration = 'src/admin-api/administration.ts'
const tests = ['test/conformance/admin-api.test.ts']

/** Faults of the admin API: each lets a caller do more than they may. */
export const adminFaults = [
  {
    id: 'admin-any-user',
    tests,
    file: administration,
    find: "if (caller.kind === 'user') assertAdministrator(",
    replace: "if (caller.kind === 'client') assertAdministrator(",
  },
  {
    id: 'admin-client-without-the-scope',
    tests,
    file: rules,
    find: 'client?.scope?.includes(needed) === true,',
    replace: 'client !== undefined && (client.scope?.includes(needed) ?? true),',
  },
  {
    id: 'admin-client-loses-its-grant-type',
    tests,
    file: rules,
    find: " && client.grantTypes.includes('client_credentials')",
    replace: '',
  },
  {
    id: 'admin-write-with-one-factor',
    tests,
    file: administration,
    find: 'acrValues: [multiFactor],',
    replace: 'acrValues: [],',
  },
  {
    id: 'admin-write-with-an-old-sign-in',
    tests,
    file: administration,
    find: 'maxAgeSeconds: secondFactorSeconds,',
    replace: '',
  },
  {
    id: 'admin-write-without-a-second-factor',
    tests,
    file: administration,
    find: "secondFactor === 'required' ?",
    replace: "secondFactor === 'off' ?",
  },
  {
    id: 'admin-reads-open-to-every-scope',
    tests,
    file: administration,
    find: 'app.requireScope(scope),\n          assertAllowed(scope)',
    replace: 'app.requireScope(), assertAllowed(scope)',
  },
  {
    id: 'admin-client-beyond-the-caller',
    tests,
    file: rules,
    find: "name.startsWith('admin:') && !caller.scope.includes(name)",
    replace: "name.startsWith('admin:') && caller.scope.includes('none')",
  },
  {
    id: 'admin-raises-a-client',
    tests,
    file: 'src/admin-api/clients.ts',
    find: "if ('result' in decision) assertWithin(decision.result, admin.callerOf(request))",
    replace: '',
  },
  {
    id: 'admin-takes-over-a-client',
    tests,
    file: 'src/admin-api/clients.ts',
    find: '    assertWithin(client, admin.callerOf(request))\n    return client',
    replace: '    return client',
  },
  {
    id: 'admin-client-over-administrators',
    tests,
    file: rules,
    find: "caller.kind === 'user' || !isTargetAdministrator,",
    replace: 'true,',
  },
  {
    id: 'admin-locks-oneself',
    tests,
    file: 'src/admin-api/users.ts',
    find: "if (act === 'lock') assertOther(",
    replace: "if (act === 'unlock') assertOther(",
  },
  {
    id: 'admin-deletes-oneself',
    tests,
    file: rules,
    find: 'caller.sub !== userId,',
    replace: "caller.sub !== userId || caller.kind === 'user',",
  },
  {
    id: 'admin-change-of-another-version',
    tests,
    file: rules,
    find: "tags.includes('*') || tags.includes(tag),",
    replace: 'tags.length > 0,',
  },
  {
    id: 'admin-secret-shown-twice',
    tests,
    file: 'src/admin-api/clients.ts',
    find: 'const kept = { status: 201, body: describe(client), headers, clientId: client.id }',
    replace:
      'const kept = { status: 201, body: { ...describe(client), client_secret: secret }, headers, clientId: client.id }',
  },
  {
    id: 'admin-key-for-another-request',
    tests,
    file: 'src/admin-api/idempotency.ts',
    find: 'first.fingerprint === fingerprint,',
    replace: 'first.id === id,',
  },
  {
    id: 'admin-change-without-its-actor',
    tests,
    file: administration,
    find: 'const facts = { actor: sub,',
    replace: 'const facts = {',
  },
  {
    id: 'admin-scopes-when-off',
    tests,
    file: 'src/service.ts',
    find: '(isOffered?.(config) ?? true)',
    replace: '(isOffered !== null)',
  },
] as const satisfies readonly Fault[]
