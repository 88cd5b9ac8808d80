import { type AuditContext, auditEvent } from '../../domain/audit.ts'
import { accept, type Decision, endSessionsOf, insert, remove, update } from '../../domain/decision.ts'
import type { Hash, Passkey, Seconds, UserCredentials } from '../../domain/model.ts'
import { recordKind } from '../../domain/record.ts'
import type { WaysToSignIn } from './upstream-link.ts'

/** Passkeys, by credential id. */
export const passkeyKind = recordKind<Passkey>('passkey', {
  id: ({ id }) => id,
  userId: ({ userId }) => userId,
  madeAt: ({ createdAt }) => createdAt,
})

/** Limit of passkeys of one user: their ids are sent to the browser, so that it does not create one twice. */
export const mostPasskeys = 20

/** What became of a new passkey: it was added, there were too many, or its user may not add one any more. */
export type PasskeyAddition = 'added' | 'full' | 'gone'

/**
 * Adds a passkey to those of a user.
 * @param current Loaded in the same transaction: the limit holds, and the session that adds it still exists.
 */
export function addPasskey(
  current: UserCredentials | undefined,
  passkey: Passkey,
  sessionId: Hash,
  context: AuditContext,
): Decision<PasskeyAddition> {
  if (current === undefined || current.user.lockedAt !== undefined) return accept('gone')
  if (!current.sessions.some(({ id }) => id === sessionId)) return accept('gone')
  if (current.passkeys.length >= mostPasskeys) return accept('full')
  const { userId, name } = passkey
  return accept('added', insert(passkeyKind, passkey), auditEvent('passkey-added', context, { userId, name }))
}

/**
 * Removes a passkey, and ends every other session: one of them may have begun with it. One way to sign in stays.
 * @param stays The session of the user who removes it.
 */
export function removePasskey(
  current: WaysToSignIn | undefined,
  id: string,
  context: AuditContext,
  stays: Hash,
): Decision<'removed' | 'gone' | 'last'> {
  const passkey = current?.passkeys.find((own) => own.id === id)
  if (current === undefined || passkey === undefined) return accept('gone')
  const { user, passkeys, links } = current
  const left = passkeys.length - 1
  if (user.passwordHash === undefined && left === 0 && links.length === 0) return accept('last')
  const { userId, name } = passkey
  return accept(
    'removed',
    remove(passkeyKind, id),
    endSessionsOf(userId, context.at, stays),
    auditEvent('passkey-removed', context, { userId, name, left }),
  )
}

/** How a passkey fared: it counts, it was removed in the meantime, or it is a copy. */
export type PasskeyUse = 'used' | 'gone' | 'copied'

/**
 * Uses a passkey whose signature was verified. A counter that does not increase means that two devices have the same
 * key (Web Authentication §6.1.1): the sign-in is rejected and the audit log records it.
 */
export function usePasskey(
  current: Passkey | undefined,
  shown: { readonly counter: number; readonly backedUp: boolean; readonly from: string },
  now: Seconds,
): Decision<PasskeyUse> {
  if (current === undefined) return accept('gone')
  const { counter, backedUp, from } = shown
  // A device that does not count always shows 0.
  if (current.counter > 0 && counter <= current.counter) {
    const { userId, name } = current
    return accept('copied', auditEvent('passkey-copied', { by: 'user', at: now, from }, { userId, name }))
  }
  return accept('used', update(passkeyKind, { ...current, counter, backedUp, usedAt: now }))
}
