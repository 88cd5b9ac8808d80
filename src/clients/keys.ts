import { isObject } from '../domain/is-object.ts'
import { KeySetFault, type PublicKey, parseKeySet, readKeyFile } from '../domain/key-set.ts'
import { type JsonObject, rejection } from './members.ts'

/** Reads `jwks`, RFC 7591 §2: public keys only, and not together with `jwks_uri`. */
export function readKeys(
  members: JsonObject,
  name: string,
): { readonly keys: readonly PublicKey[] } | undefined {
  const value = members[name] ?? ''
  if (value === '') return undefined
  if ((members['jwks_uri'] ?? '') !== '')
    throw rejection('jwks and jwks_uri exclude each other', { rule: 'rfc7591-2-jwks-exclusive' })
  try {
    return { keys: parseKeySet(value) }
  } catch (error) {
    if (error instanceof KeySetFault) throw rejection(`jwks ${error.message}`)
    throw error
  }
}

/** Returns the keys that are registered by value. */
export function keysOf(jwks: unknown): readonly PublicKey[] {
  // `as`: readKeys alone writes this member.
  return isObject(jwks) ? (jwks['keys'] as readonly PublicKey[]) : []
}

/** Returns the keys together with others. @throws {OAuthError} for a `kid` that one has. */
export function addKeys(keys: readonly PublicKey[], added: readonly PublicKey[]): readonly PublicKey[] {
  const repeated = added.find(({ kid }) => keys.some((key) => key.kid === kid))
  if (repeated !== undefined) throw rejection(`the client has a key with kid ${repeated.kid}`)
  return [...keys, ...added]
}

/** Returns the keys without one. @throws {OAuthError} for an unknown `kid`, and for that of the last key. */
export function removeKey(keys: readonly PublicKey[], kid: string): readonly PublicKey[] {
  const left = keys.filter((key) => key.kid !== kid)
  if (left.length === keys.length) throw rejection('the client has no key with this kid')
  if (left.length === 0) throw rejection('it is the only key; add another one first')
  return left
}

/** Reads what was typed: a JWK set, a JWK or PEM. @throws {OAuthError} for anything else. */
export function readKeyText(text: string): readonly PublicKey[] {
  try {
    return readKeyFile(text).keys
  } catch (error) {
    if (error instanceof KeySetFault) throw rejection(`the text ${error.message}`)
    throw error
  }
}
