import { insert, removeAll, type Write } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { LinkPurpose, OneTimeLink, Seconds } from '../../domain/model.ts'
import { type RecordKind, recordKind } from '../../domain/record.ts'
import { hashSecret, mintSecret } from '../../domain/secret.ts'

/** One-time links, by the hash of their secret: a kind for each purpose. */
export const linkKinds: Readonly<Record<LinkPurpose, RecordKind<OneTimeLink>>> = {
  'first-person': linkKind('first-person'),
  invitation: linkKind('invitation'),
  'password-reset': linkKind('password-reset'),
  'email-verification': linkKind('email-verification'),
  'email-change': linkKind('email-change'),
  'email-undo': linkKind('email-undo'),
}

function linkKind(purpose: LinkPurpose): RecordKind<OneTimeLink> {
  return recordKind(`link ${purpose}`, {
    id: ({ id }) => id,
    userId: ({ userId }) => userId,
    madeAt: ({ createdAt }) => createdAt,
    expiresAt: ({ expiresAt }) => expiresAt,
  })
}

/** Stores a link. */
export function insertLink(link: OneTimeLink): Write {
  return insert(linkKinds[link.purpose], link)
}

/** Deletes the links of a user except those for one purpose. */
export function deleteLinksOf(userId: string, except?: LinkPurpose): readonly Write[] {
  return Object.entries(linkKinds)
    .filter(([purpose]) => purpose !== except)
    .map(([, kind]) => removeAll(kind, userId))
}

/** How long each kind of link can be used. */
export interface LinkLifetimes {
  readonly firstPersonSeconds: Seconds
  readonly invitationSeconds: Seconds
  readonly passwordResetSeconds: Seconds
  readonly emailVerificationSeconds: Seconds
  readonly emailUndoSeconds: Seconds
}

/** A link and its secret, which is sent once and stored only as its hash. */
export interface MintedLink {
  readonly link: OneTimeLink
  readonly secret: string
}

/**
 * A link that is good for one use until it expires.
 * @param recipient The user, and the address it is sent to by email: only then does its use verify the address.
 * @param fresh `secretBytes` random bytes.
 */
export function mintLink(
  purpose: LinkPurpose,
  recipient: Pick<OneTimeLink, 'userId' | 'email'>,
  lifetimes: LinkLifetimes,
  fresh: Buffer,
  now: Seconds,
): MintedLink {
  const secret = mintSecret('link', fresh)
  const expiresAt = now + secondsOf(purpose, lifetimes)
  return { link: { id: hashSecret(secret), purpose, ...recipient, createdAt: now, expiresAt }, secret }
}

/**
 * Returns the link if it can still be used. A used, an expired and an unknown link get the same error.
 * @throws {OAuthError} `invalid_request`
 */
export function requireLink(link: OneTimeLink | undefined, now: Seconds): OneTimeLink {
  if (link === undefined || now >= link.expiresAt) throw unusableLink()
  return link
}

/** Returns the error of a link that cannot be used. */
export function unusableLink(): OAuthError {
  return new OAuthError('invalid_request', 'the link is invalid or has expired', {
    rule: 'lychgate-link-open',
    status: 404,
    page: { title: { key: 'error.link' }, advice: { key: 'error.link.advice' } },
  })
}

function secondsOf(purpose: LinkPurpose, lifetimes: LinkLifetimes): Seconds {
  switch (purpose) {
    case 'first-person':
      return lifetimes.firstPersonSeconds
    case 'invitation':
      return lifetimes.invitationSeconds
    case 'password-reset':
      return lifetimes.passwordResetSeconds
    case 'email-verification':
    case 'email-change':
      return lifetimes.emailVerificationSeconds
    case 'email-undo':
      return lifetimes.emailUndoSeconds
  }
}
