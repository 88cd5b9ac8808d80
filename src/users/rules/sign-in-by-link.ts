import { type AuditContext, auditEvent } from '../../domain/audit.ts'
import { methodsOf } from '../../domain/authentication-context.ts'
import { accept, type Decision, remove, withWrites } from '../../domain/decision.ts'
import type { Hash, OneTimeLink, Passkey, User, UserCredentials } from '../../domain/model.ts'
import { linkKinds, requireLink, unusableLink } from './one-time-link.ts'
import { changePassword, changeProfile, endSessionsAndGrants, replacePassword, verifyEmail } from './user.ts'

/** What the user of a link signs in with from now on. */
export type NewSignIn = { readonly passkey: Passkey } | { readonly passwordHash: string }

/** A link, and its user. */
interface LinkedUser {
  readonly link: OneTimeLink | undefined
  readonly credentials: UserCredentials | undefined
}

/** What a user with a link changes. */
export interface ChangeByLink {
  readonly chosen: NewSignIn
  /** The names that an invited user typed. */
  readonly claims: Readonly<Record<string, string>>
  /** Whether every app is disconnected. */
  readonly disconnects: boolean
  /** The session that begins with it. */
  readonly sessionId: Hash
}

/** Whether the user has more than a password to sign in with: a link must not get around that. */
export function hasFactor({ passkeys, secondFactor }: UserCredentials): boolean {
  return passkeys.length > 0 || secondFactor?.confirmedAt !== undefined
}

/**
 * Returns the methods of the sign-in by a link, RFC 8176. A link that was sent by email is worth a password at most: where
 * more is required, the user of a new passkey is asked for it.
 */
export function methodsByLink(chosen: NewSignIn, { email }: Pick<OneTimeLink, 'email'>): readonly string[] {
  if ('passwordHash' in chosen) return methodsOf({ password: true, codes: false, passkey: false })
  return email === undefined ? methodsOf({ password: false, codes: false, passkey: true }, true) : []
}

/**
 * Uses up a link, and sets what its user signs in with. A link that was sent by email verifies its address.
 * @param rows The link and its user, loaded in this transaction.
 * @throws {OAuthError} if the link cannot be used, or would add a passkey for a user who has another factor.
 */
export function signInByLink(
  rows: LinkedUser | undefined,
  { chosen, claims, disconnects, sessionId }: ChangeByLink,
  context: AuditContext,
): Decision<UserCredentials> {
  const { at } = context
  const link = requireLink(rows?.link, at)
  const { email, purpose } = link
  const credentials = rows?.credentials
  if (credentials === undefined || credentials.user.lockedAt !== undefined) throw unusableLink()
  // It was sent to an address that the user no longer has.
  if (email !== undefined && email !== credentials.user.email) throw unusableLink()
  if ('passkey' in chosen && hasFactor(credentials)) throw unusableLink()
  const { user } = credentials
  const userId = user.id
  const named = purpose === 'invitation' ? acceptedBy(changeProfile(user, { claims }, at)) : user
  const proven = email === undefined ? named : acceptedBy(verifyEmail(named, email, at))
  const isProven = proven.claims['email_verified'] === true && user.claims['email_verified'] !== true
  const how = { stays: sessionId, link: purpose, ...(disconnects && { disconnected: 'everything' }) }
  const decision =
    'passkey' in chosen
      ? replacePassword(proven, chosen.passkey, context, how)
      : changePassword(proven, chosen.passwordHash, context, how)
  const passkeys = 'passkey' in chosen ? [chosen.passkey] : credentials.passkeys
  return withWrites(
    accept({ ...credentials, user: acceptedBy(decision), passkeys }, ...decision.writes),
    remove(linkKinds[purpose], link.id),
    ...(disconnects ? endSessionsAndGrants(userId, 'rfc9700-4.14.2-revoke-on-event', at) : []),
    ...(isProven ? [auditEvent('user-email-verified', context, { userId })] : []),
  )
}

/** Returns the user of a decision that always accepts; the user is written once, with what they sign in with. */
function acceptedBy(decision: Decision<User>): User {
  if ('rejection' in decision) throw decision.rejection
  return decision.result
}
