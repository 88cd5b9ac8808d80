import type { AuditContext } from '../domain/audit.ts'
import { accept, type RecordReads, type Write } from '../domain/decision.ts'
import { OAuthError } from '../domain/errors.ts'
import {
  addMember,
  canonicalGroupName,
  groupKind,
  groupNameKind,
  type Membership,
  membershipKind,
  membershipPrefix,
  removeMember,
} from '../domain/group.ts'
import type { Store } from '../storage/store.ts'

/** The groups that an upstream gives to a user. */
export interface MappedGroups {
  readonly userId: string
  /** The upstream, by its issuer. */
  readonly issuer: string
  /** The names of groups of this server; one that there is not gives nothing. */
  readonly names: readonly string[]
}

/**
 * Adds a user to the groups that an upstream gives them, and takes those away that it gave before. A membership that an
 * operator gave is neither changed nor taken.
 * @throws {OAuthError} `temporarily_unavailable` if a membership is changed at the same time.
 */
export async function mapGroups(
  store: Pick<Store, 'find' | 'listOf' | 'transact'>,
  { userId, issuer, names }: MappedGroups,
  context: AuditContext,
): Promise<void> {
  const entries = await Promise.all(names.map((name) => store.find(groupNameKind, canonicalGroupName(name))))
  const mapped = new Set(entries.flatMap((entry) => entry?.id ?? []))
  const memberships = await store.listOf(membershipKind, userId)
  const before = new Map(memberships.map((membership) => [membership.groupId, membership]))
  const former = memberships.filter(({ upstream }) => upstream === issuer).map(({ groupId }) => groupId)
  for (const groupId of new Set([...mapped, ...former])) {
    const membership = before.get(groupId)
    const isMapped = mapped.has(groupId)
    if (isMapped === (membership !== undefined)) continue
    await store.transact(groupKind, groupId, (group) => {
      if (group === undefined) return accept(undefined)
      const writes =
        membership === undefined
          ? addMember(group, userId, membership, context, issuer)
          : removeMember(group, membership, context)
      return accept(undefined, unchanged(membershipPrefix(groupId) + userId, membership), ...writes)
    })
  }
}

/** The membership is read before the transaction: an operator may have given it in the meantime. */
function unchanged(key: string, membership: Membership | undefined): Write {
  const condition = {
    rule: 'lychgate-upstream-groups',
    why: 'the membership is changed at the same time; try again',
    *holds(read: RecordReads) {
      const current = yield* read.find(membershipKind, key)
      return (
        (current === undefined) === (membership === undefined) && current?.upstream === membership?.upstream
      )
    },
    error: () => new OAuthError('temporarily_unavailable', condition.why, { rule: condition.rule }),
  }
  return { op: 'require', condition }
}
