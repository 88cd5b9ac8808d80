import { Type } from '@sinclair/typebox'
import type { FastifyPluginAsync } from 'fastify'
import { check } from '../../domain/check.ts'
import { accept, type Decision, withWrites } from '../../domain/decision.ts'
import {
  addMember,
  bytesOfGroupId,
  canonicalGroupName,
  changeGroup,
  createGroup,
  deleteGroup,
  type Group,
  groupIdPattern,
  groupKind,
  groupNameKind,
  membershipKind,
  membershipPrefix,
} from '../../domain/group.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import type { AppDeps } from '../../feature/deps.ts'
import { isAdministrator, keepAdministrator } from '../../users/administrators.ts'
import type { Reach } from '../../users/delegation.ts'
import { changeGroups, groupsOf, lineOf, removeFromGroup } from '../../users/groups.ts'
import { pageOfAll } from '../operations/operation.ts'
import { type Caller, requireFound, tagOfGroup } from '../operations/rules.ts'
import { GroupResource, listQuery, MemberResource, pageOf } from '../operations/schema.ts'
import { storedKey } from './administration.ts'
import { pageOfMembers } from './member-pages.ts'
import { type HttpCall, operationsOf } from './operation.ts'

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

/** `/groups`: list, create, read, change and delete; their members, and the groups of a user. */
export const groupResource: FastifyPluginAsync<AppDeps> = async (app, deps) => {
  const { config, store, random } = deps
  const admin = app.administration
  const { group: administrators } = config.admin
  const { list, page, read, create, change, delete: remove, act, end } = operationsOf(app, deps, 'users')
  const findGroup = async (id: string) => requireFound(await store.find(groupKind, id), 'group')
  const requireUser = async (id: string) => requireFound(await store.find('user', id), 'user')

  /** A client without a user must not make administrators. */
  const assertOutside = (caller: Caller, line: readonly Group[]) =>
    check(
      caller.kind === 'user' || !isAdministrator(line, administrators),
      'lychgate-admin-over-administrators',
      'access_denied',
      'a client without a user must not change the group of administrators, nor a group below it',
    )
  /** Changes the tree, if the caller may change the groups as they were and as they are then. */
  const changeTree = (
    { caller, store: writing }: HttpCall<unknown>,
    decide: (groups: readonly Group[]) => Decision<Group>,
    at: number,
  ) =>
    changeGroups({ ...store, transact: writing.transact }, (groups) => {
      const decision = decide(groups)
      if ('rejection' in decision) return decision
      const { result } = decision
      assertOutside(caller, lineOf(groups, groups.find(({ id }) => id === result.id) ?? result))
      assertOutside(caller, lineOf([...groups.filter(({ id }) => id !== result.id), result], result))
      return keepAdministrator(decision, administrators, at)
    })

  list(
    '/groups',
    {
      operationId: 'listGroups',
      delegates: true,
      summary: 'List groups, in the order of their ids',
      response: pageOf(GroupResource, 'Groups'),
      querystring: listQuery({ name: text('Only the group with this name.') }),
    },
    async ({ size, after }, call) => {
      const name = call.query('name')
      const reach = await admin.reachFor(call.request)
      if (reach !== undefined) {
        const isNamed = (group: Group) =>
          name === undefined || canonicalGroupName(group.name) === canonicalGroupName(name.trim())
        return pageOfAll(reach.groups.filter(isNamed), keyOf, { size, after }).map(seenFrom(reach))
      }
      if (name === undefined) return store.listFrom(groupKind, { prefix: 'group_', after, limit: size })
      const named = await store.find(groupNameKind, canonicalGroupName(name.trim()))
      const group = named && (await store.find(groupKind, named.id))
      return group === undefined ? [] : [group]
    },
    ({ id }) => id,
    describeGroup,
  )
  create(
    '/groups',
    { operationId: 'createGroup', summary: 'Create a group', response: GroupResource, body: NewGroup },
    async (call, keep) => {
      const { body, context, request } = call
      const fresh = body.group_id === undefined ? random(16) : bytesOfGroupId(body.group_id)
      const wanted = {
        name: body.name,
        description: body.description,
        parentId: body.parent_id,
        administratorsId: body.administrators_id,
      }
      const respond = (group: Group) => ({
        status: 201,
        body: describeGroup(group),
        headers: { location: `${request.url}/${group.id}`, etag: tagOfGroup(group) },
      })
      const create = (groups: readonly Group[]) => {
        const decision = createGroup(groups, wanted, fresh, context)
        return 'rejection' in decision ? decision : withWrites(decision, ...keep(respond(decision.result)))
      }
      return respond(await changeTree(call, create, context.at))
    },
  )
  read(
    '/groups/:group_id',
    { operationId: 'readGroup', delegates: true, summary: 'Read a group', response: GroupResource },
    async ({ param, request }) => {
      const group = await findGroup(param('group_id'))
      const reach = await admin.reachFor(request)
      return reach === undefined ? shown(group) : { body: describeGroup(seenFrom(reach)(group)) }
    },
  )
  change(
    '/groups/:group_id',
    {
      operationId: 'changeGroup',
      summary: 'Change a group; what is not named stays, and so do its members',
      response: GroupResource,
      body: ChangedGroup,
    },
    async (call) => {
      const { param, body, context, assertMatches } = call
      const { name, description, parent_id: parentId, administrators_id: administratorsId } = body
      const wanted = omitUndefined({ name, description, parentId, administratorsId })
      const decide = (groups: readonly Group[]) => {
        const known = requireFound(
          groups.find(({ id }) => id === param('group_id')),
          'group',
        )
        assertMatches(tagOfGroup(known))
        return changeGroup(groups, known, wanted, context)
      }
      return shown(await changeTree(call, decide, context.at))
    },
  )
  remove(
    '/groups/:group_id',
    { operationId: 'deleteGroup', summary: 'Delete a group; its members stay users' },
    async (call) => {
      const { param, context, assertMatches } = call
      const decide = (groups: readonly Group[]) => {
        const known = requireFound(
          groups.find(({ id }) => id === param('group_id')),
          'group',
        )
        assertMatches(tagOfGroup(known))
        return deleteGroup(groups, known, context)
      }
      await changeTree(call, decide, context.at)
    },
  )

  page(
    '/groups/:group_id/members',
    {
      operationId: 'listMembers',
      delegates: true,
      summary: 'List the users who were added to a group, in the order of their sub',
      response: pageOf(MemberResource, 'Members'),
      querystring: listQuery({}),
    },
    async (call) => {
      const group = await findGroup(call.param('group_id'))
      const reach = await admin.reachFor(call.request)
      return pageOfMembers(call, store, [group], async ({ userId, addedAt }) => {
        if (reach?.includes(await store.listOf(membershipKind, userId)) === false) return undefined
        const { username = '' } = (await store.find('user', userId)) ?? {}
        return { sub: userId, username, added_at: addedAt }
      })
    },
  )
  act(
    '/groups/:group_id/members',
    {
      operationId: 'addMember',
      delegates: true,
      summary: 'Add a user to a group; one who is in it stays',
      response: GroupResource,
      body: NewMember,
    },
    async (call, keep) => {
      const { param, body, context, isDelegate } = call
      const sub = storedKey(body.sub)
      const group = await findGroup(param('group_id'))
      const { id: userId } = await requireUser(sub)
      const known = await store.find(membershipKind, membershipPrefix(group.id) + userId)
      const reach = await admin.reachFor(call.request)
      const description = describeGroup(reach === undefined ? group : seenFrom(reach)(group))
      const kept = { status: 200, body: description, headers: {}, userId }
      return call.store.transact(groupKind, group.id, (found) =>
        accept(
          kept,
          // A user that the caller cannot see is none, also for a caller who knows the sub.
          ...(isDelegate ? [call.requireMay({ userId })] : []),
          ...addMember(requireFound(found, 'group'), userId, known, context),
          ...keep(kept),
        ),
      )
    },
  )
  end(
    '/groups/:group_id/members/:sub',
    { operationId: 'removeMember', delegates: true, summary: 'Remove a user from a group' },
    async ({ param, context, store: writing }) => {
      const group = await findGroup(param('group_id'))
      const wasIn = await removeFromGroup(
        { ...store, transact: writing.transact },
        group,
        param('sub'),
        context,
        (decision) => keepAdministrator(decision, administrators, context.at),
      )
      requireFound(wasIn || undefined, 'member')
    },
  )
  list(
    '/users/:sub/groups',
    {
      operationId: 'listGroupsOfUser',
      delegates: true,
      summary: 'List the groups of a user and the groups above them, in the order of their ids',
      response: pageOf(GroupResource, 'GroupsOfUser'),
      querystring: listQuery({}),
    },
    async (page, { param, request }) => {
      const { id } = await requireUser(param('sub'))
      const groups = await groupsOf(store, id)
      const reach = await admin.reachFor(request)
      if (reach === undefined) return pageOfAll(groups, keyOf, page)
      const seen = groups.filter((group) => reach.groups.some((one) => one.id === group.id))
      return pageOfAll(seen, keyOf, page).map(seenFrom(reach))
    },
    keyOf,
    describeGroup,
  )
}

function keyOf({ id }: Group): string {
  return id
}

function shown(group: Group) {
  return { body: describeGroup(group), tag: tagOfGroup(group) }
}

/** Leaves out of a group the groups that the caller cannot see. */
function seenFrom({ groups }: Reach): (group: Group) => Group {
  const ids = new Set(groups.map(({ id }) => id))
  return ({ parentId, administratorsId, ...group }) => ({
    ...group,
    ...(parentId !== undefined && ids.has(parentId) && { parentId }),
    ...(administratorsId !== undefined && ids.has(administratorsId) && { administratorsId }),
  })
}

function describeGroup({ id, name, description, parentId, administratorsId, createdAt }: Group) {
  return {
    group_id: id,
    name,
    ...omitUndefined({ description, parent_id: parentId, administrators_id: administratorsId }),
    created_at: createdAt,
  }
}
