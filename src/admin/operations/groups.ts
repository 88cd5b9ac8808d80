import { type Static, Type } from '@sinclair/typebox'
import { check } from '../../domain/check.ts'
import { accept, type Decision, withWrites } from '../../domain/decision.ts'
import {
  addMember,
  bytesOfGroupId,
  changeGroup,
  createGroup,
  deleteGroup,
  type Group,
  groupIdPattern,
  groupKind,
  membershipKind,
  membershipPrefix,
} from '../../domain/group.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { isAdministrator, keepAdministrator } from '../../users/administrators.ts'
import type { Reach } from '../../users/delegation.ts'
import { changeGroups, describeGroup, lineOf, removeFromGroup } from '../../users/groups.ts'
import { type Call, findGroup, type Operation } from './operation.ts'
import { describeCaller, requireFound, tagOfGroup } from './rules.ts'
import { GroupResource, JoinedGroup, nothing } from './schema.ts'

const text = (description: string) => Type.Optional(Type.String({ description }))
const closed = { additionalProperties: false } as const
const members = {
  description: text('What it is for; an empty text removes it.'),
  parent_id: text(
    'The group above it: its members count as members of that one, too. An empty text removes it.',
  ),
  administrators_id: text(
    'The group whose members administer its members, and those of the groups below it. An empty text removes it.',
  ),
}
const NewGroup = Type.Object(
  {
    name: Type.String({ description: 'What clients see.' }),
    group_id: Type.Optional(
      Type.String({ pattern: groupIdPattern, description: 'The id it has elsewhere; absent: a new one.' }),
    ),
    ...members,
  },
  { title: 'NewGroup', ...closed },
)
const ChangedGroup = Type.Object(
  { name: text('What clients see; the group keeps its id.'), ...members },
  { title: 'ChangedGroup', minProperties: 1, ...closed },
)
const NewMember = Type.Object({ sub: Type.String() }, { title: 'NewMember', ...closed })

const area = 'users'

export const addGroup: Operation<Static<typeof NewGroup>> = {
  operationId: 'createGroup',
  area,
  kind: 'create',
  url: '/groups',
  delegates: false,
  summary: 'Create a group',
  response: GroupResource,
  body: NewGroup,
  async perform(call, keep) {
    const { body, context, deps, address } = call
    const fresh = body.group_id === undefined ? deps.random(16) : bytesOfGroupId(body.group_id)
    const details = { name: body.name, ...detailsOf(body) }
    const respond = (group: Group) => ({
      status: 201,
      body: describeGroup(group),
      headers: { location: `${address}/${group.id}`, etag: tagOfGroup(group) },
    })
    const group = await changeTree(call, (groups) => {
      const decision = createGroup(groups, details, fresh, context)
      return 'rejection' in decision ? decision : withWrites(decision, ...keep(respond(decision.result)))
    })
    return respond(group)
  },
}

export const editGroup: Operation<Static<typeof ChangedGroup>> = {
  operationId: 'changeGroup',
  area,
  kind: 'change',
  url: '/groups/:group_id',
  delegates: false,
  summary: 'Change a group; what is not named stays, and so do its members',
  response: GroupResource,
  body: ChangedGroup,
  async perform(call) {
    const wanted = omitUndefined({ name: call.body.name, ...detailsOf(call.body) })
    return shownGroup(
      await changeTree(call, (groups) => changeGroup(groups, seenGroup(call, groups), wanted, call.context)),
    )
  },
}

export const removeGroup: Operation = {
  operationId: 'deleteGroup',
  area,
  kind: 'delete',
  url: '/groups/:group_id',
  delegates: false,
  summary: 'Delete a group; its members stay users',
  response: nothing,
  async perform(call) {
    await changeTree(call, (groups) => deleteGroup(groups, seenGroup(call, groups), call.context))
    return undefined
  },
}

