import { hash } from 'node:crypto'

/** The block of SHA-256 and the size of a digest, in bytes. */
const blockBytes = 64
const digestBytes = 32
/** Longer messages, which no handle is, get a buffer of their own. */
const usualBytes = 1024

// One call is synchronous and reads what it wrote: the buffers are never shared by two.
const inner = Buffer.alloc(blockBytes + usualBytes)
const outer = Buffer.alloc(blockBytes + digestBytes)
const key = Buffer.alloc(blockBytes)
// Four bytes at a time, which makes the pads a tenth of the work.
const words = (buffer: Buffer) => new Uint32Array(buffer.buffer, buffer.byteOffset, blockBytes / 4)
const [innerWords, outerWords, keyWords] = [words(inner), words(outer), words(key)]

/**
 * Returns HMAC-SHA256 (RFC 2104 §2), one character a byte: a digest as bytes would be another allocation. Two hashes of
 * one call each, because the object that `createHmac` makes costs more than what is computed with it.
 * @param secret Text counts as its UTF-8 bytes, as a message does.
 */
export function hmac(secret: string | Uint8Array, message: string | Uint8Array): string {
  readKey(secret)
  for (let at = 0; at < keyWords.length; at += 1) {
    const word = keyWords[at] as number // It has this many.
    innerWords[at] = word ^ 0x36363636
    outerWords[at] = word ^ 0x5c5c5c5c
  }
  outer.write(hash('sha256', padded(message), 'binary'), blockBytes, 'latin1')
  return hash('sha256', outer, 'binary')
}

/** The first bytes of an HMAC-SHA256 as base64url text. */
export function hmacText(
  secret: string | Uint8Array,
  message: string | Uint8Array,
  bytes: number = digestBytes,
): string {
  return Buffer.from(hmac(secret, message).slice(0, bytes), 'latin1').toString('base64url')
}

/** Fills the key with zeros behind the secret; one that is longer than a block is its digest, RFC 2104 §2. */
function readKey(secret: string | Uint8Array): void {
  keyWords.fill(0)
  const isLong = (typeof secret === 'string' ? Buffer.byteLength(secret) : secret.length) > blockBytes
  if (isLong) key.write(hash('sha256', secret, 'binary'), 'latin1')
  else if (typeof secret === 'string') key.write(secret)
  else key.set(secret)
}

/** The inner pad and the message after it. */
function padded(message: string | Uint8Array): Uint8Array {
  const length = typeof message === 'string' ? Buffer.byteLength(message) : message.length
  const buffer =
    length <= usualBytes ? inner : Buffer.concat([inner.subarray(0, blockBytes), Buffer.alloc(length)])
  if (typeof message === 'string') buffer.write(message, blockBytes)
  else buffer.set(message, blockBytes)
  return buffer.subarray(0, blockBytes + length)
}
