import type { HandleKind, OpenedHandle } from '../domain/handle.ts'

/** A few megabytes together. */
const mostKept = 4096
/** In characters. A longer token lists many scopes or resources, and is opened each time. */
const longestKept = 512

/** The handles that are kept, see `recentHandles`. */
export type RecentHandles = ReturnType<typeof recentHandles>

/**
 * Keeps what was opened or made lately with the same keys, where that is likely to be asked for again: opening a handle
 * takes as long as reading its grant. An API gets the same access token again and again, and most codes are exchanged
 * within seconds, once, by the process that made them. A refresh token comes back when it is hardly worth keeping.
 */
export function recentHandles() {
  const kept = new Map<string, OpenedHandle>()
  const keep = (text: string, handle: OpenedHandle) => {
    if (text.length > longestKept) return
    if (kept.size >= mostKept) kept.clear()
    kept.set(text, handle)
  }
  return {
    find: (text: string, kinds: readonly HandleKind[]): OpenedHandle | undefined => {
      const handle = kept.get(text)
      if (handle === undefined || !kinds.includes(handle.kind)) return undefined
      if (handle.kind === 'code') kept.delete(text)
      return handle
    },
    /** Keeps what was opened if it is an access token. */
    keepOpened: (text: string, handle: OpenedHandle): void => {
      if (handle.kind === 'access') keep(text, handle)
    },
    /** Keeps a code that was made until it is found. */
    keepCode: keep,
  }
}
