import type { Fault } from './fault.ts'

const apply = 'src/cli/files/apply.ts'
const clients = 'src/cli/files/clients.ts'
const tests = ['test/cli/files.test.ts']

/** Faults of `lychgate apply`: what it must not write, delete or show. */
export const fileFaults = [
  {
    id: 'files-applied-with-faults',
    file: apply,
    find: 'if (setting.faults.length > 0) throw new ConfigError(setting.faults)',
    replace: '',
    tests,
  },
  {
    id: 'files-prune-without-asking',
    file: apply,
    find: 'if (pruned.length > 0) {',
    replace: 'if (false) {',
    tests,
  },
  {
    id: 'files-prune-kinds-that-no-file-has',
    file: apply,
    find: 'wanted.users === undefined ? []',
    replace: 'false ? []',
    tests,
  },
  {
    id: 'files-prune-the-last-administrator',
    file: 'src/cli/files/users.ts',
    find: ": keepAdministrator(accept(undefined, removeUser(id, systemClock()), userEvent('user-removed', id)))",
    replace: ": accept(undefined, removeUser(id, systemClock()), userEvent('user-removed', id))",
    tests,
  },
  {
    id: 'files-lock-the-last-administrator',
    file: 'src/cli/files/users.ts',
    find: 'keepAdministrator(decide(user))',
    replace: 'decide(user)',
    tests,
  },
  {
    id: 'files-locked-user-invited',
    file: 'src/cli/files/users.ts',
    find: 'const isInvited = lockedAt === undefined',
    replace: 'const isInvited = true',
    tests,
  },
  {
    id: 'files-change-a-registered-client',
    file: clients,
    find: 'if (otherClientIds.has(clientId))',
    replace: 'if (false)',
    tests,
  },
  {
    id: 'files-secret-readable-by-others',
    file: clients,
    find: 'mode: 0o600',
    replace: 'mode: 0o644',
    tests,
  },
  {
    id: 'files-replaced-secret-stays',
    file: clients,
    find: '!secretMatches(text, before.secretHash)',
    replace: 'false',
    tests,
  },
  {
    id: 'files-short-secret',
    file: 'src/clients/integration.ts',
    find: '/^[!-~]{32,200}$/.test(fresh)',
    replace: 'true',
    tests,
  },
  {
    id: 'files-client-of-a-deleted-group-open',
    file: 'src/cli/files/state.ts',
    find: 'allowed.map((id) => nameOf(String(id)))',
    replace: 'allowed.map((id) => nameOf(String(id))).filter((name) => !name.startsWith("group_"))',
    tests,
  },
] as const satisfies readonly Fault[]
