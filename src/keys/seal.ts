import { createCipheriv, createDecipheriv, hkdfSync, scrypt } from 'node:crypto'
import { hmacText } from '../domain/hmac.ts'
import { secretPrefix } from '../domain/secret.ts'
import type { RandomSource } from '../system/system.ts'

/** How long the random part of a seal is. */
export const nonceBytes = 12
const tagBytes = 16
/** A sealed key of a development server begins with this, and the seal covers it: it cannot be removed. */
const developmentMark = 'dev.'

/** The secret is not the one the keys were sealed with, or a sealed key was altered. */
export class WrongSecret extends Error {
  constructor() {
    super('the secret does not open the stored keys; start with the secret this store was last used with')
    this.name = 'WrongSecret'
  }
}

/** The keys of this store were made by the other kind of server. */
export class ForeignKeys extends Error {
  constructor(own: ServerKind) {
    super(
      own === 'production'
        ? 'made by the development server: its keys, and what they signed, count for nothing here; use another folder or database'
        : 'its keys are not those of a development server; use another folder with --data',
    )
    this.name = 'ForeignKeys'
  }
}

/** A server for real users, or one to develop against: neither takes the keys of the other. */
export type ServerKind = 'production' | 'development'

/** Whether a development server made this key: no production server takes it, or anything it signed or sealed. */
export function isDevelopmentKey({ sealedPrivate }: { readonly sealedPrivate: string }): boolean {
  return sealedPrivate.startsWith(developmentMark)
}

/** 32 random bytes, marked as such: what `lychgate keys secret` prints and a development server stores. */
const randomSecret = new RegExp(`^${secretPrefix.sealing}[\\w-]{43}$`)

/**
 * The key that seals private keys. Slow on purpose, once at start, because an operator's secret may be guessable; one
 * that is marked as random need not be stretched, RFC 5869 §3.3.
 */
export async function deriveSealingKey(secret: string): Promise<Buffer> {
  if (randomSecret.test(secret)) return Buffer.from(hkdfSync('sha256', secret, 'lychgate', 'key ring', 32))
  return new Promise((resolve, reject) => {
    // One salt for the whole ring, so that it is derived once; the secret has 32 characters or more.
    const cost = { N: 32_768, r: 8, p: 1, maxmem: 64 * 1024 * 1024 }
    scrypt(secret, 'lychgate key ring', 32, cost, (cause, key) => (cause ? reject(cause) : resolve(key)))
  })
}

/** What a key is sealed with, and for. */
export interface Sealing {
  readonly sealingKey: Buffer
  /** 12 random bytes. */
  readonly nonce: Buffer
  /** It is a key of a development server. */
  readonly development: boolean
}

/** AES-256-GCM bound to the key's id and kind of server: nonce, tag and ciphertext, base64url. */
export function seal(plain: Buffer, id: string, { sealingKey, nonce, development }: Sealing): string {
  const mark = development ? developmentMark : ''
  const cipher = createCipheriv('aes-256-gcm', sealingKey, nonce, { authTagLength: tagBytes })
  cipher.setAAD(Buffer.from(mark + id))
  const sealed = Buffer.concat([cipher.update(plain), cipher.final()])
  return mark + Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url')
}

/** Stands between the parts of what is sealed with several keys, one of which is enough to open it. */
const partMark = '~'

/** Seals with each of these keys. */
export function sealWith(
  keys: readonly Buffer[],
  plain: Buffer,
  id: string,
  { random, development }: Pick<Sealing, 'development'> & { readonly random: RandomSource },
): string {
  const parts = keys.map((sealingKey) =>
    seal(plain, id, { sealingKey, nonce: random(nonceBytes), development }),
  )
  return parts.join(partMark)
}

/** Whether each of these keys opens exactly one part, and no part is left. */
export function isSealedWith(keys: readonly Buffer[], text: string, id: string): boolean {
  const parts = text.split(partMark)
  return (
    parts.length === keys.length && keys.every((key, at) => openPart(parts[at] ?? '', id, key) !== undefined)
  )
}

/**
 * What was sealed under this id with one of these keys.
 * @throws {WrongSecret}
 */
export function unseal(text: string, id: string, ...keys: readonly Buffer[]): Buffer {
  for (const part of text.split(partMark)) {
    for (const key of keys) {
      const plain = openPart(part, id, key)
      if (plain !== undefined) return plain
    }
  }
  throw new WrongSecret()
}

function openPart(text: string, id: string, sealingKey: Buffer): Buffer | undefined {
  const mark = isDevelopmentKey({ sealedPrivate: text }) ? developmentMark : ''
  const bytes = Buffer.from(text.slice(mark.length), 'base64url')
  try {
    const nonce = bytes.subarray(0, nonceBytes)
    const decipher = createDecipheriv('aes-256-gcm', sealingKey, nonce, { authTagLength: tagBytes })
    decipher.setAAD(Buffer.from(mark + id))
    decipher.setAuthTag(bytes.subarray(nonceBytes, nonceBytes + tagBytes))
    return Buffer.concat([decipher.update(bytes.subarray(nonceBytes + tagBytes)), decipher.final()])
  } catch {
    // Another key, or a text that was altered: AES-GCM does not say which.
    return undefined
  }
}

/** Returns 22 characters that stand for values, as `KeyRing.pseudonym` does. */
export function pseudonymsBy(sealingKey: () => Buffer): (...values: readonly string[]) => string {
  let [from, key]: [Buffer | undefined, Uint8Array] = [undefined, new Uint8Array()]
  return (...values) => {
    const current = sealingKey()
    if (current !== from) {
      from = current
      key = new Uint8Array(hkdfSync('sha256', current, '', 'lychgate pseudonyms', 32))
    }
    return hmacText(key, JSON.stringify(values), 16)
  }
}
