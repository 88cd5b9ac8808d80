import { type AttributeChange, changeAttributes } from '../../domain/attributes.ts'
import { type AuditContext, auditEvent } from '../../domain/audit.ts'
import { check } from '../../domain/check.ts'
import { consentKind } from '../../domain/connections.ts'
import {
  accept,
  type Decision,
  endSessionsOf,
  insert,
  remove,
  removeAll,
  removeUser,
  update,
  type Write,
  withWrites,
} from '../../domain/decision.ts'
import type {
  Hash,
  OneTimeLink,
  Passkey,
  Seconds,
  User,
  UserClaims,
  UserCredentials,
} from '../../domain/model.ts'
import { deleteLinksOf, insertLink } from './one-time-link.ts'
import { passkeyKind } from './passkey.ts'
import { personalTokenKind } from './personal-token.ts'
import { secondFactorKind } from './second-factor.ts'
import { forgetFailures } from './throttle.ts'
import { westernDigits } from './typed-code.ts'
import { upstreamLinkKind } from './upstream-link.ts'

/** The data of a new user. */
export interface NewUser {
  readonly username: string
  readonly email?: string | undefined
  readonly emailVerified?: boolean
  /** PHC string, argon2id; absent: they are invited and set one themselves. */
  readonly passwordHash?: string
  /** Further standard claims, OpenID Connect Core §5.1. */
  readonly claims?: UserClaims
  readonly attributes?: AttributeChange
  readonly seeded?: boolean
}

/** The form of a `sub`. */
export const subPattern = '^(user|person)_[A-Za-z0-9_-]{22}$'

