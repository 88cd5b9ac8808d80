import type { Config } from '../config/schema.ts'
import type { AuditContext } from '../domain/audit.ts'
import {
  type Condition,
  type Decision,
  put,
  type Reading,
  type RecordReads,
  type Write,
  withWrites,
} from '../domain/decision.ts'
import { OAuthError } from '../domain/errors.ts'
import {
  addMember,
  canonicalGroupName,
  ensureGroup,
  type Group,
  groupKind,
  groupNameKind,
  membershipKind,
  membershipPrefix,
  mostGroups,
} from '../domain/group.ts'
import type { Seconds } from '../domain/model.ts'
import { recordKind } from '../domain/record.ts'
import type { Store } from '../storage/store.ts'
import { changeGroups } from './groups.ts'
import { passkeyKind } from './rules/passkey.ts'

declare module '../domain/errors.ts' {
  interface FeatureErrors {
    conflict: 409
  }
}

/** Whether a change needs a sign-in with two factors. */
export function needsSecondFactor({ admin, mode }: Config): boolean {
  return (admin.secondFactor ?? (mode === 'dev' ? 'off' : 'required')) === 'required'
}

/** The rule that a change violates which leaves no administrator. */
export const lastAdministrator = 'lychgate-last-administrator'

/** Written by every change that can end the last administrator, so that such changes wait for each other. */
const administrationKind = recordKind<{ readonly at: Seconds }>('administration', { id: () => 'changed' })

/** Whether the groups of a user make them an administrator. */
export function isAdministrator(groups: readonly Pick<Group, 'name'>[], administrators: string): boolean {
  const wanted = canonicalGroupName(administrators)
  return groups.some(({ name }) => canonicalGroupName(name) === wanted)
}

/**
 * Adds to a decision that an administrator is left after it if there was one before. Both are read in its transaction:
 * of two administrators who remove each other at the same time, one stays.
 * @param administrators The name of the group of administrators; undefined: none has to be left.
 */
export function keepAdministrator<T>(
  decision: Decision<T>,
  administrators: string | undefined,
  at: Seconds,
): Decision<T> {
  if (administrators === undefined) return decision
  const why = 'no administrator would be left; make another user one first'
  let wasThere = false
  const before: Condition = {
    rule: lastAdministrator,
    why,
    *holds(read) {
      wasThere = yield* hasAdministrator(administrators, read)
      return true
    },
  }
  const after: Condition = {
    rule: lastAdministrator,
    why,
    *holds(read) {
      return !wasThere || (yield* hasAdministrator(administrators, read))
    },
    error: () => new OAuthError('conflict', why, { rule: lastAdministrator, status: 409 }),
  }
  const writes: readonly Write[] = [
    put(administrationKind, { at }),
    { op: 'require', condition: before },
    ...decision.writes,
    { op: 'require', condition: after },
  ]
  return { ...decision, writes }
}

/** Whether a user is in the group, or in one below it, who is not locked and has something to sign in with. */
export function* hasAdministrator(administrators: string, read: RecordReads): Reading<boolean> {
  const named = yield* read.find(groupNameKind, canonicalGroupName(administrators))
  if (named === undefined) return false
  if (yield* hasUser(named.id, read)) return true
  // Rare: as a rule the group itself has one.
  const groups = yield* read.listKind(groupKind, { madeUntil: Number.MAX_SAFE_INTEGER, limit: mostGroups })
  for (const id of idsBelow(named.id, groups)) if (yield* hasUser(id, read)) return true
  return false
}

const membersAtOnce = 50

function* hasUser(groupId: string, read: RecordReads): Reading<boolean> {
  const prefix = membershipPrefix(groupId)
  let after = prefix
  for (;;) {
    const members = yield* read.listFrom(membershipKind, { prefix, after, limit: membersAtOnce })
    for (const { userId } of members) {
      const user = yield* read.find('user', userId)
      if (user === undefined || user.lockedAt !== undefined) continue
      if (user.passwordHash !== undefined || (yield* read.listOf(passkeyKind, userId)).length > 0) return true
    }
    if (members.length < membersAtOnce) return false
    after = prefix + members.at(-1)?.userId
  }
}

/** Returns a store that makes a change only if this holds in its transaction, whatever was checked before. */
export function storeRequiring(
  store: Pick<Store, 'transact' | 'write'>,
  requirement: () => Write,
): Pick<Store, 'transact' | 'write'> {
  return {
    transact: (kind, key, decide) =>
      store.transact(kind, key, (found) => {
        const decision = decide(found)
        return { ...decision, writes: [requirement(), ...decision.writes] }
      }),
    write: (...writes) => store.write(requirement(), ...writes),
  }
}

/** Returns the ids of the groups below one. */
function idsBelow(groupId: string, groups: readonly Group[]): readonly string[] {
  const groupIds = new Set([groupId])
  // A group that is added is visited later in the same loop.
  for (const id of groupIds) for (const one of groups) if (one.parentId === id) groupIds.add(one.id)
  groupIds.delete(groupId)
  return [...groupIds]
}

/**
 * Writes something together with the membership of a user in the group of administrators, which is created if there is
 * none.
 * @param fresh 16 random bytes.
 */
export async function addAdministrator(
  store: Parameters<typeof changeGroups>[0],
  administrators: string,
  userId: string,
  fresh: Buffer,
  context: AuditContext,
  ...writes: readonly Write[]
): Promise<void> {
  await changeGroups(store, (groups) => {
    const decision = ensureGroup(groups, administrators, fresh, context)
    if ('rejection' in decision) return decision
    return withWrites(decision, ...writes, ...addMember(decision.result, userId, undefined, context))
  })
}
