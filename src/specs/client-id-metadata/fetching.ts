import type { ClientDocument } from '../../domain/client-document.ts'
import { OAuthError } from '../../domain/errors.ts'
import { hashSecret } from '../../domain/secret.ts'
import { parseStrictJson } from '../../domain/strict-json.ts'
import type { PublishedClientDeps } from '../../feature/deps.ts'
import { boundedCache } from '../../outbound/bounded-cache.ts'
import type { Spender } from '../../outbound/budgets.ts'
import { type Fetched, FetchFailed, type FetchFault } from '../../outbound/exchange.ts'
import { freshSeconds } from '../../outbound/freshness.ts'
import { type DocumentPolicy, longestDocument, type PublishedMetadata, readDocument } from './rules.ts'

/** A document that was fetched, and what it says. */
export interface LoadedDocument {
  readonly document: ClientDocument
  readonly metadata: PublishedMetadata
  /** What it takes in memory, about. */
  readonly bytes: number
}

/** Fetches documents. */
export interface DocumentFetcher {
  /** @throws {OAuthError} `invalid_client` for a document that cannot be fetched or used. */
  fetch(clientId: string, spender: Spender): Promise<LoadedDocument>
  /** Remembers that a document cannot be fetched: for a while, the same error is thrown at once. */
  remember(clientId: string, failure: DocumentNotFetched): void
  /** Forgets what is remembered. */
  forget(clientId: string): void
}

/** The error of a document that cannot be fetched: what it says is not known. */
export class DocumentNotFetched extends OAuthError {
  constructor(error: FetchFailed) {
    super('invalid_client', `the client metadata document cannot be fetched: ${error.message}`, {
      rule: ruleOfFault[error.fault] ?? 'cimd-4.3-fetch-failure',
      status: 400,
      received: error.status ?? error.fault,
      cause: error,
    })
  }
}

/** Fetches are not repeated for so long where there is no document, or an older one can be used. */
const retrySeconds = 60
const mostFailureBytes = 262_144
/** What a failure takes in memory, about. */
const bytesOfFailure = 600

export function documentFetcher(
  { config, clock, fetchUrl }: Pick<PublishedClientDeps, 'config' | 'clock' | 'fetchUrl'>,
  policy: DocumentPolicy,
): DocumentFetcher {
  const { floorSeconds, ceilingSeconds } = config.clientDocuments
  const failures = boundedCache<{ readonly failure: DocumentNotFetched; readonly until: number }>(
    mostFailureBytes,
  )
  const running = new Map<string, Promise<LoadedDocument>>()

  async function load(id: string, spender: Spender): Promise<LoadedDocument> {
    const { headers, body } = await fetched(id, spender)
    const now = clock()
    const digest = hashSecret(body.toString('base64url'))
    const { published, ...metadata } = readDocument(jsonOf({ headers, body }), id, policy)
    const freshFor = Math.min(Math.max(freshSeconds(headers, now), floorSeconds), ceilingSeconds)
    return {
      document: { id, fetchedAt: now, freshUntil: now + freshFor, digest },
      metadata: { ...metadata, published: { ...published, digest } },
      // As text, and as what was read from it.
      bytes: 2 * body.length,
    }
  }

  async function fetched(id: string, spender: Spender): Promise<Pick<Fetched, 'headers' | 'body'>> {
    try {
      const response = await fetchUrl(id, spender)
      if (response.body.length <= longestDocument) return response
      throw new FetchFailed('size', `the response has more than ${longestDocument} bytes`)
    } catch (error) {
      if (!(error instanceof FetchFailed)) throw error
      const failure = new DocumentNotFetched(error)
      // A host that has no such document is not asked again for each request that invents it.
      if (error.status === 404 || error.status === 410) remember(id, failure)
      throw failure
    }
  }

  function remember(id: string, failure: DocumentNotFetched): void {
    if (failures.get(id)?.failure === failure) return
    failures.set(id, { failure, until: clock() + retrySeconds }, bytesOfFailure)
  }

  return {
    async fetch(id, spender) {
      const known = failures.get(id)
      if (known !== undefined && clock() < known.until) throw known.failure
      failures.delete(id)
      const loading = running.get(id) ?? load(id, spender).finally(() => running.delete(id))
      running.set(id, loading)
      return loading
    },
    remember,
    forget: failures.delete,
  }
}

const ruleOfFault: Partial<Record<FetchFault, string>> = {
  address: 'cimd-6.5-ssrf',
  redirect: 'cimd-4-no-redirects',
  status: 'cimd-4-status-200-only',
  size: 'cimd-6.6-size-limit',
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
