import type { NamedUser } from '../describe.ts'
import type { FormModel } from '../forms.ts'

/** The sections of the account page, in the order of its navigation. */
export const accountSections = [
  'overview',
  'apps',
  'sessions',
  'security',
  'profile',
  'activity',
  'privacy',
] as const

export type AccountSection = (typeof accountSections)[number]

/** Returns the path of a section, below the issuer. */
export function sectionPath(section: AccountSection): string {
  return section === 'overview' ? '/account' : `/account/${section}`
}

/** What a page can report as just done: a word in its address, because a redirect led there. */
const doneWords = [
  'disconnected',
  'all-disconnected',
  'session-ended',
  'sessions-ended',
  'password-changed',
  'passkey-added',
  'passkey-removed',
  'codes-begun',
  'codes-removed',
  'password-changed-disconnected',
  'profile-saved',
  'email-saved',
  'email-sent',
  'email-removed',
  'gone',
  'again',
] as const

export type DoneWord = (typeof doneWords)[number]

/** Whether a word of an address is one that a page of ours may have put there. */
export function isDoneWord(word: string | undefined): word is DoneWord {
  return doneWords.some((known) => known === word)
}

/** What is around every page of the account: its navigation, the user, what was just done. */
export interface AccountFrame {
  readonly sections: readonly { readonly section: AccountSection; readonly url: string }[]
  /** The section the page belongs to. */
  readonly section: AccountSection
  readonly user: NamedUser
  /** Switches to another user of this browser, or to a new one. */
  readonly switchUrl: string
  readonly signOutUrl: string
  readonly done?: DoneWord
}

/** What every page of the account shows besides its own content. */
export interface AccountModel extends FormModel {
  readonly frame: AccountFrame
}
