import { hash } from 'node:crypto'
import { check } from './check.ts'
import { OAuthError } from './errors.ts'
import type { AdmittedClient, Client, Hash, Seconds } from './model.ts'
import { recordKind } from './record.ts'
import { hashSecret, mintSecret } from './secret.ts'

/** An initial access token, RFC 7591 §3: with it a client may register what open registration does not allow. */
export interface InitialToken extends InitialTokenRequest {
  readonly id: Hash
  /** How many clients registered with it. */
  readonly used: number
  readonly createdAt: Seconds
  readonly expiresAt: Seconds
}

/** What an operator asks for. */
export interface InitialTokenRequest {
  readonly name?: string
  /** Whether redirect URIs, and those after sign-out, may be https. */
  readonly redirects: AdmittedClient['redirects']
  /** Whether confidential clients may leave out PKCE. */
  readonly pkce: 'required' | 'optional'
  /** Client metadata that only operators set (RFC 7591 §2), for the clients that register with it. */
  readonly extra?: Client['extra']
  /** How many clients may register with it. */
  readonly uses: number
}

export const initialTokenKind = recordKind<InitialToken>('initial-access-token', {
  id: ({ id }) => id,
  madeAt: ({ createdAt }) => createdAt,
  expiresAt: ({ expiresAt }) => expiresAt,
})

/** Returns the name of a token for operators: the beginning of its hash, by which it cannot be used. */
export function nameOfToken({ id }: Pick<InitialToken, 'id'>): string {
  return id.slice(0, 12)
}

/** Describes a token to an operator. */
export function describeInitialToken(token: InitialToken) {
  const { name, redirects, pkce, extra, uses, used, createdAt, expiresAt } = token
  return {
    token_id: nameOfToken(token),
    ...(name !== undefined && { name }),
    redirects,
    pkce,
    ...extra,
    uses,
    used,
    created_at: createdAt,
    expires_at: expiresAt,
  }
}

/**
 * Makes a token. Its text is shown once, and stored as a hash.
 * @param fresh `secretBytes` random bytes.
 */
export function mintInitialToken(
  request: InitialTokenRequest,
  fresh: Buffer,
  seconds: Seconds,
  now: Seconds,
): { readonly token: string; readonly record: InitialToken } {
  const token = mintSecret('initialToken', fresh)
  const id = hashSecret(token)
  // Operators name the token on a command line, where a dash begins an option.
  if (id.startsWith('-')) return mintInitialToken(request, hash('sha256', fresh, 'buffer'), seconds, now)
  const record = { ...request, id, used: 0, createdAt: now, expiresAt: now + seconds }
  return { token, record }
}

/**
 * Uses a token once more, in the transaction that inserts the client.
 * @throws {OAuthError} `invalid_token`, RFC 6750 §3.1.
 */
export function spendInitialToken(token: InitialToken | undefined, now: Seconds): InitialToken {
  if (token === undefined || now >= token.expiresAt)
    throw wrongInitialToken('the initial access token is unknown, has expired or was revoked')
  check(
    token.used < token.uses,
    'rfc7591-3-initial-access-token',
    'invalid_token',
    'the initial access token has been used up',
    { ...challenge, stored: token.uses, passed: 'the initial access token may be used' },
  )
  return { ...token, used: token.used + 1 }
}

/** Returns the error of a token that is none. */
export function wrongInitialToken(description: string): OAuthError {
  return new OAuthError('invalid_token', description, {
    rule: 'rfc7591-3-initial-access-token',
    ...challenge,
  })
}

const challenge = { headers: { 'www-authenticate': 'Bearer error="invalid_token"' } } as const
