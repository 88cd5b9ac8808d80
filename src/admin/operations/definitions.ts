import {
  type ApiDefinitions,
  definitionsKey,
  definitionsKind,
  noDefinitions,
} from '../../domain/api-definitions.ts'
import { check } from '../../domain/check.ts'
import { isDeceptive } from '../../domain/deceptive.ts'
import { type Decision, type Write, withWrites } from '../../domain/decision.ts'
import type { Store } from '../../storage/store.ts'
import type { Call } from './operation.ts'
import { requireFound } from './rules.ts'

/** Returns the scopes and resources that are stored. */
export async function readDefinitions(store: Pick<Store, 'find'>): Promise<ApiDefinitions> {
  return (await store.find(definitionsKind, definitionsKey)) ?? noDefinitions
}

/** Changes the stored scopes and resources, and has this server and its other workers follow. */
export async function changeDefinitions<T>(
  { store, server }: Pick<Call, 'store' | 'server'>,
  also: readonly Write[],
  decide: (stored: ApiDefinitions) => Decision<T>,
): Promise<T> {
  const change = () =>
    store.transact(definitionsKind, definitionsKey, (found) =>
      withWrites(decide(found ?? noDefinitions), ...also),
    )
  const result = await change()
  await server.definitions().changed()
  return result
}

/** @throws {OAuthError} `not_found` for what is not stored, also if the configuration has it. */
export function requireStored<T>(found: T | undefined, what: string): T {
  return requireFound(found, `stored ${what}`)
}

/** Checks texts that users see. @throws {OAuthError} `invalid_request` */
export function assertWords(words: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(words))
    check(
      text.trim() !== '' && text.length <= 200 && !isDeceptive(text),
      'lychgate-api-definitions',
      'invalid_request',
      `${name} must have 1 to 200 characters, none of them a control or invisible one`,
    )
}
