import type { ClientVocabulary } from '../clients/members.ts'
import type { Config } from '../config/schema.ts'
import { offeredAlgorithms } from '../domain/key-term.ts'
import type { Declared } from './deps.ts'
import { catalogueOf, hasPasskeys, openScopesOf } from './service.ts'

/** Returns what a client of this server may refer to. */
export function vocabularyOf(config: Config, declared: Declared): ClientVocabulary {
  const catalogue = catalogueOf(config, declared.scopes)
  return {
    scopes: catalogue.map(({ name }) => name),
    openScopes: openScopesOf(catalogue),
    resources: [config.issuer, ...config.resources.map(({ identifier }) => identifier)],
    algorithms: offeredAlgorithms(config.keys),
    declared: hasPasskeys(config) ? declared : { ...declared, withoutPasskeys: true },
  }
}
