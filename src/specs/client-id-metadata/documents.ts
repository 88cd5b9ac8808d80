import { changeEvents } from '../../clients/operator-client.ts'
import type { AuditContext } from '../../domain/audit.ts'
import { type ClientDocument, clientDocumentKind, deniedDocumentKind } from '../../domain/client-document.ts'
import { accept, insert, put, update, type Write } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { Client } from '../../domain/model.ts'
import type { PublishedClientDeps, PublishedClients } from '../../feature/deps.ts'
import { boundedCache } from '../../outbound/bounded-cache.ts'
import type { Spender } from '../../outbound/budgets.ts'
import { RecordExists } from '../../storage/store.ts'
import { assertAllowed, denied, isAccepted, isListed, isNamed } from './acceptance.ts'
import { DocumentNotFetched, documentFetcher, type LoadedDocument } from './fetching.ts'
import { documentPolicy } from './policy.ts'
import { assertClientIdUrl, clientOf } from './rules.ts'

/** The memory that documents take which are not stored, about: of those the settings name, and of all others. */
const mostCachedBytes = { named: 1_048_576, others: 2_097_152 }

/**
 * Finds clients by their documents. A document is known if the settings name its URL, or if it is stored, which it is
 * once a signed-in user approved its client or an operator fetched it. Of any other document nothing is stored: each
 * node keeps some in memory, and fetches the others again.
 */
