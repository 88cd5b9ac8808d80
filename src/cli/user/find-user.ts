import { auditEvent } from '../../domain/audit.ts'
import type { Write } from '../../domain/decision.ts'
import type { AuditEventName, User } from '../../domain/model.ts'
import type { Store } from '../../storage/store.ts'
import { canonicalLogin } from '../../users/rules/user.ts'
import { CommandFailed } from '../failure.ts'
import { operatorContext } from '../operator.ts'

/** Whether a text has the form of a `sub`. */
export function isSub(text: string): boolean {
  return /^person_[\w-]{22}$/.test(text)
}

/**
 * The user with this user name, email address or sub.
 * @throws {CommandFailed} when there is none.
 */
export async function findUser(store: Store, text: string): Promise<User> {
  if (isSub(text)) {
    const user = await store.find('user', text)
    if (user !== undefined) return user
  }
  const login = canonicalLogin(text)
  return requireUser(login === undefined ? undefined : await store.find('userByLogin', login))
}

/** @throws {CommandFailed} if there is no such user. */
export function requireUser(user: User | undefined): User {
  if (user === undefined) throw new CommandFailed('no user has this user name, email address or sub')
  return user
}

/** The error for a user name or an address that is taken. */
export function taken(): CommandFailed {
  return new CommandFailed('the user name or e-mail address is taken')
}

/** The write that tells of what an operator did to a user. */
export function auditWrite(
  name: AuditEventName,
  userId: string,
  facts: Readonly<Record<string, string | number>> = {},
): Write {
  return auditEvent(name, operatorContext(), { userId, ...facts })
}

/** Everything but the password's hash, standard claims under their own names. */
export function describeUser({ id, username, seeded, createdAt, passwordHash, lockedAt, claims }: User) {
  return {
    sub: id,
    username,
    seeded,
    created_at: createdAt,
    has_password: passwordHash !== undefined,
    ...(lockedAt !== undefined && { locked_at: lockedAt }),
    claims,
  }
}

/** What is special about a user, in a word or two. */
export function stateOf({ seeded, lockedAt, passwordHash }: User): string {
  const states = [
    lockedAt !== undefined && 'locked',
    passwordHash === undefined && 'no password',
    seeded && 'development',
  ].filter(Boolean)
  return states.length === 0 ? '' : `(${states.join(', ')})`
}
