import type { HandleKind, OpenedHandle } from '../domain/handle.ts'

/** Together a few megabytes. */
const mostKept = 4096
/** In characters. Longer ones, which are limited to many scopes, are opened each time. */
const longestKept = 512

export type RecentHandles = ReturnType<typeof recentHandles>

/**
 * Keeps the access tokens that were opened lately with the same keys: an API is shown a token again and again, and to
 * open it takes as long as to read its grant. Codes and refresh tokens are shown once.
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
