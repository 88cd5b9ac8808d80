import { check } from '../../domain/check.ts'
import { type Confirmation, isSameKey } from '../../domain/confirmation.ts'
import type { Proof } from '../../domain/dpop-proof.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { AuthorizationRequest, Client } from '../../domain/model.ts'
import { type Parameters, single } from '../../domain/parameters.ts'

type RequestExtra = NonNullable<AuthorizationRequest['extra']>

/** The name under which an authorization request stores the thumbprint of the key that its code is bound to. */
const extraName = 'dpopKey'

/** Returns the key that an authorization request is bound to. */
export function keyOf(extra: AuthorizationRequest['extra']): string | undefined {
  const jkt = extra?.[extraName]
  return typeof jkt === 'string' ? jkt : undefined
}

/** Binds a pushed request to the key of the proof that came with it, RFC 9449 §10.1. */
export function extraOfProof({ jkt }: Proof): RequestExtra {
  return { [extraName]: jkt }
}

/**
 * Reads `dpop_jkt`, RFC 9449 §10; with the proof of a push it must be the same key, RFC 9449 §10.1.
 * @throws {OAuthError} `invalid_request`
 */
export function readKey(parameters: Parameters, extra: RequestExtra): RequestExtra | undefined {
  const sent = single(parameters, 'dpop_jkt')
  if (sent === undefined) return undefined
  check(
    /^[\w-]{43}$/.test(sent),
    'rfc9449-10-dpop-jkt',
    'invalid_request',
    'dpop_jkt is not a SHA-256 thumbprint in base64url',
    { received: sent.slice(0, 100), passed: 'dpop_jkt is a thumbprint' },
  )
  const proven = keyOf(extra)
  check(
    proven === undefined || proven === sent,
    'rfc9449-10.1-par',
    'invalid_request',
    'dpop_jkt is not the key of the DPoP header',
    { stored: proven, received: sent, passed: 'dpop_jkt and the DPoP header agree' },
  )
  return { [extraName]: sent }
}

/**
 * Checks that a client which registered for bound tokens only sends a proof, RFC 9449 §5.2.
 * @throws {OAuthError} `invalid_dpop_proof`
 */
export function assertMayOmitProof({ extra }: Client): void {
  if (extra?.['dpop_bound_access_tokens'] !== true) return
  throw new OAuthError(
    'invalid_dpop_proof',
    'this client registered for bound tokens (dpop_bound_access_tokens); send a DPoP header',
    { rule: 'rfc9449-5.2-client-requires' },
  )
}

/**
 * Checks that a bound code (RFC 9449 §10) or refresh token (RFC 9449 §5) is used with its key.
 * @throws {OAuthError} `invalid_grant`
 */
export function assertBoundKey(bound: Confirmation, used: Confirmation | undefined, kind: string): void {
  const what = kind === 'code' ? 'code' : 'refresh token'
  check(
    isSameKey(bound, used),
    kind === 'code' ? 'rfc9449-10-dpop-jkt' : 'rfc9449-5-refresh-bound-public',
    'invalid_grant',
    `the ${what} is bound to another key; send a DPoP proof by its key`,
    {
      stored: bound['jkt'],
      received: used?.['jkt'] ?? 'no proof',
      passed: `the ${what} is bound to this key`,
    },
  )
}
