import { canonicalGroupName, type Group, groupKind, groupNameKind } from '../domain/group.ts'
import type { User } from '../domain/model.ts'
import type { Store } from '../storage/store.ts'
import type { ClaimFault } from '../users/rules/editable-claims.ts'
import { subPattern } from '../users/rules/user.ts'
import { findByLogin } from '../users/search.ts'
import { CommandFailed } from './failure.ts'

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

/** @throws {CommandFailed} if there is no such user. */
export function requireUser<T>(user: T | undefined): T {
  if (user === undefined) throw new CommandFailed('no user has this user name, email address or sub')
  return user
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
export function requireGroup<T>(group: T | undefined): T {
  if (group === undefined) throw new CommandFailed('no group has this name or id')
  return group
}

/** What the text of a claim must be. */
export const demands: Readonly<Record<ClaimFault, string>> = {
  tooLong: 'is too long',
  invisible: 'contains invisible characters',
  url: 'must be an http or https URL',
  birthdate: 'must be YYYY-MM-DD, or a year alone',
  zoneinfo: 'must be a time zone, such as Europe/Berlin',
  locale: 'must be a language tag, such as de-CH',
}

/** Returns the error for a user name or an address that is taken. */
export function taken(): CommandFailed {
  return new CommandFailed('the user name or email address is taken')
}
