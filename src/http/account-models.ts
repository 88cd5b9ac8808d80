import type { Seconds } from '../domain/model.ts'
import type { Text } from '../domain/text.ts'
import type { ConsentArea, ConsentScope } from './page-models.ts'

/** The rooms of the account page, in the order of its navigation; each has a name in the texts, `rooms.…`. */
export const accountRooms = ['apps'] as const

export type AccountRoom = (typeof accountRooms)[number]

/**
 * What a page may say has just been done: a word in its address, since a redirect led there. The texts say it, `done.…`.
 */
export const doneWords = ['disconnected', 'all-disconnected', 'gone', 'again'] as const

export type DoneWord = (typeof doneWords)[number]

/** Whether an address says something that a page of ours may have said. */
export function isDoneWord(word: string | undefined): word is DoneWord {
  return doneWords.some((known) => known === word)
}

/** What stands around every page of the person's own: navigation, whose it is, what was just done. */
export interface AccountFrame {
  /** Path of the account page; its rooms are below. */
  readonly root: string
  readonly rooms: readonly AccountRoom[]
  readonly room: AccountRoom
  readonly account: { readonly name: string; readonly username: string }
  readonly signOutUrl: string
  readonly done?: DoneWord
}

export interface AccountAppsPage {
  readonly frame: AccountFrame
  readonly action: string
  readonly hidden: Readonly<Record<string, string>>
  /** One for each client: every installation of an app that registered itself is one. */
  readonly apps: readonly ConnectedApp[]
}

export interface ConnectedApp {
  readonly clientId: string
  readonly name?: string
  /** The client registered itself: its name is self-asserted, RFC 7591 §5. */
  readonly selfRegistered: boolean
  readonly registeredAgoSeconds: Seconds
  /** "from this computer"; absent when it is not known. */
  readonly registeredFrom?: Text
  /** Newest first; none where only a remembered consent is left. */
  readonly grants: readonly ConnectedGrant[]
  /** It is not asked about again for what it was allowed before. */
  readonly remembered: boolean
}

/** One approval that is alive. */
export interface ConnectedGrant {
  readonly id: string
  readonly grantedAgoSeconds: Seconds
  /** When it last renewed its access; absent while it has not. */
  readonly usedAgoSeconds?: Seconds
  /** Its end, unless it is renewed before. */
  readonly endsInSeconds: Seconds
  readonly redirectHost: string
  /** The redirect goes to the very computer the browser ran on. */
  readonly loopback: boolean
  /** What it may learn of the person. */
  readonly identity: readonly ConsentScope[]
  readonly areas: readonly ConsentArea[]
  /** Names of scopes that the catalogue does not have any more. */
  readonly others: readonly string[]
  /** Whom the access is for, when it is not only the service itself. */
  readonly resources: readonly { readonly name: string; readonly identifier: string }[]
}
