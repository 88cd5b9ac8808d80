/** Values in memory by key, which together take no more than a number of bytes. */
export interface BoundedCache<T> {
  get(key: string): T | undefined
  /** @param bytes About how much the value takes. */
  set(key: string, value: T, bytes: number): void
  delete(key: string): void
}

/** What an entry takes in addition to its key and its value, about. */
const bytesOfEntry = 200

/** Creates a cache that removes the value which was unused for the longest time when there is no room. */
export function boundedCache<T>(mostBytes: number): BoundedCache<T> {
  const entries = new Map<string, { readonly value: T; readonly bytes: number }>()
  let total = 0

  function remove(key: string): void {
    total -= entries.get(key)?.bytes ?? 0
    entries.delete(key)
  }

  return {
    get(key) {
      const entry = entries.get(key)
      if (entry === undefined) return undefined
      // A Map is in the order of insertion: the first entry is the one that was unused for the longest time.
      entries.delete(key)
      entries.set(key, entry)
      return entry.value
    },
    set(key, value, bytes) {
      remove(key)
      const taken = bytes + Buffer.byteLength(key) + bytesOfEntry
      entries.set(key, { value, bytes: taken })
      total += taken
      for (const oldest of entries.keys()) {
        if (total <= mostBytes) break
        remove(oldest)
      }
    },
    delete: remove,
  }
}
