import { type KeyObject, sign } from 'node:crypto'
import { promisify } from 'node:util'
import type { SigningAlgorithm } from '../domain/model.ts'

/**
 * A JWS in compact form, RFC 7515 §3.1, signed as RFC 7518 §3.3 and §3.4 and RFC 8037 §3.1 define. A prepared key and
 * Node's own signing take less than half of what jose takes for ES256, which imports the key each time.
 * @param header As `encoded` returns it: a key has few, and signs with each of them again and again.
 */
export async function signCompact(
  algorithm: SigningAlgorithm,
  header: string,
  claims: Readonly<Record<string, unknown>>,
  key: KeyObject,
): Promise<string> {
  const input = `${header}.${encoded(claims)}`
  const signature = await signatures[algorithm](Buffer.from(input), key)
  return `${input}.${signature.toString('base64url')}`
}

/** Encodes the header or the claims of a JWS, RFC 7515 §3.1. */
export function encoded(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url')
}

const inPool = promisify(sign)

const signatures: Readonly<
  Record<SigningAlgorithm, (input: Buffer, key: KeyObject) => Buffer | Promise<Buffer>>
> = {
  // Slow enough to be worth another thread.
  RS256: (input, key) => inPool('sha256', input, key),
  // Node takes twice as long for any other form than DER.
  ES256: (input, key) => sideBySide(sign('sha256', input, key)),
  EdDSA: (input, key) => sign(null, input, key),
}

/** Size of a number of a P-256 signature, RFC 7518 §3.4. */
const numberBytes = 32

/** The numbers R and S as 32 bytes each, RFC 7518 §3.4, out of `SEQUENCE { INTEGER r, INTEGER s }`, RFC 3279 §2.2.3. */
function sideBySide(der: Buffer): Buffer {
  // A byte each for type and length of the sequence, then the same before each number: nothing here is long.
  const lengthOfR = der.readUInt8(3)
  const [r, s] = [der.subarray(4, 4 + lengthOfR), der.subarray(6 + lengthOfR)]
  const signature = Buffer.alloc(2 * numberBytes)
  for (const [index, number] of [r, s].entries()) {
    // DER puts a zero before a number that begins with a high bit, and leaves out the leading zeros of a small one.
    const digits = number.subarray(-numberBytes)
    digits.copy(signature, (index + 1) * numberBytes - digits.length)
  }
  return signature
}
