import { isDeepStrictEqual } from 'node:util'
import type { PublishedClientDeps } from '../../feature/deps.ts'
import { catalogueOf, openScopesOf } from '../../feature/service.ts'
import { knownDocuments } from './known.ts'
import type { DocumentPolicy } from './rules.ts'

/** The URLs that a server accepts whose settings name none. */
export const shippedUrls: readonly string[] = knownDocuments.map(({ url }) => url)

/** Returns which documents the configuration accepts; on a development server all of them, unless it says otherwise. */
export function documentPolicy({
  config,
  declared,
  keys,
}: Pick<PublishedClientDeps, 'config' | 'declared' | 'keys'>): DocumentPolicy {
  const isDevelopment = config.mode === 'dev'
  const { mode = isDevelopment ? 'any' : 'allow-list', allowed } = config.clientDocuments
  // Before 0.1.0 listed documents, it listed their hosts.
  const isShipped = isDeepStrictEqual(allowed, shippedUrls)
  return {
    mode,
    allowed,
    formerHosts: isShipped ? shippedUrls.map((url) => new URL(url).host) : [],
    isDevelopment,
    get scopes() {
      return openScopesOf(catalogueOf(config, declared.scopes))
    },
    get algorithms() {
      return keys.algorithms
    },
    metadataBytes: config.limits.clientMetadataBytes,
    declared,
  }
}
