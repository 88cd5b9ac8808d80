import type { Fault } from './fault.ts'

const ring = 'src/keys/key-ring.ts'

/** Faults of the signing keys and of signature verification. */
export const keyFaults = [
  {
    id: 'signature-not-verified',
    rule: 'oidc-core-3.1.2.2-hint-issuer',
    file: ring,
    find: 'await compactVerify(jws, key.publicKey, { algorithms: [key.algorithm] })',
    replace: "{ payload: Buffer.from(jws.split('.')[1] ?? '', 'base64url') }",
  },
  {
    id: 'access-token-taken-for-an-id-token',
    rule: 'oidc-core-3.1.2.2-hint-issuer',
    file: ring,
    find: 'typ === type && typeof kid',
    replace: 'typ !== undefined && typeof kid',
  },
  {
    id: 'private-keys-published',
    rule: 'oidc-disc-3-jwks-uri',
    file: 'src/keys/make-keys.ts',
    find: 'await exportJWK(pair.publicKey)',
    replace: 'await exportJWK(pair.privateKey)',
  },
  {
    id: 'signed-without-kid',
    rule: 'oidc-core-10.1-published-key',
    file: ring,
    find: 'kid: term.id, typ: type',
    replace: 'typ: type',
  },
  {
    id: 'successor-signs-unpublished',
    tests: ['test/keys/rotation.test.ts'],
    file: 'src/keys/rules.ts',
    find: 'activeAt: now + policy.publishAheadSeconds } : []',
    replace: 'activeAt: now } : []',
  },
  {
    id: 'retired-key-verifies',
    tests: ['test/keys/rotation.test.ts'],
    file: 'src/keys/snapshot.ts',
    find: 'return keys.filter(({ term }) => !isRetired(term, now))',
    replace: 'return keys.filter(({ term }) => now > 0 || !isRetired(term, now))',
  },
  {
    id: 'kept-token-outlives-its-key',
    tests: ['test/keys/rotation.test.ts'],
    file: 'src/keys/snapshot.ts',
    find: 'opened: recentHandles()',
    replace: 'opened: before?.opened ?? recentHandles()',
  },
  {
    id: 'tokens-kept-without-limit',
    tests: ['test/keys/recent-handles.test.ts'],
    file: 'src/keys/recent-handles.ts',
    find: 'if (kept.size >= mostKept) kept.clear()',
    replace: '',
  },
  {
    id: 'codes-and-long-tokens-kept',
    tests: ['test/keys/recent-handles.test.ts'],
    file: 'src/keys/recent-handles.ts',
    find: "if (handle.kind !== 'access' || text.length > longestKept) return",
    replace: '',
  },
  {
    id: 'kept-token-opens-as-another-kind',
    tests: ['test/keys/rotation.test.ts'],
    file: 'src/keys/recent-handles.ts',
    find: '&& kinds.includes(handle.kind)',
    replace: '',
  },
  {
    id: 'any-secret-once-a-tag-is-verified',
    tests: ['test/domain/handle.test.ts'],
    file: 'src/domain/handle.ts',
    find: 'return secret === verified',
    replace: 'return true',
  },
  {
    id: 'old-key-ends-with-its-successor',
    tests: ['test/keys/rotation.test.ts'],
    file: 'src/keys/rules.ts',
    find: 'const end = follower.activeAt + policy.overlapSeconds[key.kind]',
    replace: 'const end = follower.activeAt',
  },
  {
    id: 'small-number-of-a-signature-at-the-wrong-end',
    tests: ['test/keys/sign.test.ts'],
    file: 'src/keys/sign.ts',
    find: '(index + 1) * numberBytes - digits.length',
    replace: 'index * numberBytes',
  },
  {
    id: 'algorithm-that-is-off-still-signs',
    rule: 'oidc-core-10.1.1-rotation',
    file: 'src/domain/key-term.ts',
    find: 'if (terms.at(-1)?.retiredAt !== undefined) return undefined',
    replace: '',
  },
  {
    id: 'key-of-an-algorithm-that-is-off-ends-at-once',
    rule: 'oidc-core-10.1.1-rotation',
    file: 'src/keys/rules.ts',
    find: 'retiredAt: key.retiredAt ?? now + policy.overlapSeconds[key.kind]',
    replace: 'retiredAt: now',
  },
] as const satisfies readonly Fault[]
