import type { TextClaim } from '../../domain/claims.ts'
import type { Seconds } from '../../domain/model.ts'
import type { Text } from '../../domain/text.ts'
import type { ClaimFault } from '../../users/rules/editable-claims.ts'
import type { ConsentArea, ConsentScope } from '../sign-in/consent-models.ts'

/** The rooms of the account page, in the order of its navigation; the texts have a heading for each, `rooms.…`, and a short name, `nav.…`. */
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

/**
 * What a page may say has just been done: a word in its address, since a redirect led there. The texts say it, `done.…`.
 */
export const doneWords = [
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

/** Whether an address says something that a page of ours may have said. */
export function isDoneWord(word: string | undefined): word is DoneWord {
  return doneWords.some((known) => known === word)
}

/** The path of a room, below the issuer. */
export function sectionPath(section: AccountSection): string {
  return section === 'overview' ? '/account' : `/account/${section}`
}

/** What stands around every page of the user's own: navigation, whose it is, what was just done. */
export interface AccountFrame {
  /** The navigation. */
  readonly sections: readonly { readonly section: AccountSection; readonly url: string }[]
  /** The room the page is in. */
  readonly section: AccountSection
  readonly user: { readonly name: string; readonly username: string }
  /** To another user of this browser, or a new one. */
  readonly switchUrl: string
  readonly signOutUrl: string
  readonly done?: DoneWord
}

export interface AccountAppsPage {
  readonly frame: AccountFrame
  readonly action: string
  readonly hidden: Readonly<Record<string, string>>
  /** One for each client: every installation of an app that registered itself is one. */
  readonly apps: readonly ConnectedApp[]
  /** Of all pages. */
  readonly count: number
  readonly previousUrl?: string
  readonly nextUrl?: string
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
  /** How many older ones there are besides. */
  readonly grantsNotShown: number
  /** It is not asked about again for what it was allowed before. */
  readonly remembered: boolean
}

/** one grant that is alive. */
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
  /** What it may learn of the user. */
  readonly identity: readonly ConsentScope[]
  readonly areas: readonly ConsentArea[]
  /** Names of scopes that the catalogue does not have any more. */
  readonly others: readonly string[]
  /** The resources of the access, if it is not only the service itself. */
  readonly resources: readonly { readonly name: string; readonly identifier: string }[]
}

/** How the user signed in. */
export type WayIn = 'password' | 'passkey' | 'code'

export interface AccountSessionsPage {
  readonly frame: AccountFrame
  readonly action: string
  readonly hidden: Readonly<Record<string, string>>
  /** This one first. */
  readonly sessions: readonly KnownSession[]
}

export interface KnownSession {
  /** What the form calls it. */
  readonly handle: string
  /** It is the one the page is seen in. */
  readonly here: boolean
  /** "Firefox, Linux"; absent when the browser did not say. */
  readonly browser?: string
  readonly from?: Text
  readonly signedInAgoSeconds: Seconds
  readonly ways: readonly WayIn[]
}

/** What a user can sign in with. */
export interface WaysIn {
  readonly password: boolean
  readonly passkeys: number
  /** One-time codes are set up. */
  readonly codes: boolean
  readonly recoveryCodes: number
}

export interface AccountOverviewPage {
  readonly frame: AccountFrame
  readonly apps: number
  readonly sessions: number
  readonly signedInAgoSeconds: Seconds
  readonly email?: string
  readonly emailVerified: boolean
  readonly waysIn: WaysIn
  readonly urls: Readonly<Record<'apps' | 'sessions' | 'security' | 'profile', string>>
}

export interface AccountSecurityPage {
  readonly frame: AccountFrame
  readonly waysIn: WaysIn
  /** Where each is looked after; absent where this installation has none of it. */
  readonly password: { readonly url: string }
  readonly passkeys: { readonly url?: string }
  readonly codes: { readonly url?: string }
}

export interface AccountPasswordPage {
  readonly frame: AccountFrame
  readonly action: string
  readonly hidden: Readonly<Record<string, string>>
  /** For password managers. */
  readonly username: string
  /** False: this is the first. */
  readonly hasPassword: boolean
  readonly problem?: Text
}

