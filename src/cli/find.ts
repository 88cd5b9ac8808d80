import { auditEvent } from '../domain/audit.ts'
import { type Decision, type Write, withWrites } from '../domain/decision.ts'
import { canonicalGroupName, type Group, groupKind, groupNameKind } from '../domain/group.ts'
import type { AuditEventName, Client, User } from '../domain/model.ts'
import type { Store } from '../storage/store.ts'
import { subPattern } from '../users/rules/user.ts'
import { findByLogin } from '../users/search.ts'
import { CommandFailed } from './failure.ts'
import { operatorContext } from './operator.ts'

/** Returns whether a text has the form of a `sub`. */
export function isSub(text: string): boolean {
  return new RegExp(subPattern).test(text)
}

/**
 * Finds the user with this user name, email address or sub.
 * @throws {CommandFailed} when there is none.
 */
export async function findUser(store: Store, text: string): Promise<User> {
  if (isSub(text)) {
    const user = await store.find('user', text)
    if (user !== undefined) return user
  }
  return requireUser((await findByLogin(store, text)).user)
}

/** Returns the user that `text` names, or all users: sessions are stored by user. */
export async function findUsers(store: Store, text: string | undefined): Promise<readonly User[]> {
  return text === undefined ? store.list('user') : [await findUser(store, text)]
}

/** @throws {CommandFailed} if there is no such user. */
export function requireUser(user: User | undefined): User {
  if (user === undefined) throw new CommandFailed('no user has this user name, email address or sub')
  return user
}

/** @throws {CommandFailed} if there is no such client. */
export function requireClient(client: Client | undefined): Client {
  if (client === undefined) throw new CommandFailed('no client has this id')
  return client
}

/** Changes a user that still exists, together with these writes. */
export function changeUser(
  store: Store,
  userId: string,
  change: (user: User) => Decision<User>,
  ...writes: readonly Write[]
): Promise<User> {
  return store.transact('user', userId, (user) => withWrites(change(requireUser(user)), ...writes))
}

/** Returns the audit event of what an operator did to a user. */
export function userEvent(
  name: AuditEventName,
  userId: string,
  facts: Readonly<Record<string, string | number>> = {},
): Write {
  return auditEvent(name, operatorContext(), { userId, ...facts })
}

/** Returns whether a text has the form of the id of a group. */
export function isGroupId(text: string): boolean {
  return /^group_[\w-]{22}$/.test(text)
}

/**
 * Finds the group with this name or id.
 * @throws {CommandFailed} when there is none.
 */
export async function findGroup(store: Store, text: string): Promise<Group> {
  const found = isGroupId(text) ? await store.find(groupKind, text) : undefined
  if (found !== undefined) return found
  const named = await store.find(groupNameKind, canonicalGroupName(text.trim()))
  return requireGroup(named && (await store.find(groupKind, named.id)))
}

/** @throws {CommandFailed} if there is no such group. */
export function requireGroup(group: Group | undefined): Group {
  if (group === undefined) throw noGroup()
  return group
}

export function noGroup(): CommandFailed {
  return new CommandFailed('no group has this name or id')
}
