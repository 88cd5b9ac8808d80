import { hash, timingSafeEqual } from 'node:crypto'
import { check } from './check.ts'

/**
 * The `code_challenge` of an authorization request, RFC 7636 §4.2 and RFC 7636 §4.3; S256 is the only method, and
 * every client needs one, OAuth 2.1 §4.1.1.
 * @param optional Whether the client may leave PKCE out; what it does send is judged all the same.
 * @throws {OAuthError} `invalid_request`
 */
export function requireCodeChallenge(
  request: {
    readonly codeChallenge: string | undefined
    readonly codeChallengeMethod: string | undefined
  },
  { optional }: { readonly optional: boolean },
): string | undefined {
  const { codeChallenge, codeChallengeMethod } = request
  if (codeChallenge === undefined && codeChallengeMethod === undefined && optional) return undefined
  check(
    codeChallenge !== undefined,
    'rfc7636-4.4.1-challenge-required',
    'invalid_request',
    'code_challenge is missing; PKCE is required, with S256, unless lychgate client set --pkce optional lifts it for a confidential client',
    { received: codeChallenge, passed: 'code_challenge is present' },
  )
  // RFC 7636 §4.3: a missing method means plain, so it must not be read as S256.
  check(
    codeChallengeMethod !== undefined,
    'rfc7636-4.3-method-default-plain',
    'invalid_request',
    'code_challenge_method is missing; it must be S256',
    { passed: 'code_challenge_method is present' },
  )
  check(
    codeChallengeMethod === 'S256',
    'rfc7636-4.4.1-method-unsupported',
    'invalid_request',
    'code_challenge_method must be S256',
    { received: codeChallengeMethod, passed: 'code_challenge_method is S256' },
  )
  check(
    isCodeChallenge(codeChallenge),
    'rfc7636-4.2-challenge-syntax',
    'invalid_request',
    'code_challenge must be 43 characters of unpadded base64url',
    { received: `${codeChallenge.length} characters`, passed: 'code_challenge has the length of S256' },
  )
  return codeChallenge
}

/**
 * How many of the 32 bytes of a challenge are kept once its code is redeemed. They only decide whether a second use is
 * by a client that knows the verifier, and so revokes the grant (RFC 6749 §4.1.2). 64 bits are enough for that.
 */
export const keptChallengeBytes = 8

/**
 * Proves that the redeemer of a code made its authorization request, RFC 7636 §4.6. Constant time. A verifier
 * where no challenge was made is rejected too: an attacker may have removed the challenge, RFC 9700 §2.1.1.
 * @throws {OAuthError} `invalid_grant`; `invalid_request` for a verifier without a challenge, OAuth 2.1 §3.2.4.
 */
export function verifyCodeVerifier(
  codeVerifier: string | undefined,
  codeChallenge: string | undefined,
): void {
  if (codeVerifier === undefined && codeChallenge === undefined) return
  check(
    codeChallenge !== undefined,
    'rfc9700-2.1.1-downgrade',
    'invalid_request',
    'code_verifier was sent, but the authorization request had no code_challenge',
    { passed: 'the authorization request had a code_challenge' },
  )
  check(
    codeVerifier !== undefined,
    'rfc7636-4.5-verifier-required',
    'invalid_grant',
    'code_verifier is missing',
    { passed: 'code_verifier is present' },
  )
  check(
    /^[A-Za-z0-9\-._~]{43,128}$/.test(codeVerifier),
    'rfc7636-4.1-verifier-syntax',
    'invalid_grant',
    'code_verifier must be 43 to 128 letters, digits, hyphens, dots, underscores or tildes',
    { received: `${codeVerifier.length} characters`, passed: 'code_verifier has a valid syntax' },
  )
  const challenge = hash('sha256', codeVerifier, 'base64url')
  const [computed, stored] = [Buffer.from(challenge, 'base64url'), Buffer.from(codeChallenge, 'base64url')]
  const isWhole = stored.length === computed.length || stored.length === keptChallengeBytes
  const isMatch = isWhole && timingSafeEqual(computed.subarray(0, stored.length), stored)
  check(
    isMatch,
    isMatch ? 'rfc7636-4.6-verify-s256' : 'rfc7636-4.6-mismatch-invalid-grant',
    'invalid_grant',
    'code_verifier does not match the code_challenge',
    {
      // The challenge was in a URL, and reveals nothing about the verifier.
      stored: codeChallenge,
      received: challenge,
      passed: 'S256 of the code_verifier is the code_challenge',
    },
  )
}

// The last of 43 characters carries 4 bits only: an S256 challenge has one spelling, any other can never be matched.
function isCodeChallenge(text: string): boolean {
  const bytes = Buffer.from(text, 'base64url')
  return text.length === 43 && bytes.length === 32 && bytes.toString('base64url') === text
}
