import type { Config } from './config.ts'
import type { Seconds } from './domain/model.ts'
import type { KeyRing } from './keys/key-ring.ts'
import type { PasswordCheck } from './passwords.ts'
import type { Service } from './service.ts'
import type { Store } from './storage/store.ts'

/** The current time in whole seconds since the epoch. */
export type Clock = () => Seconds

/** `size` fresh random bytes from a cryptographic source. */
export type RandomSource = (size: number) => Buffer

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
