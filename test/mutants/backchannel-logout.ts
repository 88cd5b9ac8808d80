import type { Fault } from './fault.ts'

const rules = 'src/oidc-backchannel-logout/rules.ts'
const over = ['test/conformance/oidc-backchannel-logout.test.ts']
const inDomain = ['test/domain/logout-delivery.test.ts']
const inStore = ['test/storage/sqlite.test.ts']

/** Faults of logout tokens and of what ends with a session, OpenID Connect Back-Channel Logout 1.0. */
export const backchannelLogoutFaults = [
  {
    id: 'logout-token-typed-as-id-token',
    rule: 'oidc-bcl-2.4-typ',
    file: 'src/oidc-backchannel-logout/sender.ts',
    find: "'logout+jwt'",
    replace: "'JWT'",
  },
  {
    id: 'logout-token-lives-an-hour',
    rule: 'oidc-bcl-4-short-expiry',
    file: rules,
    find: 'const tokenSeconds: Seconds = 120',
    replace: 'const tokenSeconds: Seconds = 3600',
  },
  {
    id: 'logout-token-with-nonce',
    rule: 'oidc-bcl-2.4-no-nonce',
    file: rules,
    find: '    jti,\n    events',
    replace: '    jti,\n    nonce: jti,\n    events',
  },
  {
    id: 'logout-token-without-event',
    rule: 'oidc-bcl-2.4-events',
    file: rules,
    find: "{ 'http://schemas.openid.net/event/backchannel-logout': {} }",
    replace: '{}',
  },
  {
    id: 'logout-token-signed-by-default',
    rule: 'oidc-bcl-2.4-signed',
    file: 'src/oidc-backchannel-logout/sender.ts',
    find: 'keys.sign(client.idTokenSignedResponseAlg,',
    replace: "keys.sign('RS256',",
  },
  {
    id: 'sid-links-clients',
    rule: 'oidc-bcl-2.1-sid-distinct',
    file: rules,
    find: '.update(clientId)',
    replace: ".update('')",
  },
  {
    id: 'logout-uri-by-http',
    rule: 'oidc-bcl-2.2-uri-https',
    file: rules,
    find: ' && !isLoopbackUri(uri))',
    replace: ' && uri === name)',
  },
  {
    id: 'logout-uri-with-fragment',
    rule: 'oidc-bcl-2.2-uri-no-fragment',
    file: rules,
    find: "uri.includes('#')",
    replace: 'uri === name',
  },
  {
    id: 'anyone-names-a-logout-uri',
    rule: 'oidc-bcl-2.2-uri-https',
    file: 'src/oidc-backchannel-logout/feature.ts',
    find: '    backchannel_logout_uri: {\n      operatorOnly: true,',
    replace: '    backchannel_logout_uri: {',
  },
  {
    id: 'offline-access-ends-with-the-session',
    rule: 'oidc-bcl-2.7-offline-access',
    file: rules,
    find: ' && !scope.includes(offlineAccess.name)',
    replace: '',
  },
  {
    id: 'refresh-after-an-idle-session',
    file: 'src/storage/writes.ts',
    find: 'session === undefined || at >= session.idleExpiresAt || at >= session.expiresAt',
    replace: 'session === undefined || at >= session.expiresAt',
    tests: [...inStore, ...over],
  },
  {
    id: 'code-of-an-ended-session',
    file: 'src/oidc-backchannel-logout/plugin.ts',
    find: '(grant.seq > 0 || logoutUriOf(client) === undefined || sid === undefined)',
    replace: '(grant.seq >= 0 || logoutUriOf(client) === undefined || sid === undefined)',
    tests: over,
  },
  {
    id: 'ended-session-tells-no-client',
    file: 'src/storage/writes.ts',
    find: '? atSessionEnd(due, at) :',
    replace: '? [] :',
    tests: inStore,
  },
  {
    id: 'removed-user-stays-signed-in-at-clients',
    file: 'src/storage/writes.ts',
    find: "      yield* apply([{ op: 'endSessionsOf', userId: write.userId, at: write.at }])\n",
    replace: '',
    tests: inStore,
  },
  {
    id: 'renamed-session-forgets-its-clients',
    file: 'src/storage/writes.ts',
    find: 'return atSessionEndOf({ ...session, id: write.by }, due)',
    replace: 'return atSessionEndOf(session, due)',
    tests: inStore,
  },
  {
    id: 'every-grant-of-the-sid-ends',
    file: 'src/storage/writes.ts',
    find: '%"session":"',
    replace: '%"sid":"',
    tests: inStore,
  },
  {
    id: 'two-nodes-send-the-same',
    file: rules,
    find: 'if (now < dueAt || now < leasedUntil)',
    replace: 'if (now < dueAt)',
    tests: inDomain,
  },
  {
    id: 'a-lost-lease-settles',
    file: rules,
    find: 'current === undefined || current.leasedUntil !== leased.leasedUntil',
    replace: 'current === undefined',
    tests: inDomain,
  },
  {
    id: 'logout-is-tried-forever',
    file: rules,
    find: 'const pause = backoffSeconds[tries - 1]',
    replace: 'const pause = backoffSeconds[tries - 1] ?? 60',
    tests: inDomain,
  },
  {
    id: 'a-full-budget-counts-as-a-try',
    file: rules,
    find: "  if (one.result === 'postponed') return later('postponed', { ...rest, dueAt: now + leaseSeconds })\n  const tries = (current.tries ?? 0) + 1\n",
    replace:
      "  const tries = (current.tries ?? 0) + 1\n  if (one.result === 'postponed') return later('postponed', { ...rest, tries, dueAt: now + leaseSeconds })\n",
    tests: inDomain,
  },
  {
    id: 'no-content-is-a-failure',
    file: 'src/fetch/guarded-fetch.ts',
    find: '!(form && statusCode === 204)',
    replace: 'true',
    tests: ['test/fetch/guarded-fetch.test.ts'],
  },
  {
    id: 'any-status-is-a-success',
    rule: 'oidc-bcl-2.8-failure',
    file: 'src/fetch/guarded-fetch.ts',
    find: '!(form && statusCode === 204)',
    replace: '!form',
  },
  {
    id: 'one-form-for-two',
    file: 'src/fetch/guarded-fetch.ts',
    find: 'const key = post ?? url.href',
    replace: 'const key = url.href',
    tests: ['test/fetch/guarded-fetch.test.ts'],
  },
] as const satisfies readonly Fault[]