export const joinGroup: Operation<Static<typeof NewMember>> = {
  operationId: 'addMember',
  area,
  kind: 'act',
  url: '/groups/:group_id/members',
  delegates: true,
  summary: 'Add a user to a group; one who is in it stays',
  response: JoinedGroup,
  body: NewMember,
  async perform(call, keep) {
    const { deps, context } = call
    const group = await findGroup(call)
    const { id: userId } = requireFound(await deps.store.find('user', call.body.sub), 'user')
    const membership = await deps.store.find(membershipKind, membershipPrefix(group.id) + userId)
    const reach = await call.reach()
    const description = describeGroup(reach === undefined ? group : seenFrom(reach)(group))
    const body = { ...description, added: membership === undefined }
    const result = { status: 200, body, headers: {}, userId }
    return call.store.transact(groupKind, group.id, (current) =>
      accept(
        result,
        // A user that the caller cannot see is none, also for a caller who knows the sub.
        ...(call.isDelegate ? call.requireMay({ userId }) : []),
        ...addMember(requireFound(current, 'group'), userId, membership, context),
        ...keep(result),
      ),
    )
  },
}

export const leaveGroup: Operation = {
  operationId: 'removeMember',
  area,
  kind: 'end',
  url: '/groups/:group_id/members/:sub',
  delegates: true,
  summary: 'Remove a user from a group',
  response: nothing,
  async perform(call) {
    const { deps, param, context, store, administrators } = call
    const group = await findGroup(call)
    const tree = { ...deps.store, transact: store.transact }
    const wasIn = await removeFromGroup(tree, group, param('sub'), context, (decision) =>
      keepAdministrator(decision, administrators, context.at),
    )
    requireFound(wasIn || undefined, 'member')
    return undefined
  },
}

/** Changes the tree if the caller may change the groups both before and after it. */
async function changeTree(
  { caller, context, deps, store, administrators }: Call<unknown>,
  decide: (groups: readonly Group[]) => Decision<Group>,
): Promise<Group> {
  /** Neither a client without a user nor a personal token makes administrators. */
  const assertOutside = (line: readonly Group[]) =>
    check(
      caller === undefined || caller.kind === 'user' || !isAdministrator(line, deps.config.admin.group),
      'lychgate-admin-over-administrators',
      'access_denied',
      `${caller && describeCaller(caller)} must not change the group of administrators, nor a group below it`,
    )
  return changeGroups({ ...deps.store, transact: store.transact }, (groups) => {
    const decision = decide(groups)
    if ('rejection' in decision) return decision
    const { result } = decision
    assertOutside(lineOf(groups, groups.find(({ id }) => id === result.id) ?? result))
    assertOutside(lineOf([...groups.filter(({ id }) => id !== result.id), result], result))
    return keepAdministrator(decision, administrators, context.at)
  })
}

/** Returns the group that the path names, if it is as the caller saw it. */
function seenGroup({ param, assertSeen }: Call<unknown>, groups: readonly Group[]): Group {
  const group = requireFound(
    groups.find(({ id }) => id === param('group_id')),
    'group',
  )
  assertSeen(tagOfGroup(group), group)
  return group
}

function detailsOf({
  description,
  parent_id: parentId,
  administrators_id: administratorsId,
}: Partial<Record<keyof typeof members, string>>) {
  return { description, parentId, administratorsId }
}

/** The response with a group, and its entity tag. */
export function shownGroup(group: Group) {
  return { body: describeGroup(group), tag: tagOfGroup(group) }
}

/** Leaves out of a group the groups that the caller cannot see. */
export function seenFrom({ groups }: Reach): (group: Group) => Group {
  const ids = new Set(groups.map(({ id }) => id))
  return ({ parentId, administratorsId, ...group }) => ({
    ...group,
    ...(parentId !== undefined && ids.has(parentId) && { parentId }),
    ...(administratorsId !== undefined && ids.has(administratorsId) && { administratorsId }),
  })
}
