import type { Fault } from './fault.ts'

const device = 'src/specs/rfc8628-device-grant/rules/device.ts'
const codes = 'src/specs/rfc8628-device-grant/rules/codes.ts'
const plugin = 'src/specs/rfc8628-device-grant/plugin.ts'
const pages = 'src/specs/rfc8628-device-grant/pages.ts'
const tests = ['test/domain/device-grant.test.ts', 'test/conformance/rfc8628-device-grant.test.ts']

/** Faults of the authorization of devices, RFC 8628. */
export const deviceGrantFaults = [
  {
    id: 'registered-client-starts-devices',
    file: 'src/specs/rfc8628-device-grant/rules/device.ts',
    find: "origin !== 'registered' || closedBy === undefined",
    replace: 'true',
    tests: ['test/conformance/registered-devices.test.ts'],
  },
  {
    id: 'registered-client-polls-on',
    file: 'src/specs/rfc8628-device-grant/plugin.ts',
    find: 'assertOpenTo(client, limits.closedBy)',
    replace: '',
    tests: ['test/conformance/registered-devices.test.ts'],
  },
  {
    id: 'registered-device-gets-a-refresh-token',
    file: 'src/specs/rfc8628-device-grant/rules/device.ts',
    find: "return origin !== 'registered' && grantTypes",
    replace: 'return grantTypes',
    tests: ['test/conformance/registered-devices.test.ts'],
  },
  {
    id: 'linked-code-need-not-be-typed',
    file: 'src/specs/rfc8628-device-grant/rules/device.ts',
    find: 'isLinked && found.mustBeTyped',
    replace: 'false',
    tests: ['test/conformance/registered-devices.test.ts'],
  },
  {
    id: 'device-of-any-client',
    rule: 'rfc8628-3.1-request',
    file: device,
    find: 'client.grantTypes.includes(grantType),',
    replace: 'client.grantTypes.length > 0,',
  },
  {
    id: 'device-code-by-its-user-code',
    tests,
    file: device,
    find: 'found !== undefined && secretMatches(deviceCode, found.deviceHash)',
    replace: 'found !== undefined',
  },
  {
    id: 'device-code-of-another-client',
    rule: 'rfc8628-3.4-grant',
    file: device,
    find: 'found.clientId === client.id',
    replace: 'found.clientId !== ""',
  },
  {
    id: 'device-without-its-verifier',
    tests,
    file: device,
    find: '  verifyCodeVerifier(codeVerifier, found.request.codeChallenge)\n',
    replace:
      '  if (codeVerifier !== undefined) verifyCodeVerifier(codeVerifier, found.request.codeChallenge)\n',
  },
  {
    id: 'device-polls-on-after-a-denial',
    rule: 'rfc8628-3.5-denied-expired',
    file: device,
    find: "found.state !== 'denied',",
    replace: "found.state !== 'redeemed',",
  },
  {
    id: 'device-code-without-end',
    tests,
    file: device,
    find: '    now < found.expiresAt,\n',
    replace: '    now < found.expiresAt * 2,\n',
  },
  {
    id: 'device-polls-as-it-likes',
    rule: 'rfc8628-3.5-slow-down',
    file: device,
    find: 'now - polledAt < intervalSeconds - toleratedSeconds',
    replace: 'now - polledAt < 0',
  },
  {
    id: 'device-slowed-down-once',
    rule: 'rfc8628-3.5-slow-down',
    file: device,
    find: 'polledAt: now, intervalSeconds: slower }',
    replace: 'polledAt: now }',
  },
  {
    id: 'device-tokens-for-every-poll',
    tests,
    file: device,
    find: '  assertNotRedeemed(grant.revokedAt === undefined && grant.seq > 0)\n',
    replace: '',
  },
  {
    id: 'device-replay-revokes',
    tests,
    file: device,
    find: 'grant.revokedAt === undefined && grant.seq > 0',
    replace: 'grant.revokedAt !== undefined',
  },
  {
    id: 'device-decided-twice',
    tests,
    file: device,
    find: 'if (found === undefined || !isWaiting(found, now)) return accept(false)',
    replace: 'if (found === undefined) return accept(false)',
  },
  {
    id: 'device-code-sent-around',
    tests,
    file: device,
    find: 'found.browsers.length >= mostBrowsers',
    replace: 'found.browsers.length >= 5_000',
  },
  {
    id: 'user-code-of-ten-letters',
    tests: ['test/domain/device-codes.test.ts'],
    file: codes,
    find: "const letters = 'BCDFGHJKLMNPQRSTVWXZ'",
    replace: "const letters = 'BCDFGHJKLA'",
  },
  {
    id: 'wrong-codes-without-end-in-a-browser',
    rule: 'rfc8628-5.1-user-code-limits',
    file: codes,
    find: 'const wrongCodesPerBrowser = 5',
    replace: 'const wrongCodesPerBrowser = 5_000',
  },
  {
    id: 'wrong-codes-without-end-in-a-network',
    rule: 'rfc8628-5.1-user-code-limits',
    file: codes,
    find: 'limit: wrongCodesPerPrefix,',
    replace: 'limit: 1000 * wrongCodesPerPrefix,',
  },
  {
    id: 'device-code-in-every-link',
    rule: 'rfc8628-3.3-no-code-in-uri',
    file: plugin,
    find: 'verification_uri: page,',
    replace: 'verification_uri: `${page}?user_code=${userCode}`,',
  },
  {
    id: 'device-confirmed-in-any-browser',
    tests,
    file: pages,
    find: 'device?.browsers.includes(hashSecret(browserSecret))',
    replace: 'device !== undefined',
  },
  {
    id: 'device-approved-without-a-token',
    tests,
    file: pages,
    find: '    assertOwnForm(sent, csrfOf(visit), url)\n',
    replace: '',
  },
  {
    id: 'device-page-of-any-session',
    tests,
    file: pages,
    find: "'device-confirm', device.deviceHash, session.id)",
    replace: "'device-confirm', device.deviceHash)",
  },
  {
    id: 'device-approved-after-sign-out',
    tests,
    file: pages,
    find: '      basis: { sessionId: session.id },\n',
    replace: '',
  },
  {
    id: 'device-of-a-renamed-client',
    tests,
    file: pages,
    find: 'readConsent(sent, visit.client, device.request, device.request.scope)',
    replace: 'readConsent(sent, visit.client, device.request, device.request.scope) ?? device.request.scope',
  },
  {
    id: 'device-of-an-unknown-place',
    rule: 'rfc8628-5.4-phishing',
    file: pages,
    find: '      ...(requestedFrom && { requestedFrom }),\n',
    replace: '',
  },
] satisfies readonly Fault[]
