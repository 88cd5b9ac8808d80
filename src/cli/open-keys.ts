import { ConfigError } from '../config/error.ts'
import type { Config } from '../config/schema.ts'
import { type KeyRing, loadKeyRing, WrongSecret } from '../keys/key-ring.ts'
import type { Store } from '../storage/store.ts'
import { systemClock, systemRandom } from '../system.ts'
import { readDevSecret } from './dev-secret.ts'
import { CommandFailed } from './failure.ts'

/**
 * The keys of this store for an operator's command: opened by the secret of the configuration, or by the one a
 * development server keeps in its data folder.
 * @throws {ConfigError} for a missing or wrong secret.
 */
export async function openConfiguredKeys(store: Store, config: Config): Promise<KeyRing> {
  const secret = config.secret ?? readDevSecret(config.data)
  if (secret === undefined) {
    throw new ConfigError('secret: the keys are encrypted; set LYCHGATE_SECRET or LYCHGATE_SECRET_FILE')
  }
  if ((await store.list('key')).length === 0) throw new CommandFailed('this store has no keys yet')
  try {
    return await loadKeyRing({ store, secret, clock: systemClock, random: systemRandom })
  } catch (cause) {
    if (cause instanceof WrongSecret) throw new ConfigError(`secret: ${cause.message}`, { cause })
    throw cause
  }
}
