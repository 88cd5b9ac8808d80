import type { OwnFault } from './fault.ts'

const forwarding = ['test/http/forwarding.test.ts']
const record = 'src/observability/rejection-record.ts'
const recordTests = ['test/http/rejection-record.test.ts']
const registrationTests = ['test/conformance/rfc7592-client-configuration.test.ts']
const malformed = 'src/http/malformed-http.ts'
const wireTests = ['test/robustness/wire.test.ts']
const shedding = 'src/http/load-shedding.ts'
const sheddingTests = ['test/http/load-shedding.test.ts']

/** Faults of the limits on what a stranger can make the server store, log or keep open. */
export const limitFaults = [
  {
    id: 'forwarding-ended-by-a-direct-request',
    tests: forwarding,
    file: 'src/doctor/forwarding.ts',
    find: "isCertain = sign === 'arrives' || seen >= most",
    replace: "isCertain = sign === 'arrives' || sign === undefined || seen >= most",
  },
  {
    id: 'arrival-without-proof',
    tests: forwarding,
    file: 'src/doctor/arrival.ts',
    find: '&& isSameText(text, proofAt(at, pseudonym))',
    replace: '&& text.length > 12',
  },
  {
    id: 'claimed-address-not-compared',
    tests: ['test/cli/doctor.test.ts'],
    file: 'src/doctor/forwarding.ts',
    find: "claiming['client'] === claimedAddress && claiming['forwarded'] === claimedAddress",
    replace: "claiming['client'] === claiming['forwarded'] && claiming['client'] === ''",
  },
  {
    id: 'arrival-proof-forever',
    tests: forwarding,
    file: 'src/doctor/arrival.ts',
    find: 'Math.abs(now - at) <= proofSeconds && ',
    replace: '',
  },
  {
    id: 'forwarding-believes-a-public-peer',
    tests: forwarding,
    file: 'src/doctor/forwarding.ts',
    find: 'isForwarded && !isPublicAddress(peer)',
    replace: 'isForwarded && peer !== undefined',
  },
  {
    id: 'forwarding-of-all-peers-together',
    tests: forwarding,
    file: 'src/doctor/forwarding.ts',
    find: "? 'arrives' : `silent ${peer}`",
    replace: "? 'arrives' : 'silent'",
  },
  {
    id: 'forwarding-ignores-what-arrives',
    tests: forwarding,
    file: 'src/doctor/forwarding.ts',
    find: "isCertain = sign === 'arrives' || seen >= most",
    replace: 'isCertain = seen >= most',
  },
  {
    id: 'forwarding-counts-forever',
    tests: forwarding,
    file: 'src/doctor/forwarding.ts',
    find: "isCertain = sign === 'arrives' || seen >= most",
    replace: "isCertain = sign === 'arrives'",
  },
  {
    id: 'logged-text-not-cut',
    file: 'src/http/log.ts',
    find: 'if (bytes > most) return',
    replace: 'if (bytes > most && most < 0) return',
    tests: recordTests,
  },
  {
    id: 'logged-list-not-cut',
    file: 'src/http/log.ts',
    find: 'if (left < 0) return',
    replace: 'if (left < -1_000_000) return',
    tests: recordTests,
  },
  {
    id: 'control-characters-count-one-byte',
    file: 'src/http/log.ts',
    find: 'return Buffer.byteLength(JSON.stringify(text)) - 2',
    replace: 'return Buffer.byteLength(text)',
    tests: recordTests,
  },
  {
    id: 'unserved-paths-recorded',
    file: record,
    find: 'isUnserved(rejection) || ',
    replace: '',
    tests: recordTests,
  },
  {
    id: 'one-network-takes-every-record',
    file: record,
    find: ' || !hasShare(addressPrefix(request.ip))',
    replace: '',
    tests: recordTests,
  },
  {
    id: 'record-shared-by-address',
    file: record,
    find: 'addressPrefix(request.ip)',
    replace: 'request.ip',
    tests: recordTests,
  },
  {
    id: 'client-metadata-of-any-size',
    file: 'src/clients/metadata.ts',
    find: '  assertSize(metadata, policy)\n',
    replace: '',
    tests: ['test/conformance/rfc7591-redirect-uris.test.ts'],
  },
  {
    id: 'registration-updates-without-limit',
    file: 'src/specs/rfc7591-registration/client-configuration.ts',
    find: "        limit: 'registration',\n",
    replace: '',
    tests: registrationTests,
  },
  {
    id: 'unchanged-registration-written',
    file: 'src/specs/rfc7591-registration/client-configuration.ts',
    find: '        if (isDeepStrictEqual(replaced, client)) return accept(client)\n',
    replace: '',
    tests: registrationTests,
  },
  {
    id: 'half-closed-connection-left-open',
    file: malformed,
    find: 'setTimeout(() => socket.destroy(), lingerMilliseconds)',
    replace: 'setTimeout(() => socket.end(), lingerMilliseconds)',
    tests: ['test/process/slow-client.test.ts'],
  },
  {
    id: 'two-hosts-accepted',
    file: malformed,
    find: "countOfHeader(rawHeaders, 'host') > 1",
    replace: "countOfHeader(rawHeaders, 'host') > 2",
    tests: wireTests,
  },
  {
    id: 'any-host-text-accepted',
    file: malformed,
    find: ' && !hostForm.test(host)',
    replace: " && host === 'x'",
    tests: wireTests,
  },
  {
    id: 'expectation-answered-by-node',
    file: 'src/http/malformed-http.ts',
    find: "'checkExpectation'",
    replace: "'checkContinue'",
    tests: wireTests,
  },
  {
    id: 'line-breaks-printed',
    file: 'src/cli/print.ts',
    find: "text.replaceAll(/[\\p{C}\\p{Zl}\\p{Zp}]/gu, '\\ufffd')",
    replace: "text.replaceAll(/[^\\P{C}\\n]/gu, '\\ufffd')",
    tests: ['test/cli/explain.test.ts'],
  },
  {
    id: 'revocation-of-another-token-found',
    file: 'src/storage/statements.ts',
    find: " and ${revokedAccessTokens.tokenId} = ${value('tokenId')}",
    replace: '',
    tests: ['test/storage/sqlite.test.ts'],
  },
  {
    id: 'decision-about-a-token-does-not-wait',
    file: 'src/storage/store.ts',
    find: "if (kind === 'grantOfToken') return",
    replace: "if (kind === 'rejection') return",
    tests: ['test/storage/sqlite.test.ts'],
  },
  {
    id: 'grants-of-a-client-not-limited',
    file: 'src/users/sessions.ts',
    find: 'return count % turn === 0 ?',
    replace: 'return count % turn === turn ?',
    tests: ['test/conformance/grant-ends.test.ts'],
  },
  {
    id: 'burst-shed',
    file: shedding,
    find: 'turnStart - lateSince >= patienceMilliseconds ?',
    replace: 'turnStart >= 0 ?',
    tests: sheddingTests,
  },
  {
    id: 'health-shed-under-load',
    file: shedding,
    find: "alwaysHealthy.has(request.url ?? '') ||",
    replace: "alwaysHealthy.has('') ||",
    tests: sheddingTests,
  },
  {
    id: 'pages-shed-before-clients',
    file: shedding,
    find: 'if (isPage || late < budgets[sender]) return false',
    replace: 'if (late < budgets.anonymous) return false',
    tests: sheddingTests,
  },
  {
    id: 'few-slow-requests-shed',
    file: shedding,
    find: 'inTurn > alwaysServed && turnStart',
    replace: 'inTurn > 1 && turnStart',
    tests: sheddingTests,
  },
] as const satisfies readonly OwnFault[]
