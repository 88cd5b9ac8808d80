import { canonicalLogin } from '../../domain/account.ts'
import { auditEvent } from '../../domain/audit.ts'
import type { Write } from '../../domain/decision.ts'
import type { Account, AuditEventName } from '../../domain/model.ts'
import type { Store } from '../../storage/store.ts'
import { CommandFailed } from '../failure.ts'
import { operatorOccasion } from '../operator.ts'

/** Whether a text has the form of a `sub`. */
export function isSub(text: string): boolean {
  return /^person_[\w-]{22}$/.test(text)
}

/**
 * The person with this user name, e-mail address or sub.
 * @throws {CommandFailed} when there is none.
 */
export async function findPerson(store: Store, text: string): Promise<Account> {
  if (isSub(text)) {
    const account = await store.find('account', text)
    if (account !== undefined) return account
  }
  const login = canonicalLogin(text)
  return requirePerson(login === undefined ? undefined : await store.find('accountByLogin', login))
}

/** @throws {CommandFailed} when there is nobody. */
export function requirePerson(account: Account | undefined): Account {
  if (account === undefined) throw new CommandFailed('nobody has this user name, e-mail address or sub')
  return account
}

/** The refusal of a name or an address that somebody else has. */
export function taken(): CommandFailed {
  return new CommandFailed('the user name or e-mail address is taken')
}

/** The write that tells of what an operator did to a person. */
export function told(
  name: AuditEventName,
  accountId: string,
  facts: Readonly<Record<string, string | number>> = {},
): Write {
  return auditEvent(name, operatorOccasion(), { accountId, ...facts })
}

/** Everything but the password's hash, standard claims under their own names. */
export function describePerson({ id, username, seeded, createdAt, passwordHash, lockedAt, claims }: Account) {
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

/** What is special about a person, in a word or two. */
export function stateOf({ seeded, lockedAt, passwordHash }: Account): string {
  const states = [
    lockedAt !== undefined && 'locked',
    passwordHash === undefined && 'no password',
    seeded && 'development',
  ].filter(Boolean)
  return states.length === 0 ? '' : `(${states.join(', ')})`
}
