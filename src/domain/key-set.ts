import { createPublicKey, hash, type KeyObject } from 'node:crypto'
import { isObject } from './is-object.ts'
import { parseStrictJson } from './strict-json.ts'

/** The algorithms by which a client may sign, RFC 7518 §3.1 and RFC 8037 §3.1. */
export const clientAlgorithms = ['ES256', 'PS256', 'RS256', 'EdDSA'] as const
export type ClientAlgorithm = (typeof clientAlgorithms)[number]
/**
 * The names by which clients may call them: RFC 9864 §2.2 calls EdDSA with this curve Ed25519, as oauth4webapi does.
 */
export const algorithmNames = [...clientAlgorithms, 'Ed25519'] as const

/** Returns the algorithm of a name. */
export function algorithmNamed(name: unknown): ClientAlgorithm | undefined {
  return name === 'Ed25519' ? 'EdDSA' : clientAlgorithms.find((one) => one === name)
}

/** A public key of a client, RFC 7517 §4: only the members that are used here. */
export interface PublicKey {
  readonly kty: 'EC' | 'RSA' | 'OKP'
  readonly kid?: string
  readonly alg?: ClientAlgorithm
  readonly crv?: string
  readonly x?: string
  readonly y?: string
  readonly n?: string
  readonly e?: string
}

/** A JWK set that cannot be used; `message` continues a sentence: `has a private key`. */
export class KeySetFault extends Error {}

const mostKeys = 20
const longestKid = 256
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']
const typeOfAlgorithm = { ES256: 'EC', PS256: 'RSA', RS256: 'RSA', EdDSA: 'OKP' } as const
/** A modulus of 2048 to 4096 bits, RFC 7518 §3.3; a longer one costs too much to verify with. */
const modulus = /^[A-Za-z0-9_-]{342,683}$/
/** At most 32 bits: a larger exponent costs as much as a longer modulus. */
const exponent = /^[A-Za-z0-9_-]{2,6}$/
const numberOf32Bytes = /^[A-Za-z0-9_-]{43}$/

/**
 * Reads a JWK set, RFC 7517 §5. Keys that cannot verify a signature of `clientAlgorithms` are left out, as RFC 7517 §5
 * says. A key without `kid` gets its thumbprint.
 * @throws {KeySetFault} for what is no JWK set, has a private or symmetric key, or no usable key.
 */
export function parseKeySet(value: unknown): readonly PublicKey[] {
  const keys = isObject(value) ? value['keys'] : undefined
  if (!Array.isArray(keys)) throw new KeySetFault('is not a JWK set')
  if (keys.length > mostKeys) throw new KeySetFault(`has more than ${mostKeys} keys`)
  if (keys.some(hasPrivatePart)) throw new KeySetFault('has a private or symmetric key')
  const usable = keys.flatMap((key) => parseKey(key) ?? [])
  if (usable.length === 0) throw new KeySetFault(`has no key for ${clientAlgorithms.join(', ')}`)
  return usable
}

/**
 * Reads a file of an operator: a JWK set, one JWK, or a public key as PEM.
 * @throws {KeySetFault} for anything else, a private key among them.
 */
export function readKeyFile(content: string): { readonly keys: readonly PublicKey[] } {
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(content))
    throw new KeySetFault('has a private or symmetric key')
  const value = content.includes('-----BEGIN ') ? readPem(content) : parseStrictJson(content)
  return { keys: parseKeySet(isObject(value) && 'kty' in value ? { keys: [value] } : value) }
}

function readPem(content: string): unknown {
  try {
    return createPublicKey(content).export({ format: 'jwk' })
  } catch {
    return undefined
  }
}

/** Whether a JWK has a member of a private or symmetric key that says something. */
export function hasPrivatePart(jwk: unknown): boolean {
  return isObject(jwk) && privateMembers.some((name) => !isEmpty(jwk[name]))
}

