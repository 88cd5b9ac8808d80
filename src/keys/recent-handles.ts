import { type Handle, type HandleKind, type OpenedHandle, openedAs } from '../domain/handle.ts'

/** Of each kind: a few megabytes together. A process under full load makes about as many codes in half a second. */
const most = 4096
/** In characters. A longer token lists many scopes or resources, and is opened each time. */
const longestToken = 512

interface KeptCode {
  readonly text: string
  readonly code: Handle
  readonly grantSecret: string
}

/** The handles that are kept, see `recentHandles`. */
export type RecentHandles = ReturnType<typeof recentHandles>

/**
 * Keeps what was opened or made lately with the same keys, where that is likely to be asked for again: opening a handle
 * takes as long as reading its grant. An API gets the same access token again and again, and most codes are exchanged
 * within half a second, once, by the process that made them. A refresh token comes back when it is hardly worth keeping.
 */
export function recentHandles() {
  const tokens = new Map<string, OpenedHandle>()
  // A code has one place, which it leaves to the next. A map of what comes and goes is built again and again, and what
  // was in it then outlives the collections of young objects.
  const codes = new Array<KeptCode | undefined>(most)
  return {
    find: (text: string, kinds: readonly HandleKind[]): OpenedHandle | undefined => {
      const token = tokens.get(text)
      if (token !== undefined) return kinds.includes(token.kind) ? token : undefined
      const code = codes[placeOf(text)]
      if (code?.text !== text || !kinds.includes('code')) return undefined
      codes[placeOf(text)] = undefined
      return openedAs(code.code, text, code.grantSecret)
    },
    /** Keeps what was opened if it is an access token. */
    keepOpened: (text: string, handle: OpenedHandle): void => {
      if (handle.kind !== 'access' || text.length > longestToken) return
      if (tokens.size >= most) tokens.clear()
      tokens.set(text, handle)
    },
    /** Keeps a code that was made, until it is found or another one takes its place. */
    keepCode: (text: string, code: Handle, grantSecret: string): void => {
      codes[placeOf(text)] = { text, code, grantSecret }
    },
  }
}

/** The place of a code, by its end: that is part of a tag, and as good as random. */
function placeOf(text: string): number {
  let place = 0
  for (let from = text.length - 4; from < text.length; from += 1) place = place * 31 + text.charCodeAt(from)
  return place % most
}
