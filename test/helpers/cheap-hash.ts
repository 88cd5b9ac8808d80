import { argon2Sync } from 'node:crypto'
import type { RandomSource } from '../../src/system/system.ts'

/** An argon2id hash that costs almost nothing, so that sign-ins do not slow a run down. */
export function cheapHash(password: string, random: RandomSource): string {
  const nonce = random(16)
  const cost = { memory: 8, passes: 1, parallelism: 1, tagLength: 32 }
  const tag = argon2Sync('argon2id', { ...cost, message: Buffer.from(password), nonce })
  const [salt, text] = [nonce, Buffer.from(tag)].map((bytes) => bytes.toString('base64').replaceAll('=', ''))
  return `$argon2id$v=19$m=8,t=1,p=1$${salt}$${text}`
}
