import type { Config } from '../config/schema.ts'
import { endSession, type Write } from '../domain/decision.ts'
import type { Grant, Seconds, Session } from '../domain/model.ts'
import { Overtaken, type Store } from '../storage/store.ts'

/** Counted pairs of user and client; forgotten together when there are more. */
const mostPairs = 10_000

/**
 * Limits the grants of one user at one client. Every so many new ones, a tenth of the limit, the write returned here
 * deletes the oldest; the others cost no look at the database. Exchanged ones have a limit of their own: a sign-in outlives
 * them. The count is this process's own, so a client can have a
 * tenth more than the limit for each process and restart.
 */
export function grantLimit({ limits }: Pick<Config, 'limits'>): (grant: Grant) => readonly Write[] {
  const stay = limits.grantsPerUserAndClient
  const turn = Math.ceil(stay / 10)
  const counts = new Map<string, number>()
  return ({ userId, clientId, exchangedFrom }) => {
    if (stay === 0 || userId === undefined) return []
    const isExchanged = exchangedFrom !== undefined
    const pair = `${userId} ${clientId} ${isExchanged}`
    const count = (counts.get(pair) ?? 0) + 1
    if (counts.size >= mostPairs) counts.clear()
    counts.set(pair, count % turn)
    return count % turn === 0 ? [{ op: 'deleteOldestGrants', userId, clientId, stay, isExchanged }] : []
  }
}

/**
 * Runs a write that is based on a session. False when the session, the user's access or the consent ended before it:
 * then nothing was written, and the session of a user who is locked or removed is deleted.
 */
export async function whileSignedIn(
  store: Pick<Store, 'find' | 'write'>,
  session: Session,
  now: Seconds,
  write: () => Promise<unknown>,
): Promise<boolean> {
  try {
    await write()
    return true
  } catch (error) {
    if (!(error instanceof Overtaken)) throw error
    await endSessionOfLockedUser(store, session, now)
    return false
  }
}

/** Ends a session if its user is locked or removed. */
export async function endSessionOfLockedUser(
  store: Pick<Store, 'find' | 'write'>,
  session: Session,
  now: Seconds,
): Promise<void> {
  const user = await store.find('user', session.userId)
  if (user === undefined || user.lockedAt !== undefined) await store.write(endSession(session.id, now))
}

/**
 * What a browser is called in a list of sign-ins, `Firefox, Linux`; undefined when it does not say. For showing only:
 * anybody can send any `User-Agent`, RFC 9110 §10.1.5.
 */
export async function browserName(userAgent: string | undefined): Promise<string | undefined> {
  if (userAgent === undefined || userAgent.length > longestUserAgent) return undefined
  const { default: Bowser } = await import('bowser')
  const { browser, os } = Bowser.parse(userAgent)
  const names = [browser.name, os.name].filter((name) => name !== undefined && name !== '')
  return names.length === 0 ? undefined : names.join(', ')
}

/** No browser's is longer; the parser need not see more. */
const longestUserAgent = 512
