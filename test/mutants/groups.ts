import type { Fault } from './fault.ts'

const rules = 'src/users/groups/rules.ts'
const plugin = 'src/users/groups/plugin.ts'
const claims = 'src/users/groups/token-claims.ts'
const over = ['test/users/groups.test.ts']
const byCommand = ['test/cli/group.test.ts']
const inDomain = ['test/domain/group.test.ts']

/** Faults of groups: who may use a client, and what its tokens have of groups. */
export const groupFaults = [
  {
    id: 'group-access-unchecked-before-consent',
    file: plugin,
    find: 'all.some(({ id }) => allowed.includes(id)) ? undefined : denied',
    replace: 'undefined',
    tests: over,
  },
  {
    id: 'group-access-unchecked-at-token-requests',
    file: plugin,
    find: "return [{ op: 'require', condition: requireMember(allowed, userId) }]",
    replace: 'return []',
    tests: over,
  },
  {
    id: 'group-access-for-every-member-of-any-group',
    file: rules,
    find: 'if (ids.some((id) => allowed.includes(id))) return true',
    replace: 'if (ids.length > 0) return true',
    tests: over,
  },
  {
    id: 'group-access-without-parents',
    file: rules,
    find: 'if (parentId !== undefined) parents.add(parentId)',
    replace: '',
    tests: over,
  },
  {
    id: 'group-condition-never-read',
    file: 'src/storage/writes.ts',
    find: 'if (!(yield* holds(write.condition.holds)))',
    replace: 'if (false)',
    tests: over,
  },
  {
    id: 'group-denial-approved-by-a-form',
    file: 'src/pages/sign-in/consent.ts',
    find: 'if (pending.denial !== undefined)\n      return approved ?',
    replace: 'if (false)\n      return approved ?',
    tests: over,
  },
  {
    id: 'group-denial-only-on-the-page',
    file: 'src/specs/rfc6749-authorization/authorize.ts',
    find: 'if (isBinding(denial)) {\n      const { remedy }',
    replace: 'if (isBinding(denial) && false) {\n      const { remedy }',
    tests: over,
  },
  {
    id: 'group-access-set-by-registration',
    file: 'src/users/groups/feature.ts',
    find: 'allowed_groups: {\n      operatorOnly: true,',
    replace: 'allowed_groups: {',
    tests: over,
  },
  {
    id: 'group-claims-set-by-registration',
    file: 'src/users/groups/feature.ts',
    find: 'token_claims: {\n      operatorOnly: true,',
    replace: 'token_claims: {',
    tests: over,
  },
  {
    id: 'group-names-without-scope',
    file: rules,
    find: "return scope.includes('groups') || requested.userinfo.includes('groups')",
    replace: 'return true',
    tests: over,
  },
  {
    id: 'group-names-in-every-id-token',
    file: rules,
    find: "return requested.idToken.includes('groups')",
    replace: 'return true',
    tests: over,
  },
  {
    id: 'group-names-without-limit',
    file: rules,
    find: 'names.slice(0, most)',
    replace: 'names',
    tests: over,
  },
  {
    id: 'group-names-cut-in-silence',
    file: rules,
    find: 'names.length > most',
    replace: 'names.length < 0',
    tests: over,
  },
  {
    id: 'group-rule-sets-a-claim-of-the-protocol',
    file: claims,
    find: 'if (reservedClaims.has(claim))',
    replace: 'if (false)',
    tests: over,
  },
  {
    id: 'group-rule-replaces-a-claim-of-a-jwt',
    file: 'src/specs/rfc6749-authorization/issue-tokens.ts',
    find: '{ ...more, ...claims }',
    replace: '{ ...claims, ...more }',
    tests: over,
  },
  {
    id: 'group-roles-of-every-group',
    file: claims,
    find: "groups.flatMap(({ id }) => (Object.hasOwn(roles, id) ? [roles[id] ?? ''] : []))",
    replace: 'Object.values(roles)',
    tests: over,
  },
  {
    id: 'group-name-with-a-comma',
    file: 'src/domain/group.ts',
    find: 'nameSyntax.test(name)',
    replace: "name !== ''",
    tests: inDomain,
  },
  {
    id: 'group-below-itself',
    file: 'src/domain/group.ts',
    find: '!ancestorsOf(group, byId).includes(group)',
    replace: 'true',
    tests: byCommand,
  },
  {
    id: 'group-tree-without-revision',
    file: 'src/users/groups.ts',
    find: 'if (tree?.revision !== seen?.revision) throw new Outdated()',
    replace: '',
    tests: over,
  },
  {
    id: 'group-deleted-without-its-members',
    file: 'src/domain/group.ts',
    find: "{ op: 'deleteRecordsFrom', kind: membershipKind.name, prefix: membershipPrefix(group.id) },",
    replace: '',
    tests: inDomain,
  },
] as const satisfies readonly Fault[]
