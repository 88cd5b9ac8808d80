import type { Seconds, Session } from './model.ts'

export interface SessionLifetimes {
  readonly sessionIdleSeconds: Seconds
  readonly sessionAbsoluteSeconds: Seconds
}

/** Whether a login still counts. */
export function isSessionLive(session: Session, now: Seconds): boolean {
  return now < session.idleExpiresAt && now < session.expiresAt
}

/** For how long a sign-in is enough for what cannot be undone, such as another password. */
export const recentSeconds: Seconds = 600

/** Whether somebody has just shown who they are, rather than found a browser somebody left open. */
export function isRecent(session: Session, now: Seconds): boolean {
  return now - session.authenticatedAt <= recentSeconds
}

/**
 * A login that begins now. `id` is the hash of a fresh secret: a sign-in never continues an old session's identifier.
 * @param place Where it happens, for the user to recognise it.
 */
export function beginSession(
  id: string,
  userId: string,
  methods: readonly string[],
  lifetimes: SessionLifetimes,
  now: Seconds,
  place: Pick<Session, 'browser' | 'from'> = {},
): Session {
  const expiresAt = now + lifetimes.sessionAbsoluteSeconds
  const idleExpiresAt = Math.min(now + lifetimes.sessionIdleSeconds, expiresAt)
  return { id, userId, authenticatedAt: now, methods, ...place, createdAt: now, idleExpiresAt, expiresAt }
}

/** The new idle end of a session in use, or undefined while moving it is not worth a write. */
export function extendedIdleEnd(
  session: Session,
  lifetimes: SessionLifetimes,
  now: Seconds,
): Seconds | undefined {
  const end = Math.min(now + lifetimes.sessionIdleSeconds, session.expiresAt)
  return end - session.idleExpiresAt > lifetimes.sessionIdleSeconds / 20 ? end : undefined
}

/** The same where the password was shown in an earlier session: a step-up makes none last longer. */
export function continueSession(
  session: Session,
  { authenticatedAt, expiresAt }: Pick<Session, 'authenticatedAt' | 'expiresAt'>,
): Session {
  const idleExpiresAt = Math.min(session.idleExpiresAt, expiresAt)
  return { ...session, authenticatedAt, expiresAt, idleExpiresAt }
}

/** Most users one browser keeps signed in. */
export const mostSessions = 5

/**
 * Who stays signed in in a browser beside a user who signs in: the others, the last ones first; and which sessions
 * end: the user's own before, and those there is no room for.
 */
export function selectSessions(
  omitUndefined: readonly Session[],
  userId: string,
): { readonly beside: readonly Session[]; readonly over: readonly Session[] } {
  const others = omitUndefined.filter((session) => session.userId !== userId)
  const beside = others.slice(0, mostSessions - 1)
  return { beside, over: omitUndefined.filter((session) => !beside.includes(session)) }
}
