import type { OAuthError } from './errors.ts'
import type {
  AuditEvent,
  Client,
  Consent,
  Grant,
  Hash,
  Interaction,
  LinkPurpose,
  OneTimeLink,
  Passkey,
  Rejection,
  SecondFactor,
  Seconds,
  Session,
  StoredKey,
  Throttle,
  User,
} from './model.ts'

/** Every change of state there is. An adapter's switch over `op` ends in `satisfies never`. */
export type Write =
  | { readonly op: 'insertClient'; readonly client: Client }
  | { readonly op: 'updateClient'; readonly client: Client }
  | { readonly op: 'touchClient'; readonly clientId: string; readonly at: Seconds }
  /** Its grants, codes and tokens become invalid. */
  | { readonly op: 'deleteClient'; readonly clientId: string }
  | { readonly op: 'insertUser'; readonly user: User }
  | { readonly op: 'updateUser'; readonly user: User }
  /** Its sessions, consents, grants, tokens and credentials become invalid. */
  | { readonly op: 'deleteUser'; readonly userId: string }
  | { readonly op: 'insertSession'; readonly session: Session }
  | { readonly op: 'extendSession'; readonly sessionId: Hash; readonly idleExpiresAt: Seconds }
  | { readonly op: 'deleteSession'; readonly sessionId: Hash }
  /** Gives a session another id and other methods; if it has ended, nothing of the transaction is written. */
  | {
      readonly op: 'replaceSession'
      readonly sessionId: Hash
      readonly by: Hash
      readonly methods: readonly string[]
    }
  /** All sessions of a user; `except` stays. */
  | { readonly op: 'deleteSessionsOf'; readonly userId: string; readonly except?: Hash }
  | { readonly op: 'insertPasskey'; readonly passkey: Passkey }
  | { readonly op: 'updatePasskey'; readonly passkey: Passkey }
  | { readonly op: 'deletePasskey'; readonly passkeyId: string }
  /** Inserts, or replaces the one of the same account. */
  | { readonly op: 'putSecondFactor'; readonly secondFactor: SecondFactor }
  | { readonly op: 'deleteSecondFactor'; readonly userId: string }
  | { readonly op: 'insertLink'; readonly link: OneTimeLink }
  | { readonly op: 'deleteLink'; readonly linkId: Hash }
  /** All of a user, those for one purpose, or all but those for one. */
  | {
      readonly op: 'deleteLinksOf'
      readonly userId: string
      readonly only?: LinkPurpose
      readonly except?: LinkPurpose
    }
  /** Every link for this purpose, of all users. */
  | { readonly op: 'deleteLinksFor'; readonly purpose: LinkPurpose }
  | { readonly op: 'insertInteraction'; readonly interaction: Interaction }
  | { readonly op: 'updateInteraction'; readonly interaction: Interaction }
  | { readonly op: 'deleteInteraction'; readonly interactionId: string }
  /** Inserts, or replaces the consent of the same account and client. */
  | { readonly op: 'putConsent'; readonly consent: Consent }
  | { readonly op: 'deleteConsent'; readonly userId: string; readonly clientId: string }
  | { readonly op: 'deleteConsentsOf'; readonly userId: string }
  /** With a basis: inserted only while that still holds, otherwise nothing of the transaction is written. */
  | { readonly op: 'insertGrant'; readonly grant: Grant; readonly basis?: GrantBasis }
  /** All but the newest `stay` grants of a user at one client. */
  | {
      readonly op: 'deleteOldestGrants'
      readonly userId: string
      readonly clientId: string
      readonly stay: number
    }
  /** Raises `seq` to 1, and forgets what only the code needed: the nonce, and most of the code challenge. */
  | {
      readonly op: 'redeemGrant'
      readonly grantId: string
      readonly at: Seconds
      readonly refreshExpiresAt?: Seconds
      readonly expiresAt: Seconds
    }
  /** Raises `seq` by one from `fromSeq`. */
  | {
      readonly op: 'rotateGrant'
      readonly grantId: string
      readonly fromSeq: number
      readonly at: Seconds
      readonly refreshExpiresAt: Seconds
      readonly expiresAt: Seconds
    }
  /** `rule`: the reason, for `lychgate explain`. */
  | { readonly op: 'revokeGrant'; readonly grantId: string; readonly at: Seconds; readonly rule: string }
  /** Every grant of a user, or those at one client, in any state. */
  | {
      readonly op: 'revokeGrantsOf'
      readonly userId: string
      readonly clientId?: string
      readonly at: Seconds
      readonly rule: string
    }
  | {
      readonly op: 'revokeAccessToken'
      readonly grantId: string
      readonly tokenId: string
      readonly expiresAt: Seconds
    }
  | { readonly op: 'insertKey'; readonly key: StoredKey }
  | { readonly op: 'updateKey'; readonly key: StoredKey }
  | { readonly op: 'deleteKey'; readonly keyId: string }
  | { readonly op: 'putThrottle'; readonly throttle: Throttle }
  | { readonly op: 'deleteThrottle'; readonly key: string }
  | { readonly op: 'insertRejection'; readonly rejection: Rejection }
  /** Never updated; the sweep deletes it when it is old. */
  | { readonly op: 'insertAuditEvent'; readonly event: AuditEvent }

/** What the decision to insert a grant depended on. Its user must also exist and not be locked. */
export interface GrantBasis {
  /** The user's session. */
  readonly sessionId: Hash
  /** The remembered consent; absent: the decision did not depend on one. */
  readonly consent?: Consent | undefined
}

/** What a decide function returns: a result, or an error to throw, each with writes to commit first. */
export type Decision<T> =
  | { readonly result: T; readonly writes: readonly Write[] }
  | { readonly rejection: OAuthError; readonly writes: readonly Write[] }

/** Accepts: the writes are committed, then `result` is returned. */
export function accept<T>(result: T, ...writes: readonly Write[]): Decision<T> {
  return { result, writes }
}

/** The same decision with more to write. */
export function withWrites<T>(decision: Decision<T>, ...more: readonly Write[]): Decision<T> {
  return { ...decision, writes: [...decision.writes, ...more] }
}

/** Rejects: the writes are committed, then `rejection` is thrown. */
export function reject(rejection: OAuthError, ...writes: readonly Write[]): Decision<never> {
  return { rejection, writes }
}
