import { type AuditContext, auditEvent } from '../../domain/audit.ts'
import {
  accept,
  type Decision,
  endSessionsOf,
  insert,
  put,
  type RecordReads,
  remove,
  type Write,
} from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { Hash, Passkey, Seconds, Session, SignInElsewhere, User } from '../../domain/model.ts'
import { recordKind } from '../../domain/record.ts'
import { hashSecret } from '../../domain/secret.ts'

/**
 * A user of another OpenID Provider who is a user here. Its key is their issuer and `sub` (OpenID Connect Core §5.7),
 * never an email address, which another user may have there tomorrow.
 */
export interface UpstreamLink {
  readonly id: Hash
  readonly userId: string
  readonly issuer: string
  readonly sub: string
  readonly createdAt: Seconds
}

export const upstreamLinkKind = recordKind<UpstreamLink>('upstreamLink', {
  id: ({ id }) => id,
  userId: ({ userId }) => userId,
  madeAt: ({ createdAt }) => createdAt,
})

/** Returns the key of the link of a user of an issuer. */
export function upstreamLinkId(issuer: string, sub: string): Hash {
  return hashSecret(JSON.stringify([issuer, sub]))
}

/** Returns the writes that link a user; inserting fails if the user there is linked already. */
export function insertUpstreamLink(
  link: Omit<UpstreamLink, 'id' | 'createdAt'>,
  upstream: string,
  context: AuditContext,
): readonly Write[] {
  const { userId, issuer, sub } = link
  const record = { ...link, id: upstreamLinkId(issuer, sub), createdAt: context.at }
  return [insert(upstreamLinkKind, record), auditEvent('upstream-linked', context, { userId, upstream })]
}

/** What is known of a session that began at an upstream, by `signInElsewhereId`, for as long as it lasts. */
export type NotedSignIn = Pick<SignInElsewhere, 'upstream' | 'authenticatedAt' | 'expiresAt'> & {
  readonly userId: string
  /** Absent: the sign-in was noted by a version that did not write it down. */
  readonly issuer?: string
}

export const signInElsewhereKind = recordKind<NotedSignIn>('signInElsewhere', {
  id: (noted) => signInElsewhereId(noted),
  userId: ({ userId }) => userId,
  madeAt: ({ authenticatedAt }) => authenticatedAt,
  expiresAt: ({ expiresAt }) => expiresAt,
})

/** A session that gains a factor gets another id; its user and the time of the sign-in stay. */
export function signInElsewhereId({
  userId,
  authenticatedAt,
}: Pick<Session, 'userId' | 'authenticatedAt'>): string {
  return `${userId} ${authenticatedAt}`
}

/** Returns the writes of a session that begins at an upstream; they fail unless the link still leads to its user. */
export function noteSignInElsewhere({
  userId,
  linkId,
  upstream,
  issuer,
  authenticatedAt,
  expiresAt,
}: SignInElsewhere & { readonly userId: string }): readonly Write[] {
  const condition = {
    rule: 'lychgate-upstream-link',
    why: 'the link to the upstream was removed',
    *holds(read: RecordReads) {
      return (yield* read.find(upstreamLinkKind, linkId))?.userId === userId
    },
    error: () => new OAuthError('access_denied', condition.why, { rule: condition.rule }),
  }
  return [
    { op: 'require', condition },
    put(signInElsewhereKind, { userId, upstream, issuer, authenticatedAt, expiresAt }),
  ]
}

/** A user with all that signs them in without a second step. */
export interface WaysToSignIn {
  readonly user: User
  readonly passkeys: readonly Passkey[]
  readonly links: readonly UpstreamLink[]
}

/** Whether the user was invited and is not here yet: nothing signs them in. */
export function isAwaited({ user, passkeys, links }: WaysToSignIn): boolean {
  return user.passwordHash === undefined && passkeys.length === 0 && links.length === 0
}

/**
 * Removes a link, and ends every other session: one of them may have begun with it. One way to sign in stays.
 * @param stays The session of the user who removes it.
 */
export function removeUpstreamLink(
  current: WaysToSignIn | undefined,
  { id, upstream }: { readonly id: Hash; readonly upstream: string },
  context: AuditContext,
  stays: Hash,
): Decision<'removed' | 'gone' | 'last'> {
  if (!current?.links.some((link) => link.id === id)) return accept('gone')
  const { user, passkeys, links } = current
  if (user.passwordHash === undefined && passkeys.length === 0 && links.length === 1) return accept('last')
  return accept(
    'removed',
    remove(upstreamLinkKind, id),
    endSessionsOf(user.id, context.at, stays),
    auditEvent('upstream-unlinked', context, { userId: user.id, upstream }),
  )
}
