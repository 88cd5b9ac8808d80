import type { Fault } from './fault.ts'

const runner = ['test/prove/runner.test.ts']
const browser = ['test/prove/browser.test.ts']
const command = ['test/prove/prove.test.ts']
const zoo = ['test/prove/zoo.test.ts']

/** Faults of the command that judges other servers: where it sends requests, what it leaves there, what it shows. */
export const proveFaults = [
  {
    id: 'prove-sends-to-any-host',
    tests: runner,
    file: 'src/prove/wire.ts',
    find: 'return url.origin === issuer.origin || hosts.has(url.host) || hosts.has(url.hostname)',
    replace: 'return true',
  },
  {
    id: 'prove-asks-the-internet',
    tests: command,
    file: 'src/prove/wire.ts',
    find: ' && !isOwn) return false',
    replace: ' && mostRequests === 0) return false',
  },
  {
    id: 'prove-leaves-clients-after-ctrl-c',
    tests: command,
    file: 'src/prove/runner.ts',
    find: 'const signal = AbortSignal.timeout(longestCleaning)',
    replace: 'const { signal } = options',
  },
  {
    id: 'prove-hides-what-remains',
    tests: runner,
    file: 'src/prove/clients.ts',
    find: '[200, 204, 401, 404].includes(seen.status)',
    replace: '[200, 204, 401, 403, 404].includes(seen.status)',
  },
  {
    id: 'prove-sends-a-rejected-password-again',
    tests: browser,
    file: 'src/prove/browser.ts',
    find: 'if (options.failedSignIn !== undefined) throw options.failedSignIn',
    replace: '',
  },
  {
    id: 'prove-shows-the-password',
    tests: browser,
    file: 'src/prove/redact.ts',
    find: 'name === secretField || secret.test(name)',
    replace: 'secret.test(name)',
  },
  {
    id: 'prove-judges-where-nothing-works',
    tests: runner,
    file: 'src/prove/table.ts',
    find: 'if (fault !== undefined) throw new NotTestable(`a correct request gets no ${wanted}: ${fault}`)',
    replace: '',
  },
  {
    id: 'zoo-goes-on-where-the-client-stops',
    tests: zoo,
    file: 'src/prove/zoo/replay.ts',
    find: "if (hasStopped) throw new NotTestable('the client stops before this request')",
    replace: '',
  },
  {
    id: 'zoo-takes-another-state',
    tests: zoo,
    file: 'src/prove/zoo/replay.ts',
    find: "ended.params.get('state') === values['state']",
    replace: "ended.params.has('state')",
  },
  {
    id: 'zoo-does-without-an-id-token',
    tests: zoo,
    file: 'src/prove/zoo/replay.ts',
    find: '...(refreshes(step) ? [] : [withIdToken])',
    replace: '...[]',
  },
  {
    id: 'zoo-sends-its-own-headers',
    tests: zoo,
    file: 'src/prove/zoo/replay.ts',
    find: 'return { ...Object.fromEntries(sent), ...(authorization',
    replace: 'return { ...(authorization',
  },
  {
    id: 'record-shows-what-a-client-sent-at-another-issuer',
    tests: ['test/cli/dev-record.test.ts'],
    file: 'src/cli/dev-record.ts',
    find: '`${profile.issuer}/_dev/flows.json`',
    replace: '`${config.issuer}/_dev/flows.json`',
  },
  {
    id: 'record-makes-a-test-that-cannot-fail',
    tests: ['test/cli/dev-record.test.ts'],
    file: 'src/dev/issuers/failing-test.ts',
    find: "assert.equal(broken.verdict, 'rejected',",
    replace: 'assert.ok(broken.verdict,',
  },
] as const satisfies readonly Fault[]
