import type { Fault } from './fault.ts'

const pkce = 'src/domain/pkce.ts'

/** Faults of PKCE, RFC 7636. */
export const pkceFaults = [
  {
    id: 'verifier-not-compared',
    rule: 'rfc7636-4.6-mismatch-invalid-grant',
    file: pkce,
    find: 'isWhole && timingSafeEqual(computed.subarray(0, stored.length), stored)',
    replace: 'isWhole',
  },
  {
    id: 'verifier-skipped',
    rule: 'rfc7636-4.5-verifier-required',
    file: 'src/domain/authorization-code.ts',
    find: 'verifyCodeVerifier(codeVerifier, grant.codeChallenge)',
    replace: 'if (codeVerifier !== undefined) verifyCodeVerifier(codeVerifier, grant.codeChallenge)',
  },
  {
    id: 'plain-accepted',
    rule: 'rfc7636-4.4.1-method-unsupported',
    file: pkce,
    find: "codeChallengeMethod === 'S256',",
    replace: "['S256', 'plain'].includes(codeChallengeMethod),",
  },
  {
    id: 'missing-method-taken-for-s256',
    rule: 'rfc7636-4.3-method-default-plain',
    file: pkce,
    find: 'const { codeChallenge, codeChallengeMethod } = request',
    replace: "const { codeChallenge, codeChallengeMethod = 'S256' } = request",
  },
  {
    id: 'pkce-optional-for-all',
    rule: 'rfc8252-8.1-native-pkce-required',
    file: pkce,
    find: ' && optional) return undefined',
    replace: ' && optional !== undefined) return undefined',
  },
  {
    id: 'pkce-optional-for-an-app',
    rule: 'rfc8252-8.1-native-pkce-required',
    tests: ['test/clients/app-redirects.test.ts'],
    file: 'src/domain/authorization-request.ts',
    find: 'client.pkceOptional && privateUseScheme(proven.redirectUri) === undefined',
    replace: 'client.pkceOptional',
  },
  {
    id: 'challenge-of-any-form',
    rule: 'rfc7636-4.2-challenge-syntax',
    file: pkce,
    find: '    isCodeChallenge(codeChallenge),',
    replace: '    isCodeChallenge(codeChallenge) || codeChallenge.length > 0,',
  },
  {
    id: 'verifier-of-any-length',
    rule: 'rfc7636-4.1-verifier-syntax',
    file: pkce,
    find: '{43,128}$/',
    replace: '+$/',
  },
  {
    id: 'downgrade-not-noticed',
    rule: 'rfc9700-2.1.1-downgrade',
    file: pkce,
    find: 'if (codeVerifier === undefined && codeChallenge === undefined) return',
    replace: 'if (codeChallenge === undefined) return',
  },
  {
    id: 'voluntary-challenge-not-enforced',
    rule: 'rfc9700-2.1.1-pkce-supported',
    file: 'src/domain/authorization-request.ts',
    find: 'const optional = { codeChallenge,',
    replace: 'const optional = { ...(!client.pkceOptional && { codeChallenge }),',
  },
  {
    id: 'pkce-learned-from-an-authorization-request',
    rule: 'rfc9700-2.1.1-confidential-recommended',
    file: 'src/specs/rfc6749-authorization/approval.ts',
    find: '...limitGrants(grant), ...writes,',
    replace: `...limitGrants(grant), ...writes,
        ...(grant.codeChallenge === undefined
          ? []
          : [{ op: 'learnPkce', clientId: client.id, at: now } as const]),`,
  },
  {
    id: 'pkce-learned-in-vain',
    rule: 'rfc9700-2.1.1-confidential-recommended',
    file: 'src/storage/writes.ts',
    find: 'pkceOptional: false, pkceLearnedAt',
    replace: 'pkceLearnedAt',
  },
  {
    id: 'pkce-left-out-of-a-code-of-before',
    rule: 'rfc9700-2.1.1-confidential-recommended',
    file: 'src/domain/pkce-auto.ts',
    find: 'if (!isVerified) check(',
    replace: 'if (isVerified) check(true || ',
  },
  {
    id: 'pkce-forgotten-at-a-change',
    rule: 'rfc9700-2.1.1-confidential-recommended',
    file: 'src/clients/operator-client.ts',
    find: 'const { pkceAutoSince = now, pkceLearnedAt } = before ?? {}',
    replace: 'const { pkceAutoSince = now, pkceLearnedAt }: Partial<Client> = {}',
  },
  {
    id: 'pkce-learned-since-not-compared',
    tests: ['test/conformance/rfc9700-pkce-auto.test.ts'],
    file: 'src/domain/pkce-auto.ts',
    find: '?.pkceOptional === true',
    replace: ' !== undefined',
  },
  {
    id: 'wrong-verifier-burns-the-code',
    rule: 'rfc7636-4.4-bound-to-code',
    file: 'src/domain/authorization-code.ts',
    find: '  verifyCodeVerifier(codeVerifier, grant.codeChallenge)',
    replace: `  try {
    verifyCodeVerifier(codeVerifier, grant.codeChallenge)
  } catch (error) {
    const rejection = error as never
    return { rejection, writes: [{ op: 'revokeGrant', grantId: grant.id, at: now, rule: '' }] }
  }`,
  },
] as const satisfies readonly Fault[]