export interface AccountPasskeysPage {
  readonly frame: AccountFrame
  readonly action: string
  readonly hidden: Readonly<Record<string, string>>
  readonly passkeys: readonly {
    /** What the form calls it. */
    readonly handle: string
    readonly name: string
    readonly addedAgoSeconds: Seconds
    /** Absent: not yet. */
    readonly usedAgoSeconds?: Seconds
    /** It is kept by more than one device. */
    readonly synced: boolean
  }[]
  /** There is no room for another one. */
  readonly isFull: boolean
  /** What the script of the page asks the browser for, Web Authentication Level 3 §5.4, as JSON; absent where none can be made. */
  readonly creation?: {
    readonly options: string
    /** What it may be called. */
    readonly name: string
  }
  readonly problem?: Text
}

export interface AccountCodesPage {
  readonly frame: AccountFrame
  readonly action: string
  readonly hidden: Readonly<Record<string, string>>
  /** Codes are asked for after the password only. */
  readonly hasPassword: boolean
  readonly inUse?: { readonly sinceAgoSeconds: Seconds; readonly recoveryCodes: number }
  /** A secret that is not confirmed yet: its picture, and the text for use without a camera. */
  readonly setUp?: { readonly pictureUrl: string; readonly secret: string }
  /** New recovery codes, shown this once. */
  readonly fresh?: readonly string[]
  readonly problem?: Text
}

export interface AccountProfilePage {
  readonly frame: AccountFrame
  readonly action: string
  readonly hidden: Readonly<Record<string, string>>
  readonly username: string
  /** What the user may say themselves; none where the operator keeps all of it. */
  readonly fields: readonly {
    readonly claim: TextClaim
    readonly value: string
    readonly fault?: ClaimFault
  }[]
  /** What only the operator changes. */
  readonly facts: readonly { readonly claim: string; readonly label?: Text; readonly text: string }[]
  readonly email: {
    readonly address?: string
    readonly verified: boolean
    /** Whether an email with a link can be sent. */
    readonly canVerify: boolean
    /** Where another one is given; absent where the operator does that. */
    readonly url?: string
  }
}

export interface AccountEmailPage {
  readonly frame: AccountFrame
  readonly action: string
  readonly hidden: Readonly<Record<string, string>>
  readonly email?: string
  /** The current password goes with the form: the session did not begin with a passkey. */
  readonly asksPassword: boolean
  readonly problem?: Text
}

export interface AccountActivityPage {
  readonly frame: AccountFrame
  /** Newest first. */
  readonly events: readonly {
    readonly at: Seconds
    readonly agoSeconds: Seconds
    readonly what: Text
    readonly from?: Text
  }[]
  /** Where the older ones are; absent where there are none. */
  readonly copyUrl?: string
}

export interface AccountPrivacyPage {
  readonly frame: AccountFrame
  readonly action: string
  readonly hidden: Readonly<Record<string, string>>
  /** Absent where only the operator deletes accounts. */
  readonly deleteUrl?: string
}

export interface AccountDeletePage {
  readonly frame: AccountFrame
  readonly action: string
  readonly hidden: Readonly<Record<string, string>>
  /** What has to be typed. */
  readonly username: string
  /** The way back. */
  readonly keepUrl: string
  readonly problem?: Text
}

/** The account is deleted and its user signed out. */
export type AccountDeletedPage = Readonly<Record<string, never>>

/** Every page of the account, by the name of its view. */
export interface AccountPages {
  'account-overview': AccountOverviewPage
  'account-apps': AccountAppsPage
  'account-sessions': AccountSessionsPage
  'account-security': AccountSecurityPage
  'account-password': AccountPasswordPage
  'account-passkeys': AccountPasskeysPage
  'account-one-time-codes': AccountCodesPage
  'account-profile': AccountProfilePage
  'account-email': AccountEmailPage
  'account-activity': AccountActivityPage
  'account-privacy': AccountPrivacyPage
  'account-delete': AccountDeletePage
  'account-deleted': AccountDeletedPage
}
