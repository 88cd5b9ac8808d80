import type { TObject, TSchema } from '@sinclair/typebox'
import type { FastifyPluginCallback } from 'fastify'
import type { ClientMetadataMember } from './clients/feature-member.ts'
import type { Config } from './config/schema.ts'
import type { KeyRing } from './keys/key-ring.ts'
import type { OwnGuardOptions } from './own-guard.ts'
import type { Service } from './service.ts'
import type { Store } from './storage/store.ts'
import type { Clock, RandomSource } from './system.ts'
import type { PasswordCheck } from './users/passwords.ts'

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
  /** The client metadata that features add, by name. */
  readonly clientMembers: Readonly<Record<string, ClientMetadataMember>>
  /** Guards the routes registered beside it with this server's own tokens, RFC 6750. */
  readonly guard: FastifyPluginCallback<OwnGuardOptions>
  /** The parameters of the authorization request, with those that features add. */
  readonly authorizationParameters: TObject
  /** The members that features add to the token response, by name. */
  readonly tokenMembers: Readonly<Record<string, TSchema>>
}
