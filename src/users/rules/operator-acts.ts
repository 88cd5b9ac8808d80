import { type AuditContext, auditEvent } from '../../domain/audit.ts'
import { type ConnectedClient, endConnections } from '../../domain/connections.ts'
import { accept, type Decision, endSessionsOf, remove, removeAll } from '../../domain/decision.ts'
import type { Session, User, UserCredentials } from '../../domain/model.ts'
import { passkeyKind } from './passkey.ts'
import { personalTokenKind } from './personal-token.ts'
import { secondFactorKind } from './second-factor.ts'
import { isSessionLive } from './session.ts'

/*
 * What an operator ends for a user, who may sign in again. Removing a factor ends every session: any of them may have
 * begun with it.
 */

/** Removes the one-time codes of a user: the password alone is enough to sign in then. */
export function removeCodes({ id: userId }: User, context: AuditContext): Decision<undefined> {
  const event = auditEvent('second-factor-removed', context, { userId })
  return accept(undefined, remove(secondFactorKind, userId), endSessionsOf(userId, context.at), event)
}

/** Removes every passkey of a user; one without a password needs a link to sign in again. Returns how many. */
export function removePasskeys(
  { user: { id: userId }, passkeys: { length } }: Pick<UserCredentials, 'user' | 'passkeys'>,
  context: AuditContext,
): Decision<number> {
  const event = auditEvent('passkeys-removed', context, { userId, passkeys: length })
  return accept(length, removeAll(passkeyKind, userId), endSessionsOf(userId, context.at), event)
}

/** Ends every session of a user, and returns how many of them were live. Without a live one nothing is recorded. */
export function endSessions(
  { id: userId }: Pick<User, 'id'>,
  sessions: readonly Session[],
  context: AuditContext,
): Decision<number> {
  const { length } = sessions.filter((session) => isSessionLive(session, context.at))
  const event = auditEvent('session-ended', context, { userId, which: 'all' })
  return accept(length, endSessionsOf(userId, context.at), ...(length > 0 ? [event] : []))
}

/** More connections than any user has: how many are read to revoke all of them. */
export const everyConnection = 100_000

/** Ends every session of a user, and revokes everything they granted to clients, and their personal tokens. */
export function endSessionsAndConnections(
  user: Pick<User, 'id'>,
  sessions: readonly Session[],
  connections: readonly ConnectedClient[],
  context: AuditContext,
): Decision<undefined> {
  const { writes } = endSessions(user, sessions, context)
  const userId = user.id
  const ends = endConnections(connections, { userId, ...context })
  return accept(undefined, ...writes, ...ends, removeAll(personalTokenKind, userId))
}
