import type { Config } from '../config/schema.ts'
import { type PublicKey, parseKeySet } from '../domain/key-set.ts'
import type { Seconds } from '../domain/model.ts'
import { parseStrictJson } from '../domain/strict-json.ts'
import type { Clock } from '../system.ts'
import { freshSeconds } from './freshness.ts'
import type { GuardedFetch } from './guarded-fetch.ts'

/** Fetches and keeps the key sets of clients. */
export interface KeySets {
  /**
   * Returns the keys at a URL. They are fetched when they are not fresh, and when no key has this `kid`.
   * @throws what the last fetch threw, if there are no keys, or only some that are too old.
   */
  keysAt(url: string, kid?: string): Promise<readonly PublicKey[]>
}

export interface KeySetsOptions {
  readonly fetchUrl: GuardedFetch
  readonly bounds: Pick<Config['fetch'], 'keySetFloorSeconds' | 'keySetCeilingSeconds'>
  readonly clock: Clock
  /** Hears of every fetch that failed. */
  readonly onFailure?: (url: string, error: unknown) => void
}

interface Entry {
  readonly keys: readonly PublicKey[]
  readonly fetchedAt: Seconds
  readonly freshUntil: Seconds
  readonly triedAt: Seconds
  readonly error?: unknown
}

/** A URL is fetched again at most this often, whatever `kid` is asked for. */
const retrySeconds = 60
const mostKeySets = 500

/**
 * Keeps fetched key sets as RFC 9111 §4.2 says, within a floor and a ceiling. While a set cannot be fetched again, the
 * keys that were fetched last are used until the ceiling.
 */
export function createKeySets({ fetchUrl, bounds, clock, onFailure }: KeySetsOptions): KeySets {
  const { keySetFloorSeconds: floor, keySetCeilingSeconds: ceiling } = bounds
  const entries = new Map<string, Entry>()
  const fetching = new Map<string, Promise<Entry>>()

  async function load(url: string, before: Entry | undefined): Promise<Entry> {
    const triedAt = clock()
    try {
      const { headers, body } = await fetchUrl(url)
      const keys = parseKeySet(parseStrictJson(body.toString()))
      const freshFor = Math.min(Math.max(freshSeconds(headers, triedAt), floor), ceiling)
      return { keys, fetchedAt: triedAt, freshUntil: triedAt + freshFor, triedAt }
    } catch (error) {
      onFailure?.(url, error)
      const none = { keys: [], fetchedAt: triedAt, freshUntil: triedAt }
      return { ...(before ?? none), triedAt, error }
    }
  }

  async function reload(url: string, before: Entry | undefined): Promise<Entry> {
    const running = fetching.get(url) ?? load(url, before).finally(() => fetching.delete(url))
    fetching.set(url, running)
    const entry = await running
    // The one that was fetched longest ago makes room.
    entries.delete(url)
    entries.set(url, entry)
    for (const oldest of entries.keys()) {
      if (entries.size <= mostKeySets) break
      entries.delete(oldest)
    }
    return entry
  }

  return {
    async keysAt(url, kid) {
      const now = clock()
      const known = entries.get(url)
      const isKnown = kid === undefined || known?.keys.some((key) => key.kid === kid)
      const isFresh = known !== undefined && now < known.freshUntil && isKnown
      const mayFetch = known === undefined || now >= known.triedAt + Math.min(retrySeconds, ceiling)
      const entry = isFresh || !mayFetch ? known : await reload(url, known)
      if (entry.keys.length > 0 && now < entry.fetchedAt + ceiling) return entry.keys
      throw entry.error
    },
  }
}
