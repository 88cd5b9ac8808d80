import { canonicalGroupName, ensureGroup, groupKind, groupNameKind, membershipKind } from '../domain/group.ts'
import type { Store } from '../storage/store.ts'
import { type Clock, systemRandom } from '../system/system.ts'
import { addToGroup, changeGroups, removeFromGroup } from '../users/groups.ts'

type Groups = Pick<Store, 'find' | 'listOf' | 'listKind' | 'transact'>

/** Puts a development user into the groups with these names, and no other; it creates groups that do not exist. */
export async function seedGroups(
  store: Groups,
  userId: string,
  names: readonly string[] | undefined,
  clock: Clock,
): Promise<void> {
  if (names === undefined) return
  const context = { by: 'server', at: clock() } as const
  const groupIds: string[] = []
  for (const name of names) {
    const group = await requireGroup(store, name, clock)
    await addToGroup(store, group, userId, context)
    groupIds.push(group.id)
  }
  for (const { groupId } of await store.listOf(membershipKind, userId)) {
    const group = groupIds.includes(groupId) ? undefined : await store.find(groupKind, groupId)
    if (group !== undefined) await removeFromGroup(store, group, userId, context)
  }
}

async function requireGroup(store: Groups, name: string, clock: Clock) {
  const named = await store.find(groupNameKind, canonicalGroupName(name))
  const group = named && (await store.find(groupKind, named.id))
  const context = { by: 'server', at: clock() } as const
  // Another process that starts at the same time may have created it since.
  return group ?? changeGroups(store, (groups) => ensureGroup(groups, name, systemRandom(16), context))
}
