import { hash } from 'node:crypto'
import { compactVerify, createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet } from 'jose'
import type { Seconds } from '../../domain/model.ts'
import type { Check } from './run.ts'

/** What an ID Token is judged against. */
export interface Expected {
  readonly issuer: string
  readonly clientId: string
  /** Absent after a refresh, which need not repeat it. */
  readonly nonce?: string
  /** The user of the ID Token before this one. */
  readonly sub?: string
  readonly accessToken: string
  readonly now: Seconds
}

/** The parts of a JWS; its claims are not verified yet. */
export function decodeJws(jws: string): {
  readonly header: unknown
  readonly claims: Readonly<Record<string, unknown>>
} {
  const claims: unknown = JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString())
  // `as`: only members are read, and what is missing is undefined.
  return { header: decodeProtectedHeader(jws), claims: (claims ?? {}) as Record<string, unknown> }
}

/** Everything a client has to check, OpenID Connect Core §3.1.3.7, one line each. */
export async function checkIdToken(
  jws: string,
  keys: Readonly<Record<string, unknown>>,
  { issuer, clientId, nonce, sub, accessToken, now }: Expected,
): Promise<readonly Check[]> {
  const { header, claims } = decodeJws(jws)
  const { alg = '' } = header as { readonly alg?: string } // decodeProtectedHeader has read it
  const { iss, aud, exp, iat, at_hash: atHash } = claims
  return [
    {
      what: 'signature',
      expected: 'by a key of jwks_uri',
      found: alg,
      ok: await isSigned(jws, keys),
    },
    compare('iss', issuer, iss),
    { what: 'aud', expected: clientId, found: String(aud), ok: [aud].flat().includes(clientId) },
    { what: 'exp', expected: `after ${now}`, found: String(exp), ok: Number(exp) > now },
    { what: 'iat', expected: `about ${now}`, found: String(iat), ok: Math.abs(Number(iat) - now) < 300 },
    ...(nonce === undefined ? [] : [compare('nonce', nonce, claims['nonce'])]),
    ...(sub === undefined ? [] : [compare('sub', sub, claims['sub'])]),
    ...(atHash === undefined ? [] : [compare('at_hash', pendingFactorDigest(alg, accessToken), atHash)]),
  ]
}

/** OpenID Connect Core §3.1.3.6: the left half of the digest the signature is made with; Ed25519 has SHA-512 inside. */
function pendingFactorDigest(alg: string, accessToken: string): string {
  const digest = hash(alg === 'EdDSA' ? 'sha512' : 'sha256', accessToken, 'buffer')
  return digest.subarray(0, digest.length / 2).toString('base64url')
}

function compare(what: string, expected: string, found: unknown): Check {
  return { what, expected, found: String(found), ok: found === expected }
}

async function isSigned(jws: string, keys: Readonly<Record<string, unknown>>): Promise<boolean> {
  try {
    // `as unknown as`: the set is what the server answered; jose looks at every member itself.
    await compactVerify(jws, createLocalJWKSet(keys as unknown as JSONWebKeySet))
    return true
  } catch {
    return false
  }
}
