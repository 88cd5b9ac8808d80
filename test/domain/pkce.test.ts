import t from 'tap'
import { keptChallengeBytes, requireCodeChallenge, verifyCodeVerifier } from '../../src/domain/pkce.ts'
import { passedDuring } from '../helpers/checks.ts'

// RFC 7636 appendix B.
const codeVerifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
const codeChallenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
const required = { optional: false }
const optional = { optional: true }

t.test('an S256 challenge is accepted unchanged', async (t) => {
  const request = { codeChallenge, codeChallengeMethod: 'S256' }
  t.equal(requireCodeChallenge(request, required), codeChallenge)
  t.equal(requireCodeChallenge(request, optional), codeChallenge)
})

t.test('a missing challenge is rejected unless PKCE is optional for the client', async (t) => {
  const absent = { codeChallenge: undefined, codeChallengeMethod: undefined }
  t.throws(() => requireCodeChallenge(absent, required), {
    code: 'invalid_request',
    message: /code_challenge is missing/,
    detail: { rule: 'rfc7636-4.4.1-challenge-required' },
  })
  t.equal(requireCodeChallenge(absent, optional), undefined)
})

t.test('a method without a challenge is rejected, even where PKCE is optional', async (t) => {
  for (const policy of [required, optional]) {
    t.throws(() => requireCodeChallenge({ codeChallenge: undefined, codeChallengeMethod: 'S256' }, policy), {
      code: 'invalid_request',
      message: /code_challenge is missing/,
    })
  }
})

t.test('a missing or unsupported method is rejected by name, even where PKCE is optional', async (t) => {
  for (const codeChallengeMethod of [undefined, 'plain', 's256', 'S512', 'S256 ']) {
    for (const policy of [required, optional]) {
      t.throws(
        () => requireCodeChallenge({ codeChallenge, codeChallengeMethod }, policy),
        {
          code: 'invalid_request',
          message: /code_challenge_method .*S256/,
          detail: {
            rule: codeChallengeMethod
              ? 'rfc7636-4.4.1-method-unsupported'
              : 'rfc7636-4.3-method-default-plain',
          },
        },
        `method ${codeChallengeMethod}`,
      )
    }
  }
})

t.test('a challenge that is not 32 bytes in canonical base64url is rejected', async (t) => {
  const malformed = [
    codeChallenge.slice(1),
    `${codeChallenge}A`,
    `${codeChallenge}=`,
    codeChallenge.replace('-', '+'),
    codeChallenge.replace('E', ' '),
    codeChallenge.replace('E', '~'),
    `${codeChallenge.slice(0, -1)}N`,
    'A'.repeat(128),
    '',
  ]
  for (const text of malformed) {
    t.throws(
      () => requireCodeChallenge({ codeChallenge: text, codeChallengeMethod: 'S256' }, required),
      {
        code: 'invalid_request',
        message: /code_challenge /,
        detail: { rule: 'rfc7636-4.2-challenge-syntax' },
      },
      text,
    )
  }
})

t.test('the verifier of appendix B matches its challenge', async (t) => {
  const passed = passedDuring(() => verifyCodeVerifier(codeVerifier, codeChallenge))
  t.match(passed.at(-1), { rule: 'rfc7636-4.6-verify-s256', stored: codeChallenge, received: codeChallenge })
})

t.test('without verifier and challenge there is nothing to verify', async (t) => {
  t.doesNotThrow(() => verifyCodeVerifier(undefined, undefined))
})

t.test('every other verifier is invalid_grant, by the rule it breaks', async (t) => {
  const rejected: [string | undefined, string][] = [
    [undefined, 'rfc7636-4.5-verifier-required'],
    [codeVerifier.slice(1), 'rfc7636-4.1-verifier-syntax'],
    ['a'.repeat(42), 'rfc7636-4.1-verifier-syntax'],
    ['a'.repeat(129), 'rfc7636-4.1-verifier-syntax'],
    [`${codeVerifier}+`, 'rfc7636-4.1-verifier-syntax'],
    [`${codeVerifier}=`, 'rfc7636-4.1-verifier-syntax'],
    [`${codeVerifier}\n`, 'rfc7636-4.1-verifier-syntax'],
    [codeVerifier.replace('d', 'e'), 'rfc7636-4.6-mismatch-invalid-grant'],
    [codeVerifier.toUpperCase(), 'rfc7636-4.6-mismatch-invalid-grant'],
    [codeChallenge, 'rfc7636-4.6-mismatch-invalid-grant'],
    ['a'.repeat(43), 'rfc7636-4.6-mismatch-invalid-grant'],
    ['~._-'.repeat(32), 'rfc7636-4.6-mismatch-invalid-grant'],
  ]
  for (const [verifier, rule] of rejected) {
    t.throws(
      () => verifyCodeVerifier(verifier, codeChallenge),
      { code: 'invalid_grant', message: /code_verifier/, detail: { rule } },
      verifier ?? 'missing',
    )
  }
})

t.test('the part of a challenge that is kept after the redemption still verifies its verifier', async (t) => {
  t.equal(keptChallengeBytes, 8, '64 bits')
  const kept = Buffer.from(codeChallenge, 'base64url').subarray(0, keptChallengeBytes).toString('base64url')
  t.doesNotThrow(() => verifyCodeVerifier(codeVerifier, kept))
  t.throws(() => verifyCodeVerifier('a'.repeat(43), kept), { code: 'invalid_grant' })
  for (const length of [0, keptChallengeBytes - 1, keptChallengeBytes + 1, 31, 33]) {
    const other = Buffer.concat([Buffer.from(codeChallenge, 'base64url'), Buffer.alloc(1)]).subarray(
      0,
      length,
    )
    t.throws(() => verifyCodeVerifier(codeVerifier, other.toString('base64url')), { code: 'invalid_grant' })
  }
})

t.test('a stored challenge of another length is a mismatch, not an exception', async (t) => {
  t.throws(() => verifyCodeVerifier(codeVerifier, 'short'), { code: 'invalid_grant' })
})

t.test('a verifier without a challenge is rejected', async (t) => {
  t.throws(() => verifyCodeVerifier(codeVerifier, undefined), {
    code: 'invalid_request',
    detail: { rule: 'rfc9700-2.1.1-downgrade' },
  })
})
