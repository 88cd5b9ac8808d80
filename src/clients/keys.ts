import { isObject } from '../domain/is-object.ts'
import { KeySetFault, type PublicKey, parseKeySet } from '../domain/key-set.ts'
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
