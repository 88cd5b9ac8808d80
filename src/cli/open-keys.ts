import { ConfigError } from '../config/error.ts'
import type { Config } from '../config/schema.ts'
import type { KeySources } from '../keys/change-keys.ts'
import type { KeyRing } from '../keys/key-ring.ts'
import { deriveSealingKey } from '../keys/seal.ts'
import type { Store } from '../storage/store.ts'
import { systemClock, systemRandom } from '../system.ts'
import { CommandFailed } from './failure.ts'
import { readDevSecret } from './open.ts'
import { operatorName } from './operator.ts'

/** The secret of the configuration, or the one a development server keeps in its data folder. */
export function secretOf(config: Config): string | undefined {
  return config.secret ?? readDevSecret(config.data)
}

/**
 * The keys of this store for a command that only looks: nothing is made or changed.
 * @throws {ConfigError} for a missing secret.
 * @throws {WrongSecret}
 */
export async function openConfiguredKeys(store: Store, config: Config): Promise<KeyRing> {
  const secret = await requireSecret(store, config)
  // Loaded late, as below: most commands have no use for jose.
  const { loadKeyRing } = await import('../keys/key-ring.ts')
  return await loadKeyRing({ store, secret, clock: systemClock, random: systemRandom })
}

/**
 * What a command needs to change the keys of this store.
 * @throws {ConfigError} for a missing secret.
 * @throws {WrongSecret}
 */
export async function openKeySources(store: Store, config: Config): Promise<KeySources> {
  const sealingKey = await deriveSealingKey(await requireSecret(store, config))
  await assertSecret(store, sealingKey)
  return { store, sealingKey, clock: systemClock, random: systemRandom, operator: operatorName() }
}

/** @throws {WrongSecret} unless every key of the store that is not retired was sealed with this. */
export async function assertSecret(store: Store, sealingKey: Buffer): Promise<void> {
  const { assertOpen } = await import('../keys/change-keys.ts')
  assertOpen(await store.list('key'), sealingKey, systemClock())
}

async function requireSecret(store: Store, config: Config): Promise<string> {
  const secret = secretOf(config)
  if (secret === undefined) {
    throw new ConfigError('secret: the keys are encrypted; set LYCHGATE_SECRET or LYCHGATE_SECRET_FILE')
  }
  if ((await store.list('key')).length > 0) return secret
  throw new CommandFailed('this store has no keys yet; a server makes them when it starts')
}
