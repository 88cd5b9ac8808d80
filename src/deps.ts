import type { Config } from './config/schema.ts'
import type { KeyRing } from './keys/key-ring.ts'
import type { PasswordCheck } from './passwords.ts'
import type { Service } from './service.ts'
import type { Store } from './storage/store.ts'
import type { Clock, RandomSource } from './system.ts'

/** Everything the application needs from outside; a plugin takes `Pick<Deps, …>`, which says what it can touch. */
export interface Deps {
  readonly config: Config
  readonly store: Store
  readonly keys: KeyRing
  readonly clock: Clock
  readonly random: RandomSource
}

/** Deps, and what buildApp works out from them once. */
export interface AppDeps extends Deps {
  readonly service: Service
  readonly checkPassword: PasswordCheck
}
