import { isObject } from '../domain/is-object.ts'
import { type PublicKey, parseKeySet } from '../domain/key-set.ts'
import type { Spender } from './budgets.ts'
import { createDocuments, type DocumentsOptions } from './documents.ts'

/** Fetches and keeps the key sets of clients, and of issuers that they trust. */
export interface KeySets {
  /**
   * Returns the keys at a URL. They are fetched when they are not fresh, and when no key has this `kid`.
   * @throws what the last fetch threw, if there are no keys, or only some that are too old.
   */
  keysAt(url: string, spender: Spender, kid?: string): Promise<readonly PublicKey[]>
  /**
   * Returns the keys of an issuer, which its metadata names (OpenID Connect Discovery §4).
   * @throws as `keysAt`, and for metadata of another issuer.
   */
  keysOfIssuer(issuer: string, kid?: string): Promise<readonly PublicKey[]>
}

/** What is used of the metadata of an issuer. */
interface IssuerMetadata {
  readonly issuer: unknown
  readonly keysUri: string
}

export function createKeySets(options: Omit<DocumentsOptions<unknown>, 'parse'>): KeySets {
  const keySets = createDocuments({ ...options, parse: parseKeySet })
  const metadata = createDocuments({ ...options, parse: parseMetadata })
  const keysAt: KeySets['keysAt'] = (url, spender, kid) =>
    keySets.at(url, spender, (keys) => kid === undefined || keys.some((key) => key.kid === kid))
  return {
    keysAt,
    async keysOfIssuer(issuer, kid) {
      // An operator wrote which issuers a client trusts.
      const spender = { purpose: 'operator' } as const
      const document = await metadata.at(metadataUrl(issuer), spender)
      // OpenID Connect Discovery §4.3: identical.
      if (document.issuer !== issuer) throw new Error('the metadata is that of another issuer')
      return keysAt(document.keysUri, spender, kid)
    },
  }
}

/** OpenID Connect Discovery §4.1: a slash at the end of the path is removed first. */
function metadataUrl(issuer: string): string {
  return `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
}

function parseMetadata(json: unknown): IssuerMetadata {
  const { issuer, jwks_uri: keysUri } = isObject(json) ? json : {}
  if (typeof keysUri === 'string') return { issuer, keysUri }
  throw new Error('the metadata has no jwks_uri')
}
