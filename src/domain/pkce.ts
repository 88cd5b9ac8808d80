import { hash, timingSafeEqual } from 'node:crypto'
import { recordCheck } from './check.ts'
import { OAuthError } from './errors.ts'

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
  if (codeChallenge === undefined) {
    throw new OAuthError(
      'invalid_request',
      'code_challenge is missing; PKCE is required, with S256, unless lychgate client set --pkce optional lifts it for a confidential client',
      { rule: 'rfc7636-4.4.1-challenge-required' },
    )
  }
  // RFC 7636 §4.3: a missing method means plain, so it must not be read as S256.
  if (codeChallengeMethod === undefined) {
    throw new OAuthError('invalid_request', 'code_challenge_method is missing; it must be S256', {
      rule: 'rfc7636-4.3-method-default-plain',
    })
  }
  if (codeChallengeMethod !== 'S256') {
    throw new OAuthError('invalid_request', 'code_challenge_method must be S256', {
      rule: 'rfc7636-4.4.1-method-unsupported',
      received: codeChallengeMethod,
    })
  }
  if (!isCodeChallenge(codeChallenge)) {
    throw new OAuthError('invalid_request', 'code_challenge must be 43 characters of unpadded base64url', {
      rule: 'rfc7636-4.2-challenge-syntax',
      received: `${codeChallenge.length} characters`,
    })
  }
  recordCheck(
    'rfc7636-4.4.1-challenge-required',
    'code_challenge is there, by S256',
    undefined,
    codeChallenge,
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
  if (codeChallenge === undefined) {
    throw new OAuthError(
      'invalid_request',
      'code_verifier was sent, but the authorization request had no code_challenge',
      { rule: 'rfc9700-2.1.1-downgrade' },
    )
  }
  if (codeVerifier === undefined) {
    throw new OAuthError('invalid_grant', 'code_verifier is missing', {
      rule: 'rfc7636-4.5-verifier-required',
    })
  }
  if (!/^[A-Za-z0-9\-._~]{43,128}$/.test(codeVerifier)) {
    throw new OAuthError(
      'invalid_grant',
      'code_verifier must be 43 to 128 letters, digits, hyphens, dots, underscores or tildes',
      { rule: 'rfc7636-4.1-verifier-syntax', received: `${codeVerifier.length} characters` },
    )
  }
  const challenge = hash('sha256', codeVerifier, 'base64url')
  const [computed, stored] = [Buffer.from(challenge, 'base64url'), Buffer.from(codeChallenge, 'base64url')]
  const isWhole = stored.length === computed.length || stored.length === keptChallengeBytes
  if (!isWhole || !timingSafeEqual(computed.subarray(0, stored.length), stored)) {
    throw new OAuthError('invalid_grant', 'code_verifier does not match the code_challenge', {
      rule: 'rfc7636-4.6-mismatch-invalid-grant',
      // The challenge was in an address bar, and reveals nothing about the verifier.
      stored: codeChallenge,
      received: challenge,
    })
  }
  recordCheck(
    'rfc7636-4.6-verify-s256',
    'S256 of the code_verifier is the code_challenge',
    codeChallenge,
    challenge,
  )
}

// The last of 43 characters carries 4 bits only: an S256 challenge has one spelling, any other can never be matched.
function isCodeChallenge(text: string): boolean {
  const bytes = Buffer.from(text, 'base64url')
  return text.length === 43 && bytes.length === 32 && bytes.toString('base64url') === text
}
