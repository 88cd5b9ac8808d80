import type { GrantBasis } from '../domain/decision.ts'
import type { Client, Consent, Session } from '../domain/model.ts'
import { Overtaken, type Store } from '../storage/store.ts'

/** What a grant of this session is inserted on: a client that remembers consent depends on the consent, too. */
export function basisOf(session: Session, client: Client, consent: Consent | undefined): GrantBasis {
  return { sessionId: session.id, ...(client.consent === 'remember' && { consent }) }
}

/**
 * Runs a write that is based on a session. False when the session, the user's access or the consent ended before it:
 * then nothing was written, and the session of a user who is locked or removed is deleted.
 */
export async function whileSignedIn(
  store: Pick<Store, 'find' | 'write'>,
  session: Session,
  write: () => Promise<unknown>,
): Promise<boolean> {
  try {
    await write()
    return true
  } catch (error) {
    if (!(error instanceof Overtaken)) throw error
    const user = await store.find('user', session.userId)
    if (user === undefined || user.lockedAt !== undefined)
      await store.write({ op: 'deleteSession', sessionId: session.id })
    return false
  }
}