export function publishedClients(deps: PublishedClientDeps): PublishedClients {
  const { config, store, clock } = deps
  const policy = documentPolicy(deps)
  const fetcher = documentFetcher(deps, policy)
  const { ceilingSeconds } = config.clientDocuments
  const caches = {
    named: boundedCache<LoadedDocument>(mostCachedBytes.named),
    others: boundedCache<LoadedDocument>(mostCachedBytes.others),
  }
  const cacheOf = (clientId: string) => caches[isNamed(clientId, policy) ? 'named' : 'others']

  /** What is stored of a client: the document is of use only with the client. */
  async function storedOf(clientId: string): Promise<Stored | undefined> {
    const [client, document] = await Promise.all([
      store.find('client', clientId),
      store.find(clientDocumentKind, clientId),
    ])
    return client && { client, document }
  }

  async function isDenied(clientId: string): Promise<boolean> {
    return (await store.find(deniedDocumentKind, clientId)) !== undefined
  }

  async function accepted(clientId: string): Promise<Stored | undefined> {
    assertClientIdUrl(clientId, policy)
    const stored = await storedOf(clientId)
    assertAllowed(clientId, await isDenied(clientId), policy, stored?.client)
    return stored
  }

  /** Fetches a document, and replaces what is stored of it; a document of which nothing is stored stays in memory. */
  async function load(clientId: string, stored: Stored | undefined, from: string): Promise<Client> {
    const isKnown = stored !== undefined || isNamed(clientId, policy)
    const spender: Spender = isKnown ? { purpose: 'known' } : { purpose: 'unknown', from }
    const loaded = await fetcher.fetch(clientId, spender)
    if (stored !== undefined) return save(loaded)
    cacheOf(clientId).set(clientId, loaded, loaded.bytes)
    return pendingClient(loaded, from)
  }

  function save(
    { document, metadata }: LoadedDocument,
    context?: AuditContext,
    also: Parameters<PublishedClients['refresh']>[2] = () => [],
  ): Promise<Client> {
    const { id } = document
    return retried(() =>
      store.transact('client', id, (before) => {
        const client = clientOf(metadata, id, before, document.fetchedAt)
        const write = before === undefined ? insert('client', client) : update('client', client)
        const events = context === undefined ? [] : changeEvents(before, client, deps, context)
        const writes = [write, put(clientDocumentKind, document), ...events]
        return accept(client, ...writes, ...also({ client, document }))
      }),
    )
  }

  /** Returns the client as it was before a document could not be fetched, if that is known and not too old. */
  function usable(clientId: string, stored: Stored | undefined): Client | undefined {
    const cached = stored === undefined ? caches.named.get(clientId) : undefined
    const { document } = stored ?? cached ?? {}
    if (document === undefined || clock() >= document.fetchedAt + ceilingSeconds) return undefined
    return stored?.client ?? (cached && pendingClient(cached, ''))
  }

  async function currentOf(clientId: string, stored: Stored | undefined, from: string): Promise<Client> {
    const cached = stored === undefined ? cacheOf(clientId).get(clientId) : undefined
    const { document } = stored ?? cached ?? {}
    if (document !== undefined && clock() < document.freshUntil) {
      if (stored !== undefined) return stored.client
      if (cached !== undefined) return pendingClient(cached, from)
    }
    try {
      return await load(clientId, stored, from)
    } catch (error) {
      if (!(error instanceof DocumentNotFetched)) throw error
      const before = usable(clientId, stored)
      if (before === undefined) throw error
      fetcher.remember(clientId, error)
      return before
    }
  }

  return {
    async current(clientId, from) {
      return currentOf(clientId, await accepted(clientId), from)
    },
    async pending(clientId, from) {
      const stored = await store.find('client', clientId)
      if (stored !== undefined) return stored
      await accepted(clientId)
      const cached = cacheOf(clientId).get(clientId)
      return cached ? pendingClient(cached, from) : load(clientId, undefined, from)
    },
    seen(clientId, from) {
      const cached = cacheOf(clientId).get(clientId)
      return cached && pendingClient(cached, from)
    },
    async known(clientId) {
      const stored = await storedOf(clientId)
      if (stored === undefined || !isAccepted(clientId, policy, stored.client)) return undefined
      if (await isDenied(clientId)) return undefined
      if (stored.client.authenticationMethod === 'none') return stored.client
      try {
        return await currentOf(clientId, stored, '')
      } catch (error) {
        if (error instanceof OAuthError) return usable(clientId, stored)
        throw error
      }
    },
    async remembered(clientId, from) {
      const cached = cacheOf(clientId).get(clientId)
      if (cached === undefined || clock() >= cached.document.freshUntil) return undefined
      const isRejected = !isListed(clientId, policy) || (await isDenied(clientId))
      return isRejected ? undefined : pendingClient(cached, from)
    },
    async refresh(clientId, context, also) {
      const any = { ...policy, mode: 'any' } as const
      assertClientIdUrl(clientId, any)
      assertAllowed(clientId, await isDenied(clientId), any)
      fetcher.forget(clientId)
      const loaded = await fetcher.fetch(clientId, { purpose: 'operator' })
      cacheOf(clientId).delete(clientId)
      return save(loaded, context, also)
    },
    async keep({ published, ...metadata }) {
      const { id } = metadata
      if (published === undefined) throw new Error('the client is of no document')
      const { namedFrom: _, ...shown } = published
      const now = clock()
      const client = { ...metadata, published: shown, issuedAt: now, usedAt: now }
      const cached = cacheOf(id).get(id)?.document
      const isShown = cached !== undefined && cached.digest === shown.digest
      const document = isShown ? cached : { id, fetchedAt: now, freshUntil: now, digest: shown.digest ?? '' }
      return retried(() =>
        store.transact('client', id, (before) =>
          before === undefined
            ? accept(client, insert('client', client), put(clientDocumentKind, document), notDenied(id))
            : accept(before),
        ),
      )
    },
    forget(clientId) {
      fetcher.forget(clientId)
      cacheOf(clientId).delete(clientId)
    },
  }
}

interface Stored {
  readonly client: Client
  readonly document: ClientDocument | undefined
}

/** The client of a document of which nothing is stored. */
function pendingClient(loaded: LoadedDocument, from: string): Client {
  const { document, metadata } = loaded
  const client = clientOf(metadata, document.id, undefined, document.fetchedAt)
  return { ...client, published: { ...metadata.published, namedFrom: from } }
}

/** No operator denied the document, also while it is stored. */
function notDenied(id: string): Write {
  return {
    op: 'require',
    condition: {
      rule: 'lychgate-client-document-denied',
      why: denied().message,
      *holds(read) {
        return (yield* read.find(deniedDocumentKind, id)) === undefined
      },
      error: denied,
    },
  }
}

/** Inserts again if another node was first. */
async function retried<T>(save: () => Promise<T>): Promise<T> {
  try {
    return await save()
  } catch (error) {
    if (error instanceof RecordExists) return save()
    throw error
  }
}
