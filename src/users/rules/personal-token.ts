import { hash } from 'node:crypto'
import { type AuditContext, auditEvent } from '../../domain/audit.ts'
import { check } from '../../domain/check.ts'
import { accept, type Decision, insert, put, remove, type Write } from '../../domain/decision.ts'
import type { Hash, Scope, Seconds, User } from '../../domain/model.ts'
import { recordKind } from '../../domain/record.ts'
import { hashSecret, mintSecret } from '../../domain/secret.ts'

/*
 * A personal token: with it an administrator's own script calls the admin API, as that administrator and within a scope,
 * until it expires. It is no access token: it was issued to no client, and no other endpoint accepts it.
 */

/** A personal token as it is stored. */
export interface PersonalToken {
  readonly id: Hash
  readonly userId: string
  /** What it is for, in lists. */
  readonly name: string
  readonly scope: Scope
  readonly createdAt: Seconds
  readonly expiresAt: Seconds
  /** When it was last used, to the hour; absent: never. */
  readonly usedAt?: Seconds
}

export const personalTokenKind = recordKind<PersonalToken>('personal-token', {
  id: ({ id }) => id,
  userId: ({ userId }) => userId,
  madeAt: ({ createdAt }) => createdAt,
  expiresAt: ({ expiresAt }) => expiresAt,
})

/** How many a user may have that have not expired. */
const mostPersonalTokens = 50

/** How long a token may be used at most, and how long if its owner does not say. */
export const personalTokenSeconds = { longest: 366 * 86_400, usual: 90 * 86_400 } as const

/** What the owner of a new token says. */
export interface NewPersonalToken extends Pick<PersonalToken, 'name' | 'scope'> {
  readonly seconds: Seconds
}

/** Returns the id of a token for operators: the beginning of its hash, by which it cannot be used. */
export function idOfPersonalToken({ id }: Pick<PersonalToken, 'id'>): string {
  return id.slice(0, 12)
}

/**
 * Makes a token. Its text is shown once, and stored as a hash.
 * @param fresh `secretBytes` random bytes.
 */
export function mintPersonalToken(
  { seconds, ...described }: NewPersonalToken,
  userId: string,
  fresh: Buffer,
  now: Seconds,
): { readonly token: string; readonly record: PersonalToken } {
  const token = mintSecret('personalToken', fresh)
  const id = hashSecret(token)
  // Operators name the token on a command line, where a dash begins an option.
  if (id.startsWith('-'))
    return mintPersonalToken({ seconds, ...described }, userId, hash('sha256', fresh, 'buffer'), now)
  return { token, record: { ...described, id, userId, createdAt: now, expiresAt: now + seconds } }
}

/**
 * Stores a new token of a user.
 * @param live How many they have.
 * @throws {OAuthError} `conflict`
 */
export function addPersonalToken(
  user: Pick<User, 'lockedAt'>,
  record: PersonalToken,
  live: number,
  context: AuditContext,
): Decision<PersonalToken> {
  check(user.lockedAt === undefined, personalTokenRule, 'conflict', 'the user is locked', { status: 409 })
  check(
    live < mostPersonalTokens,
    personalTokenRule,
    'conflict',
    `a user has at most ${mostPersonalTokens} personal tokens; revoke one first`,
    { status: 409 },
  )
  const { userId, scope, expiresAt } = record
  const facts = { userId, token: idOfPersonalToken(record), scope: scope.join(' '), expires: expiresAt }
  return accept(record, insert(personalTokenKind, record), auditEvent('personal-token-made', context, facts))
}

/** Returns the writes that revoke a token. */
export function revokePersonalToken(record: PersonalToken, context: AuditContext): readonly Write[] {
  const { id, userId } = record
  const event = auditEvent('personal-token-revoked', context, { userId, token: idOfPersonalToken(record) })
  return [remove(personalTokenKind, id), event]
}

export const personalTokenRule = 'lychgate-personal-token'

/** Returns a token that is valid now, or why it is not. */
export function verifyPersonalToken(
  record: PersonalToken | undefined,
  owner: Pick<User, 'lockedAt'> | undefined,
  now: Seconds,
): PersonalToken | { readonly rejected: string } {
  if (record === undefined)
    return { rejected: 'no personal token reads like this: it was revoked, or ended with its owner' }
  if (now >= record.expiresAt) return { rejected: 'the personal token has expired' }
  const isIn = owner !== undefined && owner.lockedAt === undefined
  return isIn ? record : { rejected: 'the owner of the personal token is locked' }
}

const secondsPerHour = 3600

/** Whether the use of a token has to be recorded: its first one, and then one an hour. */
export function isPersonalUseDue({ usedAt }: PersonalToken, now: Seconds): boolean {
  return usedAt === undefined || now - usedAt >= secondsPerHour
}

/** Records the use of a token, unless it was revoked in the meantime. */
export function notePersonalUse(record: PersonalToken | undefined, now: Seconds): Decision<undefined> {
  if (record === undefined || !isPersonalUseDue(record, now)) return accept(undefined)
  return accept(undefined, put(personalTokenKind, { ...record, usedAt: now }))
}

/** Describes a token to an operator. */
export function describePersonalToken(record: PersonalToken) {
  const { userId, name, scope, createdAt, expiresAt, usedAt } = record
  return {
    token_id: idOfPersonalToken(record),
    sub: userId,
    name,
    scope: scope.join(' '),
    created_at: createdAt,
    expires_at: expiresAt,
    ...(usedAt !== undefined && { last_used_at: usedAt }),
  }
}
