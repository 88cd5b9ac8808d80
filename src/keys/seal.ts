import { createCipheriv, createDecipheriv, scrypt } from 'node:crypto'

const nonceBytes = 12
const tagBytes = 16

/** The secret is not the one the keys were sealed with, or a sealed key was altered. */
export class WrongSecret extends Error {
  constructor(cause: unknown) {
    super('the secret does not open the stored keys; start with the secret this store was first used with', {
      cause,
    })
    this.name = 'WrongSecret'
  }
}

/** The key that seals private keys. Slow on purpose, once at start: an operator's secret may be guessable. */
export function deriveSealingKey(secret: string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // One salt for the whole ring, so that it is derived once; the secret has 32 characters or more.
    const cost = { N: 32_768, r: 8, p: 1, maxmem: 64 * 1024 * 1024 }
    scrypt(secret, 'lychgate key ring', 32, cost, (cause, key) => (cause ? reject(cause) : resolve(key)))
  })
}

/**
 * AES-256-GCM bound to the key's id: nonce, tag and ciphertext, base64url.
 * @param nonce 12 random bytes.
 */
export function seal(plain: Buffer, id: string, sealingKey: Buffer, nonce: Buffer): string {
  const cipher = createCipheriv('aes-256-gcm', sealingKey, nonce, { authTagLength: tagBytes })
  cipher.setAAD(Buffer.from(id))
  const sealed = Buffer.concat([cipher.update(plain), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url')
}

/**
 * What was sealed under this id.
 * @throws {WrongSecret}
 */
export function unseal(text: string, id: string, sealingKey: Buffer): Buffer {
  const bytes = Buffer.from(text, 'base64url')
  try {
    const nonce = bytes.subarray(0, nonceBytes)
    const decipher = createDecipheriv('aes-256-gcm', sealingKey, nonce, { authTagLength: tagBytes })
    decipher.setAAD(Buffer.from(id))
    decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
    return Buffer.concat([decipher.update(bytes.subarray(nonceBytes + tagBytes)), decipher.final()])
  } catch (cause) {
    throw new WrongSecret(cause)
  }
}
