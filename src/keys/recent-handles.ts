import type { HandleKind, OpenedHandle } from '../domain/handle.ts'

/** A few megabytes together. */
const mostKept = 4096
/** In characters. A longer token lists many scopes or resources, and is opened each time. */
const longestKept = 512

/** The access tokens that were opened lately, see `recentHandles`. */
export type RecentHandles = ReturnType<typeof recentHandles>

/**
 * Keeps the access tokens that were opened lately with the same keys: an API gets the same token again and again, and
 * opening it takes as long as reading its grant. Codes and refresh tokens are used once.
 */
export function recentHandles() {
  const kept = new Map<string, OpenedHandle>()
  return {
    find: (text: string, kinds: readonly HandleKind[]): OpenedHandle | undefined => {
      const handle = kept.get(text)
      return handle !== undefined && kinds.includes(handle.kind) ? handle : undefined
    },
    keep: (text: string, handle: OpenedHandle): void => {
      if (handle.kind !== 'access' || text.length > longestKept) return
      if (kept.size >= mostKept) kept.clear()
      kept.set(text, handle)
    },
  }
}
