import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mintSecret, secretBytes } from '../domain/secret.ts'
import type { RandomSource } from '../system.ts'

/** The secret of a development server: made once, kept beside its database, readable by this user alone. */
export function keepDevSecret(data: string, random: RandomSource): string {
  const kept = readDevSecret(data)
  if (kept !== undefined) return kept
  const secret = mintSecret('sealing', random(secretBytes))
  try {
    writeFileSync(join(data, 'dev-secret'), `${secret}\n`, { mode: 0o600, flag: 'wx' })
    return secret
  } catch (error) {
    // Two servers started at once: the first one's secret is the secret.
    const other = readDevSecret(data)
    if (other === undefined) throw error
    return other
  }
}

/** The development secret of this data folder, if there is one. */
export function readDevSecret(data: string): string | undefined {
  try {
    return readFileSync(join(data, 'dev-secret'), 'utf8').trim() || undefined
  } catch (error) {
    if (error instanceof Error && 'code' in error && ['ENOENT', 'ENOTDIR'].includes(String(error.code)))
      return undefined
    throw error
  }
}
