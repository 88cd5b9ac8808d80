import { type AuditContext, auditEvent } from '../../domain/audit.ts'
import { accept, type Decision, withWrites } from '../../domain/decision.ts'
import type { User } from '../../domain/model.ts'
import { deleteLinksOf } from './one-time-link.ts'
import { changeProfile, type ProfileChange } from './user.ts'

/**
 * Changes a profile and records the members that differ, by their names on the wire: the same through every page,
 * command, file and operation. A profile that stays as it was is not written. Links that were sent to an old address
 * stop working.
 * @throws {OAuthError} `invalid_request` as `changeProfile`.
 */
export function editProfile(user: User, change: ProfileChange, context: AuditContext): Decision<User> {
  const decision = changeProfile(user, change, context.at)
  if ('rejection' in decision) return decision
  const changed = changedMembers(user, decision.result).join(' ')
  if (changed === '') return accept(user)
  const links = user.email === decision.result.email ? [] : deleteLinksOf(user.id)
  return withWrites(decision, ...links, auditEvent('user-changed', context, { userId: user.id, changed }))
}

/** Claims that follow from the rest of the user. */
const derived: readonly string[] = ['updated_at', 'preferred_username']

function changedMembers(before: User, after: User): readonly string[] {
  const isMoved = before.email !== after.email
  const claims = differences(before.claims, after.claims).filter(
    // A new address is not verified; this is not listed as another change.
    (name) =>
      !derived.includes(name) && !(name === 'email_verified' && isMoved && after.claims[name] !== true),
  )
  const attributes = differences(before.attributes, after.attributes)
  const isFollowing = isMoved && after.username === after.email
  const isRenamed = before.username !== after.username && !isFollowing
  return [...(isRenamed ? ['username'] : []), ...claims, ...attributes.map((name) => `attributes.${name}`)]
}

function differences(
  before: Readonly<Record<string, unknown>> = {},
  after: Readonly<Record<string, unknown>> = {},
): readonly string[] {
  return Object.keys({ ...before, ...after }).filter((name) => before[name] !== after[name])
}
