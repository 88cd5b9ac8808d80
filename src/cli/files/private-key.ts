import { createPrivateKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import type { PrivateKey } from 'oauth4webapi'
import { isObject } from '../../domain/is-object.ts'
import { parseJson } from '../../domain/strict-json.ts'
import { CommandFailed } from '../failure.ts'

/**
 * Reads the private key of a client, PEM or JWK. An RSA key signs by PS256, unless `alg` of its JWK is RS256.
 * @throws {CommandFailed}
 */
export function readPrivateKey(text: string): PrivateKey {
  try {
    const jwk: unknown = text.trimStart().startsWith('{') ? parseJson(text) : undefined
    if (!isObject(jwk)) return { key: cryptoKeyOf(createPrivateKey(text)) }
    const { kid, alg } = jwk
    // `as`: Node checks what the members are.
    const key = createPrivateKey({ key: jwk as JsonWebKey, format: 'jwk' })
    return { key: cryptoKeyOf(key, alg), ...(typeof kid === 'string' && { kid }) }
  } catch (cause) {
    throw new CommandFailed(
      '--key-file: the file has no private key (PEM or JWK) for ES256, Ed25519 or PS256',
      {
        cause,
      },
    )
  }
}

function cryptoKeyOf(key: KeyObject, alg?: unknown) {
  const algorithm = {
    ec: { name: 'ECDSA', namedCurve: 'P-256' },
    ed25519: { name: 'Ed25519' },
    rsa: { name: alg === 'RS256' ? 'RSASSA-PKCS1-v1_5' : 'RSA-PSS', hash: 'SHA-256' },
  }[String(key.asymmetricKeyType)]
  if (algorithm === undefined) throw new Error('not a key that signs')
  return key.toCryptoKey(algorithm, false, ['sign'])
}
