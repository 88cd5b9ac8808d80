import type { Fault } from './fault.ts'

const tests = ['test/admin/personal-tokens.test.ts']
const rules = 'src/users/rules/personal-token.ts'
const operations = 'src/admin/operations/personal-tokens.ts'
const administration = 'src/admin/api/administration.ts'
const authority = 'src/admin/operations/authority.ts'

/** Faults of personal tokens: each lets one do more, longer or elsewhere. */
export const personalTokenFaults = [
  {
    id: 'personal-token-never-expires',
    tests,
    file: rules,
    find: "if (now >= record.expiresAt) return { rejected: 'the personal token has expired' }",
    replace: '',
  },
  {
    id: 'personal-token-of-a-locked-user',
    tests,
    file: rules,
    find: 'owner !== undefined && owner.lockedAt === undefined',
    replace: 'owner !== undefined',
  },
  {
    id: 'personal-token-comes-back-after-a-lock',
    tests,
    file: 'src/users/rules/user.ts',
    find: 'removeAll(personalTokenKind, userId),',
    replace: '',
  },
  {
    id: 'personal-token-of-a-delegate',
    tests,
    file: administration,
    find: 'else assertAdministrator(groups, group)',
    replace: 'else if (isUser) assertAdministrator(groups, group)',
  },
  {
    id: 'personal-token-makes-credentials',
    tests,
    file: 'src/admin/operations/rules.ts',
    find: "personalTokens !== 'rejected',",
    replace: "personalTokens !== 'rejected' || true,",
  },
  {
    id: 'personal-token-sets-a-password',
    tests,
    file: 'src/admin/operations/user-changes.ts',
    find: "personalTokens: 'rejected',",
    replace: '',
  },
  {
    id: 'personal-token-makes-a-link',
    tests,
    file: 'src/admin/operations/links.ts',
    find: "personalTokens: 'rejected',",
    replace: '',
  },
  {
    id: 'personal-token-makes-an-initial-access-token',
    tests,
    file: 'src/admin/operations/registrations.ts',
    find: "personalTokens: 'rejected',",
    replace: '',
  },
  {
    id: 'personal-token-changes-administrators',
    tests,
    file: authority,
    find: 'if (isAdministrator(groups, administrators)) return overAdministrators(caller)',
    replace:
      "if (caller.kind === 'client' && isAdministrator(groups, administrators)) return overAdministrators(caller)",
  },
  {
    id: 'personal-token-makes-a-group-of-administrators',
    tests,
    file: 'src/admin/operations/groups.ts',
    find: "caller.kind === 'user' ||",
    replace: "caller.kind !== 'client' ||",
  },
  {
    id: 'personal-token-revoked-a-moment-before',
    tests,
    file: authority,
    find: 'if (token === undefined || owner === undefined || owner.lockedAt !== undefined) return endedToken()',
    replace: '',
  },
  {
    id: 'personal-token-makes-a-client-that-administers',
    tests,
    file: 'src/admin/operations/rules.ts',
    find: "caller.kind === 'personal token' ? [] : caller.scope",
    replace: 'caller.scope',
  },
  {
    id: 'personal-token-for-another-user',
    tests,
    file: operations,
    find: "caller?.kind === 'user' && caller.sub === userId",
    replace: "caller?.kind === 'user'",
  },
  {
    id: 'personal-token-beyond-the-access-token',
    tests,
    file: operations,
    find: 'scope.every((name) => caller?.scope?.includes(name) ?? true)',
    replace: 'scope.length > 0',
  },
  {
    id: 'personal-token-with-any-scope',
    tests,
    file: operations,
    find: '&& scope.every((name) => Object.hasOwn(scopes, name))',
    replace: '',
  },
  {
    id: 'personal-token-of-an-old-sign-in',
    tests,
    file: administration,
    find: 'return isRecent ? [ofUsers(recentSignIn)] : []',
    replace: 'return []',
  },
  {
    id: 'personal-token-form-of-an-old-sign-in',
    tests,
    file: 'src/admin/pages/user-tokens.ts',
    find: 'needsRecentSignIn: true,',
    replace: '',
  },
  {
    id: 'personal-token-as-text-in-the-store',
    tests,
    file: rules,
    find: 'const id = hashSecret(token)',
    replace: 'const id = token',
  },
  {
    id: 'personal-token-use-not-recorded',
    tests,
    file: rules,
    find: 'now - usedAt >= secondsPerHour',
    replace: 'false',
  },
  {
    id: 'personal-tokens-without-number',
    tests,
    file: rules,
    find: 'live < mostPersonalTokens,',
    replace: 'live >= 0,',
  },
] as const satisfies readonly Fault[]
