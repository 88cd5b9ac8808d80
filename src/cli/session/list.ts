import type { Seconds, Session } from '../../domain/model.ts'
import { systemClock } from '../../system.ts'
import { isSessionLive } from '../../users/rules/session.ts'
import { type LocationFlags, withStore } from '../open.ts'
import { instant, printColumns, printJson } from '../print.ts'
import { usersFor } from '../users-for.ts'

interface ListFlags extends LocationFlags {
  readonly user?: string
  readonly json?: true
}

/** `lychgate session list`: who is signed in, in which browser, from where. */
export async function sessionList({ user, json, ...location }: ListFlags): Promise<void> {
  await withStore(location, async (store) => {
    const now = systemClock()
    const rows: (readonly [Session, string])[] = []
    for (const { id, username } of await usersFor(store, user)) {
      const live = (await store.listOf('session', id)).filter((session) => isSessionLive(session, now))
      rows.push(...live.map((session) => [session, username] as const))
    }
    if (json) printJson(rows.map(([session, username]) => describe(session, username)))
    else printColumns(rows.map(([session, username]) => lineOf(session, username)))
  })
}

/** The id is the hash of the cookie: it opens nothing. */
function describe(session: Session, username: string) {
  const { id, userId, browser, from } = session
  return {
    session: id,
    sub: userId,
    username,
    ...(browser !== undefined && { browser }),
    ...(from !== undefined && { from }),
    authenticated_at: session.authenticatedAt,
    amr: session.methods,
    created_at: session.createdAt,
    ends_at: endOf(session),
  }
}

function lineOf(session: Session, username: string): string[] {
  const { id, browser = '', from = '', methods, authenticatedAt } = session
  const ends = `ends ${instant(endOf(session))}`
  return [id, username, browser, from, methods.join('+'), `signed in ${instant(authenticatedAt)}`, ends]
}

function endOf({ idleExpiresAt, expiresAt }: Session): Seconds {
  return Math.min(idleExpiresAt, expiresAt)
}
