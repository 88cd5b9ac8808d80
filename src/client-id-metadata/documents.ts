import type { PublishedClientDeps, PublishedClients } from '../deps.ts'
import { clientDocumentKind, deniedDocumentKind } from '../domain/client-document.ts'
import { accept, insert, put, update } from '../domain/decision.ts'
import { OAuthError } from '../domain/errors.ts'
import type { Client } from '../domain/model.ts'
import { hashSecret } from '../domain/secret.ts'
import { parseStrictJson } from '../domain/strict-json.ts'
import { type Fetched, FetchFailed, type FetchFault } from '../fetch/exchange.ts'
import { freshSeconds } from '../fetch/freshness.ts'
import { RecordExists } from '../storage/store.ts'
import { documentPolicy } from './policy.ts'
import {
  assertAllowed,
  assertClientIdUrl,
  clientOf,
  isListed,
  longestDocument,
  readDocument,
} from './rules.ts'

type Also = Parameters<PublishedClients['refresh']>[1]

/** Fetches documents and stores their clients. Nothing is stored of a document that cannot be used. */
export function publishedClients(deps: PublishedClientDeps): PublishedClients {
  const { config, store, clock, fetchUrl } = deps
  const policy = documentPolicy(deps)
  const { floorSeconds, ceilingSeconds } = config.clientDocuments
  const loading = new Map<string, Promise<Client>>()

  async function load(clientId: string, also: Also = () => []): Promise<Client> {
    const { headers, body } = await fetched(clientId)
    const now = clock()
    const metadata = readDocument(jsonOf({ headers, body }), clientId, policy)
    const freshFor = Math.min(Math.max(freshSeconds(headers, now), floorSeconds), ceilingSeconds)
    const digest = hashSecret(body.toString('base64url'))
    const document = { id: clientId, fetchedAt: now, freshUntil: now + freshFor, digest }
    const save = () =>
      store.transact('client', clientId, (before) => {
        const client = clientOf(metadata, clientId, before, now)
        const write = before === undefined ? insert('client', client) : update('client', client)
        return accept(client, write, put(clientDocumentKind, document), ...also({ client, document }))
      })
    // Another node was first.
    return save().catch((error) => {
      if (error instanceof RecordExists) return save()
      throw error
    })
  }

  async function fetched(clientId: string): Promise<Pick<Fetched, 'headers' | 'body'>> {
    try {
      const response = await fetchUrl(clientId)
      if (response.body.length <= longestDocument) return response
      throw new FetchFailed('size', `the response has more than ${longestDocument} bytes`)
    } catch (error) {
      throw error instanceof FetchFailed ? fetchFailure(error) : error
    }
  }

  async function assertAcceptable(clientId: string): Promise<void> {
    assertClientIdUrl(clientId, policy)
    assertAllowed(clientId, await isDenied(clientId), policy)
  }

  async function isDenied(clientId: string): Promise<boolean> {
    return (await store.find(deniedDocumentKind, clientId)) !== undefined
  }

  async function refresh(clientId: string, also?: Also): Promise<Client> {
    await assertAcceptable(clientId)
    if (also !== undefined) return load(clientId, also)
    const running = loading.get(clientId) ?? load(clientId).finally(() => loading.delete(clientId))
    loading.set(clientId, running)
    return running
  }

  return {
    refresh,
    async current(clientId) {
      await assertAcceptable(clientId)
      const client = await store.find('client', clientId)
      const document = await store.find(clientDocumentKind, clientId)
      const isFresh = document !== undefined && clock() < document.freshUntil
      return client !== undefined && isFresh ? client : refresh(clientId)
    },
    async known(clientId) {
      if (!isListed(clientId, policy) || (await isDenied(clientId))) return undefined
      const client = await store.find('client', clientId)
      if (client?.authenticationMethod === 'none') return client
      const document = await store.find(clientDocumentKind, clientId)
      if (client !== undefined && document !== undefined && clock() < document.freshUntil) return client
      try {
        return await refresh(clientId)
      } catch (error) {
        if (!(error instanceof OAuthError)) throw error
        const isUsable = document !== undefined && clock() < document.fetchedAt + ceilingSeconds
        return isUsable ? client : undefined
      }
    },
  }
}

const ruleOfFault: Partial<Record<FetchFault, string>> = {
  address: 'cimd-6.5-ssrf',
  redirect: 'cimd-4-no-redirects',
  status: 'cimd-4-status-200-only',
  size: 'cimd-6.6-size-limit',
}

function fetchFailure(error: FetchFailed): OAuthError {
  return new OAuthError(
    'invalid_client',
    `the client metadata document cannot be fetched: ${error.message}`,
    {
      rule: ruleOfFault[error.fault] ?? 'cimd-4.3-fetch-failure',
      status: 400,
      received: error.status ?? error.fault,
      cause: error,
    },
  )
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Returns the JSON of a response, undefined for none. */
function jsonOf({ headers, body }: Pick<Fetched, 'headers' | 'body'>): unknown {
  if (!/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(headers['content-type'] ?? '')) return undefined
  try {
    return parseStrictJson(utf8.decode(body))
  } catch {
    return undefined
  }
}
