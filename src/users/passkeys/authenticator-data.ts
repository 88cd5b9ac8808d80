import { type CborItem, readItem } from './cbor.ts'

/*
 * Authenticator data and attestation objects, Web Authentication Level 3 §6.1 and §6.5, checked in size and form before
 * the library sees them.
 */

const flagsAt = 32
const attested = 0x40
const extended = 0x80
/** Up to here: the hash of the relying party id, the flags and the counter. */
const headBytes = 37
/** After the head: 16 bytes of AAGUID and 2 of the length of the credential id. */
const idAt = headBytes + 18
/** Web Authentication §5.8.3. */
const longestCredentialId = 1023

/**
 * The attestation object of a new passkey as attestation format `none`, with the same credential and without
 * extensions. The server asks for no attestation and trusts none, so the statement is dropped unread: to verify the
 * other formats, the library parses certificates of the sender and fetches the URLs in them.
 * @throws {RangeError} for anything that is not one.
 */
export function withoutAttestation(attestationObject: Buffer): Buffer {
  const { item, end } = readItem(attestationObject, 0)
  const authData = item instanceof Map ? item.get('authData') : undefined
  if (!Buffer.isBuffer(authData) || end !== attestationObject.length) throw new RangeError('no attestation')
  const data = Buffer.from(authData.subarray(0, endOfCredential(authData)))
  data.writeUInt8((data[flagsAt] ?? 0) & ~extended, flagsAt)
  const length = Buffer.alloc(2)
  length.writeUInt16BE(data.length)
  const text = (value: string) => Buffer.from([0x60 + value.length, ...Buffer.from(value)])
  return Buffer.concat([
    Buffer.from([0xa3]),
    ...['fmt', 'none', 'attStmt'].map(text),
    Buffer.from([0xa0]),
    text('authData'),
    Buffer.from([0x59]),
    length,
    data,
  ])
}

/**
 * Checks the authenticator data of a sign-in: no credential, and after the head nothing but one map of extensions.
 * @throws {RangeError} for anything else.
 */
export function assertAssertionData(authData: Buffer): void {
  const flags = authData[flagsAt] ?? 0
  if (authData.length < headBytes || (flags & attested) !== 0) throw new RangeError('not of a sign-in')
  assertExtensions(authData, headBytes)
}

/** Where the credential ends: whatever follows is extensions. */
function endOfCredential(authData: Buffer): number {
  const flags = authData[flagsAt] ?? 0
  if (authData.length < idAt || (flags & attested) === 0) throw new RangeError('no credential')
  const idBytes = authData.readUInt16BE(idAt - 2)
  if (idBytes === 0 || idBytes > longestCredentialId) throw new RangeError('no credential id')
  const { item, end } = readItem(authData, idAt + idBytes)
  if (!isPublicKey(item)) throw new RangeError('no public key')
  assertExtensions(authData, end)
  return end
}

function assertExtensions(authData: Buffer, start: number): void {
  const hasExtensions = ((authData[flagsAt] ?? 0) & extended) !== 0
  const { item, end } = hasExtensions ? readItem(authData, start) : { item: undefined, end: start }
  if (end !== authData.length || hasExtensions !== item instanceof Map) throw new RangeError('not extensions')
}

/** EdDSA over Ed25519, ES256 and RS256 with the members of RFC 9053 §7 and RFC 8230 §4, and no others, §6.5.1.1. */
function isPublicKey(item: CborItem): boolean {
  if (!(item instanceof Map)) return false
  const has = (key: number, value: number) => item.get(key) === value
  const bytes = (key: number) => {
    const value = item.get(key)
    return Buffer.isBuffer(value) ? value.length : 0
  }
  switch (item.get(3)) {
    case -8:
      return item.size === 4 && has(1, 1) && has(-1, 6) && bytes(-2) === 32
    case -7:
      return item.size === 5 && has(1, 2) && has(-1, 1) && bytes(-2) === 32 && bytes(-3) === 32
    case -257:
      return item.size === 4 && has(1, 3) && isBetween(bytes(-1), 256, 513) && isBetween(bytes(-2), 1, 4)
    default:
      return false
  }
}

function isBetween(value: number, least: number, most: number): boolean {
  return value >= least && value <= most
}