/** Whether a member says nothing, null as in RFC 7591 §2: .NET writes members that a key does not have. */
function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || (Array.isArray(value) && value.length === 0)
}

/** Reads one JWK, RFC 7517 §4; undefined for what cannot verify a signature of `clientAlgorithms`. */
export function parseKey(jwk: unknown): PublicKey | undefined {
  if (!isObject(jwk)) return undefined
  const { kid, alg, use, key_ops: operations } = jwk
  const material = parseMaterial(jwk)
  if (material === undefined) return undefined
  // RFC 7517 §4.2 and §4.3: a key that is for something else.
  if (!isEmpty(use) && use !== 'sig') return undefined
  if (!isEmpty(operations) && !(Array.isArray(operations) && operations.includes('verify'))) return undefined
  const algorithm = algorithmNamed(alg)
  if (!isEmpty(alg) && (algorithm === undefined || typeOfAlgorithm[algorithm] !== material.kty))
    return undefined
  if (!isEmpty(kid) && (typeof kid !== 'string' || kid.length > longestKid)) return undefined
  const key = { ...material, ...(algorithm !== undefined && { alg: algorithm }) }
  const prepared = prepareKey(key)
  return prepared && { ...key, kid: typeof kid === 'string' ? kid : prepared.thumbprint }
}

type Material = Omit<PublicKey, 'kid' | 'alg'>

function parseMaterial({ kty, crv, x, y, n, e }: Readonly<Record<string, unknown>>): Material | undefined {
  const matches = (text: unknown, form: RegExp): text is string => typeof text === 'string' && form.test(text)
  if (kty === 'EC' && crv === 'P-256' && matches(x, numberOf32Bytes) && matches(y, numberOf32Bytes))
    return { kty, crv, x, y }
  if (kty === 'OKP' && crv === 'Ed25519' && matches(x, numberOf32Bytes)) return { kty, crv, x }
  if (kty === 'RSA' && matches(n, modulus) && matches(e, exponent)) return { kty, n, e }
  return undefined
}

/** What is made from a key once. */
interface PreparedKey {
  readonly object: KeyObject
  readonly thumbprint: string
}

const mostPrepared = 500
/** By the members that make the key: a client that is read from the store again has the same key as another object. */
const preparedKeys = new Map<string, PreparedKey>()

/** Prepares a key to verify with; undefined if it is not on its curve. The last ones are kept. */
export function prepareKey({ crv, e, kty, n, x, y }: PublicKey): PreparedKey | undefined {
  // RFC 7638 §3: the required members in lexicographic order.
  const members = JSON.stringify({ crv, e, kty, n, x, y })
  const known = preparedKeys.get(members)
  if (known !== undefined) return known
  try {
    const object = createPublicKey({ key: JSON.parse(members), format: 'jwk' })
    const made = { object, thumbprint: hash('sha256', members, 'base64url') }
    if (preparedKeys.size >= mostPrepared) preparedKeys.clear()
    preparedKeys.set(members, made)
    return made
  } catch {
    return undefined
  }
}

/** Returns the key in the form that Node verifies with; undefined if it is not on its curve. */
export function keyObject(key: PublicKey): KeyObject | undefined {
  return prepareKey(key)?.object
}

/**
 * Returns the algorithm by which signatures of a key are verified: the one that the client registered, else that of
 * the key, else the usual one of its type; undefined if the key is of another type than the registered algorithm. The
 * header of a JWS has no say (RFC 8725 §3.1).
 */
export function algorithmOf(
  { kty, alg }: PublicKey,
  registered: ClientAlgorithm | undefined,
): ClientAlgorithm | undefined {
  if (registered === undefined) return alg ?? ({ EC: 'ES256', RSA: 'RS256', OKP: 'EdDSA' } as const)[kty]
  return typeOfAlgorithm[registered] === kty && (alg ?? registered) === registered ? registered : undefined
}
