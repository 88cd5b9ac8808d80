import type { Test } from 'tap'
import type { StoredKey } from '../../src/domain/model.ts'
import { keyPolicy } from '../../src/keys/key-policy.ts'
import { loadKeyRing } from '../../src/keys/key-ring.ts'
import { loadConfig } from '../../src/settings/load.ts'
import { openStore } from '../../src/storage/open.ts'
import { systemClock, systemRandom } from '../../src/system/system.ts'
import { newFolder, run } from './command.ts'

export const keysSecret = 'a secret for tests that is long enough'

/** A data folder with the keys that a server made there a while ago. */
export async function folderWithKeys(t: Test): Promise<string> {
  const data = newFolder(t)
  const store = await openStore(`sqlite:${data}/lychgate.db`)
  const policy = keyPolicy(loadConfig({ mode: 'dev' }))
  const clock = () => systemClock() - 100
  await loadKeyRing({ store, secret: keysSecret, policy, clock, random: systemRandom })
  await store.close()
  return data
}

/** Every key of the store in this data folder. */
export async function keysIn(data: string): Promise<readonly StoredKey[]> {
  const store = await openStore(`sqlite:${data}/lychgate.db`)
  const keys = await store.list('key')
  await store.close()
  return keys
}

/** Runs `lychgate keys …` on this data folder with the right secret. */
export function runKeys(data: string, command: string, ...args: readonly string[]) {
  return run(['keys', command, '--data', data, ...args], { environment: { LYCHGATE_SECRET: keysSecret } })
}
