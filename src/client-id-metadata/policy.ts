import type { PublishedClientDeps } from '../deps.ts'
import { catalogueOf, openScopesOf } from '../service.ts'
import type { DocumentPolicy } from './rules.ts'

/** Returns which documents the configuration accepts; on a development server all of them, unless it says otherwise. */
export function documentPolicy({
  config,
  declared,
  keys,
  byOperator,
}: Pick<PublishedClientDeps, 'config' | 'declared' | 'keys' | 'byOperator'>): DocumentPolicy {
  const isDevelopment = config.mode === 'dev'
  const { mode = isDevelopment ? 'any' : 'allow-list', allowed } = config.clientDocuments
  return {
    mode: byOperator ? 'any' : mode,
    allowed,
    isDevelopment,
    scopes: openScopesOf(catalogueOf(config, declared.scopes)),
    get algorithms() {
      return keys.algorithms
    },
    declared,
  }
}
