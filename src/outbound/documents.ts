import type { Config } from '../config/schema.ts'
import type { Seconds } from '../domain/model.ts'
import { parseStrictJson } from '../domain/strict-json.ts'
import type { Clock } from '../system/system.ts'
import type { Spender } from './budgets.ts'
import { freshSeconds } from './freshness.ts'
import type { GuardedFetch } from './guarded-fetch.ts'

/** Fetches and keeps JSON documents of one kind. */
export interface Documents<T> {
  /**
   * Returns the document at a URL. It is fetched when it is not fresh, and when it is not enough.
   * @throws what the last fetch threw, if there is no document, or only one that is too old.
   */
  at(url: string, spender: Spender, isEnough?: (document: T) => boolean): Promise<T>
}

export interface DocumentsOptions<T> {
  readonly fetchUrl: GuardedFetch
  readonly bounds: Pick<Config['fetch'], 'keySetFloorSeconds' | 'keySetCeilingSeconds'>
  readonly clock: Clock
  /** Reads what JSON the document has, undefined for none; throws if it is not one of this kind. */
  readonly parse: (json: unknown) => T
  /** Hears of every fetch that failed. */
  readonly onFailure?: ((url: string, error: unknown) => void) | undefined
}

interface Entry<T> {
  readonly document?: T
  readonly fetchedAt: Seconds
  readonly freshUntil: Seconds
  readonly triedAt: Seconds
  readonly error?: unknown
}

/** A URL is fetched again at most this often, whatever is wanted of it. */
const retrySeconds = 60
const mostDocuments = 500

/**
 * Keeps fetched documents as RFC 9111 §4.2 says, within a floor and a ceiling. While one cannot be fetched again, the
 * one that was fetched last is used until the ceiling.
 */
export function createDocuments<T extends object>(options: DocumentsOptions<T>): Documents<T> {
  const { fetchUrl, clock, parse, onFailure } = options
  const { keySetFloorSeconds: floor, keySetCeilingSeconds: ceiling } = options.bounds
  const entries = new Map<string, Entry<T>>()
  const fetching = new Map<string, Promise<Entry<T>>>()

  async function load(url: string, spender: Spender, before: Entry<T> | undefined): Promise<Entry<T>> {
    const triedAt = clock()
    try {
      const { headers, body } = await fetchUrl(url, spender)
      const document = parse(parseStrictJson(body.toString()))
      const freshFor = Math.min(Math.max(freshSeconds(headers, triedAt), floor), ceiling)
      return { document, fetchedAt: triedAt, freshUntil: triedAt + freshFor, triedAt }
    } catch (error) {
      onFailure?.(url, error)
      return { ...(before ?? { fetchedAt: triedAt, freshUntil: triedAt }), triedAt, error }
    }
  }

  async function reload(url: string, spender: Spender, before: Entry<T> | undefined): Promise<Entry<T>> {
    const running = fetching.get(url) ?? load(url, spender, before).finally(() => fetching.delete(url))
    fetching.set(url, running)
    const entry = await running
    // The one that was fetched longest ago makes room.
    entries.delete(url)
    entries.set(url, entry)
    for (const oldest of entries.keys()) {
      if (entries.size <= mostDocuments) break
      entries.delete(oldest)
    }
    return entry
  }

  return {
    async at(url, spender, isEnough = () => true) {
      const now = clock()
      const cached = entries.get(url)
      const isFresh = cached?.document !== undefined && now < cached.freshUntil && isEnough(cached.document)
      const mayFetch = cached === undefined || now >= cached.triedAt + Math.min(retrySeconds, ceiling)
      const entry = isFresh || !mayFetch ? cached : await reload(url, spender, cached)
      if (entry.document !== undefined && now < entry.fetchedAt + ceiling) return entry.document
      throw entry.error
    },
  }
}
