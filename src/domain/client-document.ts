import type { Hash, Seconds } from './model.ts'
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
