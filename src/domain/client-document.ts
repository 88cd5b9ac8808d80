import type { AuthorizationRequest, Hash, Seconds } from './model.ts'
import { recordKind } from './record.ts'

/** When the document of a client was fetched. What it says is stored as the client. */
export interface ClientDocument {
  /** The URL, which is the client_id. */
  readonly id: string
  readonly fetchedAt: Seconds
  readonly freshUntil: Seconds
  /** Identifies its content, for operators. */
  readonly digest: Hash
}

/** Deleted together with its client. */
export const clientDocumentKind = recordKind<ClientDocument>('client-document', {
  id: ({ id }) => id,
  clientId: ({ id }) => id,
  madeAt: ({ fetchedAt }) => fetchedAt,
})

/** A URL that an operator denies. */
export interface DeniedDocument {
  readonly id: string
  readonly deniedAt: Seconds
}

export const deniedDocumentKind = recordKind<DeniedDocument>('denied-client-document', {
  id: ({ id }) => id,
  madeAt: ({ deniedAt }) => deniedAt,
})

type RequestExtra = NonNullable<AuthorizationRequest['extra']>

/** The name under which an authorization request stores the digest of the document of its client. */
const digestName = 'clientDocument'

/** Returns what an authorization request stores about the document of its client. */
export function documentDigest(digest: Hash): RequestExtra {
  return { [digestName]: digest }
}

/** Returns the digest of the document that an authorization request is for. */
export function documentDigestOf(extra: RequestExtra = {}): Hash | undefined {
  const digest = extra[digestName]
  return typeof digest === 'string' ? digest : undefined
}
