import type { Fault } from './fault.ts'

const apply = 'src/cli/files/apply.ts'
const clients = 'src/cli/files/clients.ts'
const tests = ['test/cli/files.test.ts']
const api = 'src/cli/files/admin-api.ts'
const target = 'src/cli/files/target.ts'
const server = ['test/cli/files-server.test.ts']

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
    find: 'entries.clients === undefined ? []',
    replace: 'false ? []',
    tests,
  },
  {
    id: 'files-prune-the-last-administrator',
    file: 'src/cli/operate.ts',
    find: '(decision) => keepAdministrator(decision, administrators, systemClock())',
    replace: '(decision) => decision',
    tests,
  },
  {
    id: 'files-lock-the-last-administrator',
    file: 'src/admin/operations/user-changes.ts',
    find: 'return keepAdministrator(decision, administrators, context.at)',
    replace: 'return decision',
    tests,
  },
  {
    id: 'files-locked-user-invited',
    file: target,
    find: 'locked: lockedAt !== undefined }',
    replace: 'locked: false }',
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
    find: '!secretMatches(secret.text, before.secretHash)',
    replace: 'false',
    tests,
  },
  {
    id: 'files-short-secret',
    file: 'src/clients/operator-client.ts',
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
  {
    id: 'files-prune-without-the-file',
    file: 'src/cli/files/plan.ts',
    find: "return (files[kind] ?? []).join(' ').slice(0, 200)",
    replace: "return ''",
    tests,
  },
  {
    id: 'files-server-in-the-clear',
    file: api,
    find: "url === undefined || (url.protocol !== 'https:' && !isLoopback)",
    replace: 'url === undefined',
    tests: server,
  },
  {
    id: 'files-server-more-scope-than-needed',
    file: api,
    find: 'const changesUsers = writes && ',
    replace: 'const changesUsers = true || ',
    tests: server,
  },
  {
    id: 'files-server-changes-what-it-did-not-see',
    file: target,
    find: 'if (isDeepStrictEqual(lasting(found), lasting(seen.get(`${kind} ${id}`) ?? {})))',
    replace: 'if (true)',
    tests: server,
  },
  {
    id: 'files-server-any-entity-tag',
    file: 'src/cli/operate.ts',
    find: 'body: await bodyOf(found), tag }',
    replace: "body: await bodyOf(found), tag: '*' }",
    tests: server,
  },
  {
    id: 'files-server-adds-twice',
    file: api,
    find: "method === 'POST' ? randomUUID() : undefined",
    replace: 'undefined',
    tests: server,
  },
  {
    id: 'files-server-prunes-itself',
    file: 'src/cli/files/clients.ts',
    find: 'callerId !== undefined && !named.has(callerId)',
    replace: 'false && callerId !== undefined && !named.has(callerId)',
    tests: server,
  },
  {
    id: 'files-server-without-the-file',
    file: api,
    find: "...(file && { 'audit-file': encodeURIComponent(file) }),",
    replace: '',
    tests: server,
  },
  {
    id: 'files-server-token-not-renewed',
    file: api,
    find: 'token = await obtain()\n        continue',
    replace: 'continue',
    tests: server,
  },
  {
    id: 'files-key-signs-by-the-wrong-algorithm',
    file: 'src/cli/files/private-key.ts',
    find: "alg === 'RS256' ?",
    replace: "alg !== 'RS256' ?",
    tests: server,
  },
  {
    id: 'files-name-not-freed',
    file: 'src/cli/files/groups.ts',
    find: 'holder.id === id || !isFreed',
    replace: 'holder.id === id || isFreed',
    tests: ['test/cli/files.test.ts'],
  },
  {
    id: 'files-say-that-there-are-no-upstreams',
    file: 'src/cli/files/export.ts',
    find: 'const { upstreams: _, ...others } =',
    replace: 'const others =',
    tests: ['test/process/admin-listener.test.ts'],
  },
] as const satisfies readonly Fault[]
