import type { Seconds, Session } from '../../domain/model.ts'

export interface SessionLifetimes {
  readonly sessionIdleSeconds: Seconds
  readonly sessionAbsoluteSeconds: Seconds
}

/** When a session ends by itself. */
export type SessionEnds = Pick<Session, 'idleExpiresAt' | 'expiresAt'>

/** Whether a session is still valid. */
export function isSessionLive(session: SessionEnds, now: Seconds): boolean {
  return now < session.idleExpiresAt && now < session.expiresAt
}

/** For how long after a sign-in a user may do what cannot be undone, such as change the password. */
export const recentSeconds: Seconds = 600

/** Whether the user authenticated recently, so that a browser left open does not suffice. */
export function isRecent(session: Session, now: Seconds): boolean {
  return now - session.authenticatedAt <= recentSeconds
}

/**
 * Creates a session that begins now. `id` is the hash of a fresh secret: a sign-in never continues an old session's
 * identifier.
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
  session: SessionEnds,
  lifetimes: SessionLifetimes,
  now: Seconds,
): Seconds | undefined {
  const end = Math.min(now + lifetimes.sessionIdleSeconds, session.expiresAt)
  return end - session.idleExpiresAt > lifetimes.sessionIdleSeconds / 20 ? end : undefined
}

/** Returns the session of a step-up, which lasts no longer than the one it continues. */
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
 * Selects the sessions of a browser when a user signs in: `beside` are those of other users, newest first, which stay;
 * `over` are the user's previous ones and those beyond the limit, which end.
 */
export function selectSessions(
  signedIn: readonly Session[],
  userId: string,
): { readonly beside: readonly Session[]; readonly over: readonly Session[] } {
  const others = signedIn.filter((session) => session.userId !== userId)
  const beside = others.slice(0, mostSessions - 1)
  return { beside, over: signedIn.filter((session) => !beside.includes(session)) }
}
