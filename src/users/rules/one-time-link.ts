import { insert, removeAll, type Write } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { LinkPurpose, OneTimeLink, Seconds } from '../../domain/model.ts'
import { type RecordKind, recordKind } from '../../domain/record.ts'
import { hashSecret, mintSecret } from '../../domain/secret.ts'

/** How long each kind of link can be used. */
export interface LinkLifetimes {
  readonly firstUserSeconds: Seconds
  readonly invitationSeconds: Seconds
  readonly passwordResetSeconds: Seconds
  readonly emailVerificationSeconds: Seconds
  readonly emailUndoSeconds: Seconds
}

const lifetimeOf = {
  'first-user': 'firstUserSeconds',
  invitation: 'invitationSeconds',
  'password-reset': 'passwordResetSeconds',
  'email-verification': 'emailVerificationSeconds',
  'email-change': 'emailVerificationSeconds',
  'email-undo': 'emailUndoSeconds',
} as const satisfies Readonly<Record<LinkPurpose, keyof LinkLifetimes>>

/** One-time links, by the hash of their secret: a kind for each purpose. */
export const linkKinds = Object.fromEntries(
  Object.keys(lifetimeOf).map((purpose) => [
    purpose,
    recordKind<OneTimeLink>(`link ${purpose}`, {
      id: ({ id }) => id,
      userId: ({ userId }) => userId,
      madeAt: ({ createdAt }) => createdAt,
      expiresAt: ({ expiresAt }) => expiresAt,
    }),
  ]),
) as Readonly<Record<LinkPurpose, RecordKind<OneTimeLink>>> // one for each key

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

/** A link and its secret, which is sent once and stored only as its hash. */
export interface MintedLink {
  readonly link: OneTimeLink
  readonly secret: string
}

/**
 * Makes a link that can be used once until it expires.
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
  const expiresAt = now + lifetimes[lifetimeOf[purpose]]
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
