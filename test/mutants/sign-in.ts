import type { Fault } from './fault.ts'

const secondFactor = 'src/domain/second-factor.ts'
const codes = ['test/account/one-time-codes.test.ts'] as const
const stepUp = ['test/conformance/step-up.test.ts'] as const
const sessionEnds = ['test/conformance/session-ends.test.ts'] as const
const throttle = ['test/conformance/sign-in-throttle.test.ts'] as const
const passkeys = ['test/account/passkeys.test.ts'] as const
const several = ['test/conformance/several-people.test.ts'] as const

/** Faults of second factors, passkeys, step-up and several people in one browser. */
export const signInFaults = [
  {
    id: 'sessions-of-a-cookie-not-bounded',
    file: 'src/http/browser.ts',
    find: ".split('.', mostSessions - 1)",
    replace: ".split('.')",
    tests: several,
  },
  {
    id: 'code-good-twice',
    file: secondFactor,
    find: 'if (step === undefined || step <= (current.usedStep ?? -1)) return accept(false)',
    replace: 'if (step === undefined) return accept(false)',
    tests: codes,
  },
  {
    id: 'recovery-code-good-twice',
    file: secondFactor,
    find: 'current.recoveryHashes.filter((other) => other !== hash)',
    replace: 'current.recoveryHashes',
    tests: codes,
  },
  {
    id: 'second-factor-guesses-not-counted',
    file: 'src/interaction/second-step.ts',
    find: 'const buckets = secondFactorBuckets(account.id, known, limits)',
    replace: 'const buckets = secondFactorBuckets(account.id, known, limits).slice(1)',
    tests: codes,
  },
  {
    id: 'half-sign-in-outlives-the-password',
    file: 'src/interaction/second-step.ts',
    find: "hashSecret(account.passwordHash ?? '') === halfSignIn.password",
    replace: 'halfSignIn.password !== undefined',
    tests: codes,
  },
  {
    id: 'factors-changed-by-the-password-alone',
    file: 'src/account/factor-entry.ts',
    find: 'if (!reach.includes(multiFactor)) return true',
    replace: 'if (reach.length > -1) return true',
    tests: ['test/account/factor-entry.test.ts'],
  },
  {
    id: 'essential-context-let-go',
    rule: 'oidc-core-5.5.1.1-acr-essential',
    file: 'src/domain/interaction.ts',
    find: "return acr.essential ? 'refuse' : 'respond'",
    replace: "return 'respond'",
  },
  {
    id: 'session-renewed-without-its-password',
    file: 'src/domain/session.ts',
    find: 'return { ...session, authenticatedAt, expiresAt, idleExpiresAt }',
    replace: 'return { ...session, authenticatedAt }',
    tests: stepUp,
  },
  {
    id: 'locked-person-signs-in',
    file: 'src/interaction/login.ts',
    find: "if (account.lockedAt !== undefined) return forms.refuse(pending, reply, says('login.locked'), username)\n",
    replace: '',
    tests: stepUp,
  },
  {
    id: 'person-of-another-browser-chosen',
    file: 'src/interaction/choose-account.ts',
    find: 'if (session === undefined) return reply.redirect',
    replace: 'if (session === undefined && accountId === interaction.id) return reply.redirect',
    tests: several,
  },
  {
    id: 'browser-without-end-of-people',
    file: 'src/domain/session.ts',
    find: 'others.slice(0, mostSessions - 1)',
    replace: 'others.slice(0, 99)',
    tests: several,
  },
  {
    id: 'copied-passkey-counts',
    file: 'src/domain/passkey.ts',
    find: 'if (counts && counter <= current.counter) {',
    replace: 'if (counts && counter < 0) {',
    tests: ['test/domain/passkey.test.ts'],
  },
  {
    id: 'grant-inserted-after-its-session-ended',
    file: 'src/rfc6749-authorization/authorize.ts',
    find: "store.write({ op: 'insertGrant', grant, basis }),",
    replace: "store.write({ op: 'insertGrant', grant }),",
    tests: sessionEnds,
  },
  {
    id: 'approved-grant-inserted-after-its-session-ended',
    file: 'src/interaction/issue-code.ts',
    find: "{ op: 'insertGrant', grant, basis },",
    replace: "{ op: 'insertGrant', grant },",
    tests: sessionEnds,
  },
  {
    id: 'grant-inserted-after-its-consent-was-taken-back',
    file: 'src/http/while-signed-in.ts',
    find: ", ...(client.consent === 'remember' && { consent })",
    replace: '',
    tests: sessionEnds,
  },
  {
    id: 'grant-of-a-locked-user-alive',
    file: 'src/storage/rows.ts',
    find: 'row.revokedAt ?? row.userLockedAt',
    replace: 'row.revokedAt',
    tests: sessionEnds,
  },
  {
    id: 'grant-inserted-for-a-locked-user',
    file: 'src/storage/sqlite/statements.ts',
    find: 'and ${accounts.lockedAt} is null\n    and',
    replace: 'and',
    tests: ['test/storage/sqlite.test.ts'],
  },
  {
    id: 'link-made-for-a-locked-user',
    file: 'src/mail/links.ts',
    find: 'account === undefined || account.lockedAt !== undefined',
    replace: 'account === undefined',
    tests: sessionEnds,
  },
  {
    id: 'device-cookie-outlives-the-password',
    file: 'src/domain/device.ts',
    find: ' ${hashSecret(passwordHash)}`',
    replace: ' ${hashSecret(passwordHash).slice(0, 0)}`',
    tests: throttle,
  },
  {
    id: 'new-device-cookie-at-every-sign-in',
    file: 'src/http/browser.ts',
    find: 'known?.isBound ? known.nonce : ',
    replace: '',
    tests: throttle,
  },
  {
    id: 'each-earlier-device-cookie-counted-by-itself',
    file: 'src/domain/sign-in-throttle.ts',
    find: "return isBound ? nonce : 'unbound'",
    replace: 'return isBound ? nonce : `${nonce}`',
    tests: throttle,
  },
  {
    id: 'known-browsers-without-a-common-count',
    file: 'src/domain/sign-in-throttle.ts',
    find: '      { key: `devices ${login}`, limit: 2 * limit },\n',
    replace: '',
    tests: throttle,
  },
  {
    id: 'failures-in-a-row-end-with-the-window',
    file: 'src/domain/sign-in-throttle.ts',
    find: "bucket.kind === 'in-a-row' ? rowSeconds : limits.windowSeconds",
    replace: 'limits.windowSeconds',
    tests: throttle,
  },
  {
    id: 'new-password-forgets-no-failures',
    file: 'src/domain/account.ts',
    find: '    ...forgetFailures(account.id),\n',
    replace: '',
    tests: throttle,
  },
  {
    id: 'network-without-room-for-its-users',
    file: 'src/domain/sign-in-throttle.ts',
    find: 'limits.failuresPerPrefix + usersOfPrefix * limits.failuresPerPrefixAndUser',
    replace: 'limits.failuresPerPrefix',
    tests: throttle,
  },
  {
    id: 'one-user-makes-room-again-and-again',
    file: 'src/http/password-attempts.ts',
    find: 'throttle === undefined ? accept(true',
    replace: 'throttle !== null ? accept(true',
    tests: throttle,
  },
  {
    id: 'attestation-reaches-the-library',
    file: 'src/credentials/read-credential.ts',
    find: "withoutAttestation(attestation).toString('base64url')",
    replace: "withoutAttestation(attestation) && attestation.toString('base64url')",
    tests: passkeys,
  },
  {
    id: 'cbor-of-any-depth',
    file: 'src/credentials/cbor.ts',
    find: 'const mostLevels = 6',
    replace: 'const mostLevels = 6000',
    tests: passkeys,
  },
] as const satisfies readonly Fault[]
