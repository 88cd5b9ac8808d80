import { constants, type KeyObject, verify } from 'node:crypto'
import { check } from '../../domain/check.ts'
import {
  algorithmNamed,
  algorithmOf,
  type ClientAlgorithm,
  keyObject,
  type PublicKey,
} from '../../domain/key-set.ts'
import type { Assertion } from './assertion.ts'
import { shown } from './claims.ts'

/**
 * Checks the signature of an assertion by one of these keys, RFC 7523 §3.
 * @param registered The algorithm that the client registered: what the header says has no part in it, RFC 8725 §3.1.
 * @throws {OAuthError} `invalid_client`
 */
export function assertSignature(
  { header, signed, signature }: Assertion,
  registered: ClientAlgorithm | undefined,
  keys: readonly PublicKey[],
): void {
  const { kid, alg } = header
  const named = keys.filter((key) => kid === undefined || key.kid === kid)
  const usable = named.flatMap((key) => {
    const algorithm = algorithmOf(key, registered)
    const material = keyObject(key)
    return algorithm === undefined || material === undefined ? [] : [{ algorithm, material }]
  })
  const [key, ...others] = usable
  // OpenID Connect Core §10.1: with several keys, kid says which.
  check(
    key !== undefined && others.length === 0,
    'rfc7523-3-signature',
    'invalid_client',
    key === undefined ? 'there is no such key' : 'there are several keys, and kid is missing',
    { stored: keys.map((one) => one.kid ?? ''), received: shown(kid) },
  )
  check(
    algorithmNamed(alg) === key.algorithm,
    'rfc7523-3-alg-registered',
    'invalid_client',
    'alg is not the algorithm of the registered key',
    { stored: key.algorithm, received: shown(alg) },
  )
  check(
    verifies(key.algorithm, key.material, Buffer.from(signed), signature),
    'rfc7523-3-signature',
    'invalid_client',
    'the signature is wrong',
    { passed: 'the signature is that of a registered key' },
  )
}

/** Verifies as RFC 7518 §3.3 to §3.5 and RFC 8037 §3.1 say. */
function verifies(algorithm: ClientAlgorithm, key: KeyObject, signed: Buffer, signature: Buffer): boolean {
  const { RSA_PKCS1_PADDING, RSA_PKCS1_PSS_PADDING } = constants
  switch (algorithm) {
    case 'ES256':
      return verify('sha256', signed, { key, dsaEncoding: 'ieee-p1363' }, signature)
    case 'RS256':
      return verify('sha256', signed, { key, padding: RSA_PKCS1_PADDING }, signature)
    case 'PS256':
      return verify('sha256', signed, { key, padding: RSA_PKCS1_PSS_PADDING, saltLength: 32 }, signature)
    case 'EdDSA':
      return verify(null, signed, key, signature)
  }
}