const longestUsername = 128
/** RFC 5321 §4.5.3.1.3: a path of 256 characters, less its angle brackets. */
const longestEmail = 254
/** Control, bidirectional, zero-width and other invisible characters, and every kind of space. */
const invisible = /[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/u

/** The one spelling of a user name: trimmed, NFKC, lower case; undefined when it cannot be one. */
export function canonicalUsername(text: string): string | undefined {
  const name = canonical(text, longestUsername)
  return name === '' || invisible.test(name) ? undefined : name
}

/** The one spelling of an email address, to compare and to sign in with; undefined when it cannot be one. */
export function canonicalEmail(text: string): string | undefined {
  const address = canonical(text, longestEmail)
  return /^[^@]+@[^@]+$/.test(address) && !invisible.test(address) ? address : undefined
}

/** What a user typed to sign in, as the store knows it: a user name or an email address. */
export function canonicalLogin(text: string): string | undefined {
  return canonicalUsername(text) ?? canonicalEmail(text)
}

/** Whether a typed name is this user name, also with the digits of another script. */
export function isSameName(typed: string, username: string): boolean {
  return westernDigits(canonicalUsername(typed) ?? '') === westernDigits(username)
}

/** What user names and email addresses begin with, as the store knows them; undefined when none can. */
export function canonicalPrefix(text: string): string | undefined {
  const prefix = canonical(text, longestEmail)
  return prefix === '' || invisible.test(prefix) ? undefined : prefix
}

/** Whether the user name or the email address of a user begins with a text. */
export function isNamed({ username, email }: Pick<User, 'username' | 'email'>, text: string): boolean {
  const prefix = canonicalPrefix(text)
  return prefix !== undefined && [username, email].some((name) => name?.startsWith(prefix))
}

/**
 * Creates a user. The id, 128 random bits, is the `sub` (OpenID Connect Core §2). It is not derived from a name, so a
 * user who is removed and added again is another one.
 * @param fresh 16 random bytes, or the `sub` that the user has elsewhere.
 * @throws {OAuthError} `invalid_request` for a user name, email address or attribute that cannot be one.
 */
export function createUser(described: NewUser, fresh: Buffer | string, now: Seconds): User {
  const username = requireUsername(described.username)
  const email = described.email === undefined ? undefined : requireEmail(described.email)
  assertOwnName(username, email)
  return {
    id: typeof fresh === 'string' ? fresh : `user_${fresh.toString('base64url')}`,
    username,
    ...(email !== undefined && { email }),
    ...(described.passwordHash !== undefined && { passwordHash: described.passwordHash }),
    claims: {
      ...withFullName(described.claims ?? {}),
      preferred_username: username,
      ...(email !== undefined && { email, email_verified: described.emailVerified ?? false }),
      updated_at: now,
    },
    ...attributesAfter(undefined, described.attributes),
    seeded: described.seeded ?? false,
    createdAt: now,
    updatedAt: now,
  }
}

/** The writes that add a user, who sets a password by a link if they are invited. */
export function addUser(user: User, isInvited: boolean, context: AuditContext): readonly Write[] {
  const event = auditEvent(isInvited ? 'user-invited' : 'user-added', context, { userId: user.id })
  return [insert('user', user), event]
}

/**
 * Sets a password and ends every session and every link that could set one.
 * @param how The facts of its event, and the session of the user who changes it themselves, which stays.
 */
export function changePassword(
  user: User,
  passwordHash: string,
  context: AuditContext,
  { stays, ...facts }: { readonly stays?: Hash; readonly link?: string; readonly disconnected?: string } = {},
): Decision<User> {
  const changed = { ...user, passwordHash, updatedAt: context.at }
  return replaceSignIn(
    changed,
    auditEvent('user-password-changed', context, { userId: user.id, ...facts }),
    stays,
  )
}

/**
 * Gives a user a passkey in place of the password, if there is one, and ends what another password ends.
 * @param how As for `changePassword`.
 */
export function replacePassword(
  user: User,
  passkey: Passkey,
  context: AuditContext,
  { stays, ...facts }: { readonly stays: Hash; readonly link: string; readonly disconnected?: string },
): Decision<User> {
  const { passwordHash, ...others } = user
  const replaced = passwordHash !== undefined && { replaced: 'password' }
  const event = auditEvent('passkey-added', context, {
    userId: user.id,
    name: passkey.name,
    ...facts,
    ...replaced,
  })
  const decision = replaceSignIn({ ...others, updatedAt: context.at }, event, stays)
  return withWrites(decision, insert(passkeyKind, passkey))
}

function replaceSignIn(changed: User, event: Write, stays: Hash | undefined): Decision<User> {
  return accept(
    changed,
    update('user', changed),
    ...forgetFailures(changed.id),
    // A link that undoes a change of address survives: the new password may be that of an attacker.
    ...deleteLinksOf(changed.id, 'email-undo'),
    event,
    endSessionsOf(changed.id, changed.updatedAt, stays),
  )
}

/**
 * `name` follows from given and family name (OpenID Connect Core §5.1), unless the user has one of their own: apps show
 * either, and an operator who adds a user rarely thinks of both.
 */
function withFullName(claims: UserClaims, before: UserClaims = {}): UserClaims {
  const isOwn =
    (claims['name'] ?? '') !== (before['name'] ?? '') || (before['name'] ?? '') !== fullName(before)
  if (isOwn) return claims
  const name = fullName(claims)
  return name === '' && claims['name'] === undefined ? claims : { ...claims, name }
}

function fullName({ given_name: given, family_name: family }: UserClaims): string {
  return [given, family].filter(Boolean).join(' ')
}

/** What changes about a user; an absent member stays, an empty text takes the claim or the address away. */
export interface ProfileChange {
  /** Standard claims that are text, OpenID Connect Core §5.1, under their wire names. */
  readonly claims?: Readonly<Record<string, string>>
  readonly attributes?: AttributeChange
  /** Absent: it stays, or follows the email address that it is. */
  readonly username?: string
  readonly email?: string
  /** Whether an operator declares the address verified. */
  readonly emailVerified?: boolean
}

/**
 * Changes a profile. `email_verified` of a new address is false until it is verified (OpenID Connect Core §5.1); links
 * that were sent to the old one verify nothing.
 * @throws {OAuthError} `invalid_request` for a user name, email address or attribute that cannot be one, or if the address
 * is the user name.
 */
export function changeProfile(user: User, change: ProfileChange, now: Seconds): Decision<User> {
  const email = change.email === undefined ? user.email : readEmail(change.email)
  // A user name that is the email address follows it.
  const following = user.username === user.email ? (email ?? user.username) : user.username
  const username = change.username === undefined ? following : requireUsername(change.username)
  assertOwnName(username, email)
  const { email: before, attributes, ...others } = user
  const { email: _, email_verified: verified, ...claims } = user.claims
  const stays = email === before && verified === true
  const changed: User = {
    ...others,
    username,
    ...(email !== undefined && { email }),
    claims: {
      ...withoutEmpty({
        ...withFullName({ ...claims, ...change.claims }, claims),
        preferred_username: username,
      }),
      ...(email !== undefined && { email, email_verified: change.emailVerified ?? stays }),
      updated_at: now,
    },
    ...attributesAfter(attributes, change.attributes),
    updatedAt: now,
  }
  return accept(changed, update('user', changed))
}

/**
 * Gives the user another verified address, or none, and deletes every link that was sent to the old one.
 * @param email Empty: none.
 * @param undo The link that was sent to the old address, if that was verified.
 * @throws {OAuthError} `invalid_request` as `changeProfile`.
 */
export function moveEmail(
  user: User,
  email: string,
  now: Seconds,
  undo: OneTimeLink | undefined,
): Decision<User> {
  return withWrites(
    changeProfile(user, { email, emailVerified: true }, now),
    ...deleteLinksOf(user.id, 'email-undo'),
    ...(undo === undefined ? [] : [insertLink(undo)]),
  )
}

/** Passkeys and codes added this long before a change of address are removed with it, in seconds. */
const suspectSeconds = 86_400

/**
 * Returns an account to the owner of its previous address: restores that address, sets a new password, ends all access,
 * and removes the passkeys and one-time codes added since the day before the change, and every link to an upstream.
 * @param since When the address was changed.
 * @throws {OAuthError} `invalid_request` as `changeProfile`.
 */
export function undoEmailChange(
  { user, passkeys, secondFactor }: UserCredentials,
  { email, since }: { readonly email: string; readonly since: Seconds },
  passwordHash: string,
  context: AuditContext,
): Decision<User> {
  const restored = changeProfile(user, { email, emailVerified: true }, context.at)
  if ('rejection' in restored) return restored
  const { id: userId } = user
  const suspectSince = since - suspectSeconds
  const added = passkeys.filter(({ createdAt }) => createdAt >= suspectSince)
  const hasNewCodes = secondFactor !== undefined && secondFactor.createdAt >= suspectSince
  return withWrites(
    changePassword(restored.result, passwordHash, context, {
      link: 'email-undo',
      disconnected: 'everything',
    }),
    auditEvent('user-changed', context, { userId, changed: 'email' }),
    ...deleteLinksOf(userId),
    ...endSessionsAndGrants(userId, 'rfc9700-4.14.2-revoke-on-event', context.at),
    removeAll(upstreamLinkKind, userId),
    ...added.map(({ id }): Write => remove(passkeyKind, id)),
    ...(hasNewCodes ? [remove(secondFactorKind, userId)] : []),
  )
}

/** Marks an address as verified; does nothing if the user has another one by now. */
export function verifyEmail(user: User, email: string, now: Seconds): Decision<User> {
  if (user.email !== email || user.claims['email_verified'] === true) return accept(user)
  return changeProfile(user, { emailVerified: true }, now)
}

/** Keeps a user out from now on: every session, link and personal token ends, and everything they granted to clients. */
export function lockUser(user: User, context: AuditContext): Decision<User> {
  const { id: userId, lockedAt = context.at } = user
  const locked = { ...user, lockedAt, updatedAt: context.at }
  return accept(
    locked,
    update('user', locked),
    ...deleteLinksOf(userId),
    ...endSessionsAndGrants(userId, 'lychgate-account-locked', context.at),
    auditEvent('user-locked', context, { userId }),
  )
}

/** Deletes a user with their records, and ends their sessions; their grants and tokens become invalid. */
export function deleteUser({ id: userId }: Pick<User, 'id'>, context: AuditContext): Decision<undefined> {
  return accept(undefined, removeUser(userId, context.at), auditEvent('user-removed', context, { userId }))
}

/** Lets a user in again, also after too many failures; what ended with the lock stays ended. */
export function unlockUser(user: User, context: AuditContext): Decision<User> {
  const { lockedAt, ...rest } = user
  const { id: userId } = user
  const isLocked = lockedAt !== undefined
  const unlocked = isLocked ? { ...rest, updatedAt: context.at } : user
  return accept(
    unlocked,
    ...(isLocked ? [update('user', unlocked)] : []),
    ...forgetFailures(userId),
    auditEvent('user-unlocked', context, { userId, was: isLocked ? 'locked' : 'not locked' }),
  )
}

/** The writes that sign a user out everywhere and revoke everything they granted to clients, and their own tokens. */
export function endSessionsAndGrants(userId: string, rule: string, now: Seconds): readonly Write[] {
  return [
    endSessionsOf(userId, now),
    { op: 'revokeGrantsOf', userId, at: now, rule },
    removeAll(consentKind, userId),
    removeAll(personalTokenKind, userId),
  ]
}

/** Describes a user to an operator, without the hash of the password. */
export function describeUser(user: User) {
  const { id, username, seeded, createdAt, updatedAt, passwordHash, lockedAt, claims, attributes = {} } = user
  return {
    sub: id,
    username,
    seeded,
    created_at: createdAt,
    updated_at: updatedAt,
    has_password: passwordHash !== undefined,
    ...(lockedAt !== undefined && { locked_at: lockedAt }),
    claims,
    attributes,
  }
}

/** Absent, and not empty, so that most rows have none. */
function attributesAfter(
  stored: User['attributes'],
  change: AttributeChange | undefined,
): Pick<User, 'attributes'> {
  const attributes = change === undefined ? stored : changeAttributes(stored, change)
  return attributes === undefined || Object.keys(attributes).length === 0 ? {} : { attributes }
}

function requireUsername(text: string): string {
  const username = canonicalUsername(text)
  check(
    username !== undefined,
    'lychgate-account-username',
    'invalid_request',
    'username must have 1 to 128 characters, none of them invisible or a space',
  )
  return username
}

function readEmail(text: string): string | undefined {
  return text === '' ? undefined : requireEmail(text)
}

function requireEmail(text: string): string {
  const email = canonicalEmail(text)
  check(
    email !== undefined,
    'oidc-core-5.1-email-syntax',
    'invalid_request',
    'email must be an email address',
  )
  return email
}

/** Both can be used to sign in, so another user's address must not be a user name. */
function assertOwnName(username: string, email: string | undefined): void {
  check(
    !username.includes('@') || username === email,
    'lychgate-account-username',
    'invalid_request',
    'username may be an email address only if it is the email of the same user',
  )
}

/** OpenID Connect Core §5.3.2: a claim without a value is left out, never empty. */
function withoutEmpty(claims: UserClaims): UserClaims {
  return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== ''))
}

/** NFKC can follow from lower case too: once more makes it stable. */
function canonical(text: string, longest: number): string {
  // NFKC makes one character eighteen at most; longer text cannot become short enough to matter.
  if (text.length > 4 * longest) return ''
  const folded = text.normalize('NFKC').toLowerCase().normalize('NFKC').trim()
  return [...folded].length > longest ? '' : folded
}
