import { connectionsOf, consentKind } from '../../domain/connections.ts'
import { isGrantAlive } from '../../domain/grant.ts'
import type { User } from '../../domain/model.ts'
import type { Store } from '../../storage/store.ts'
import { systemClock } from '../../system.ts'
import { passkeyKind } from '../../users/rules/passkey.ts'
import { secondFactorKind } from '../../users/rules/second-factor.ts'
import { isSessionLive } from '../../users/rules/session.ts'
import { rowKeys, throttleKind } from '../../users/rules/sign-in-throttle.ts'
import { type LocationFlags, withStore } from '../open.ts'
import { instant, printJson, printMembers } from '../print.ts'
import { describeUser, findUser } from './find-user.ts'

/** `lychgate user show`: a user, how they can sign in, and what is open for them now. */
export async function userShow(
  login: string,
  flags: LocationFlags & { readonly json?: true },
): Promise<void> {
  await withStore(flags, async (store) => {
    const user = await findUser(store, login)
    const facts = await factsOf(user, store)
    if (flags.json) return printJson({ ...describeUser(user), ...facts })
    const { id, username, claims, createdAt, updatedAt, lockedAt } = user
    const { preferred_username: _, updated_at: __, ...shown } = claims
    printMembers({
      sub: id,
      username,
      ...Object.fromEntries(Object.entries(shown).map(([name, value]) => [name, readable(value)])),
      created: instant(createdAt),
      changed: instant(updatedAt),
      ...(lockedAt !== undefined && { locked: `since ${instant(lockedAt)}` }),
      password: user.passwordHash === undefined ? 'none yet' : 'set',
      'second factor': facts.second_factor ? 'one-time codes' : 'none',
      passkeys: facts.passkeys,
      ...(facts.failures_in_a_row > 0 && { 'failures in a row': facts.failures_in_a_row }),
      sessions: facts.sessions,
      clients: facts.clients,
      grants: facts.grants,
    })
  })
}

async function factsOf({ id }: User, store: Store) {
  const now = systemClock()
  const [factor, passkeys, sessions, grants, consents, ...rows] = await Promise.all([
    store.find(secondFactorKind, id),
    store.listOf(passkeyKind, id),
    store.listOf('session', id),
    store.listOf('grant', id),
    store.listOf(consentKind, id),
    ...Object.values(rowKeys(id)).map((key) => store.find(throttleKind, key)),
  ])
  return {
    second_factor: factor?.confirmedAt !== undefined,
    passkeys: passkeys.length,
    /** The most of passwords or codes, in known browsers or others. */
    failures_in_a_row: Math.max(...rows.map((row) => row?.failures ?? 0)),
    sessions: sessions.filter((session) => isSessionLive(session, now)).length,
    clients: connectionsOf(grants, consents, now).length,
    grants: grants.filter((grant) => isGrantAlive(grant, now)).length,
  }
}

function readable(value: User['claims'][string]): string {
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
