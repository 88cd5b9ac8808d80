import { Type } from '@sinclair/typebox'
import type { FastifyPluginAsync } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { check } from '../domain/check.ts'
import { accept, type Decision, withWrites } from '../domain/decision.ts'
import {
  addMember,
  canonicalGroupName,
  changeGroup,
  createGroup,
  deleteGroup,
  type Group,
  groupKind,
  groupNameKind,
  type Membership,
  membershipKind,
  membershipPrefix,
} from '../domain/group.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import { isAdministrator, keepAdministrator } from '../users/administrators.ts'
import { changeGroups, groupsOf, lineOf, removeFromGroup } from '../users/groups.ts'
import { operationsOf, pageOfAll } from './operation.ts'
import { type Caller, requireFound, tagOfGroup } from './rules.ts'
import { GroupResource, listQuery, MemberResource, pageOf } from './schema.ts'

const text = (description: string) => Type.Optional(Type.String({ description }))
const closed = { additionalProperties: false } as const
const members = {
  description: text('What it is for; an empty text removes it.'),
  parent_id: text(
    'The group above it: its members count as members of that one, too. An empty text removes it.',
  ),
}
const NewGroup = Type.Object(
  { name: Type.String({ description: 'What clients see.' }), ...members },
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
  const { group: administrators } = config.admin
  const { list, read, create, change, delete: remove, act, end } = operationsOf(app, deps, 'users')
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
  const changeTree = (caller: Caller, decide: (groups: readonly Group[]) => Decision<Group>, at: number) =>
    changeGroups(store, (groups) => {
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
      summary: 'List groups, in the order of their ids',
      response: pageOf(GroupResource, 'Groups'),
      querystring: listQuery({ name: text('Only the group with this name.') }),
    },
    async ({ size, after }, call) => {
      const name = call.query('name')
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
    async ({ body, caller, context, request }, keep) => {
      const fresh = random(16)
      const wanted = { name: body.name, description: body.description, parentId: body.parent_id }
      const respond = (group: Group) => ({
        status: 201,
        body: describeGroup(group),
        headers: { location: `${request.url}/${group.id}`, etag: tagOfGroup(group) },
      })
      const create = (groups: readonly Group[]) => {
        const decision = createGroup(groups, wanted, fresh, context)
        return 'rejection' in decision ? decision : withWrites(decision, ...keep(respond(decision.result)))
      }
      return respond(await changeTree(caller, create, context.at))
    },
  )
  read(
    '/groups/:group_id',
    { operationId: 'readGroup', summary: 'Read a group', response: GroupResource },
    async ({ param }) => shown(await findGroup(param('group_id'))),
  )
  change(
    '/groups/:group_id',
    {
      operationId: 'changeGroup',
      summary: 'Change a group; what is not named stays, and so do its members',
      response: GroupResource,
      body: ChangedGroup,
    },
    async ({ param, body, caller, context, assertMatches }) => {
      const { name, description, parent_id: parentId } = body
      const wanted = omitUndefined({ name, description, parentId })
      const decide = (groups: readonly Group[]) => {
        const known = requireFound(
          groups.find(({ id }) => id === param('group_id')),
          'group',
        )
        assertMatches(tagOfGroup(known))
        return changeGroup(groups, known, wanted, context)
      }
      return shown(await changeTree(caller, decide, context.at))
    },
  )
  remove(
    '/groups/:group_id',
    { operationId: 'deleteGroup', summary: 'Delete a group; its members stay users' },
    async ({ param, caller, context, assertMatches }) =>
      changeTree(
        caller,
        (groups) => {
          const known = requireFound(
            groups.find(({ id }) => id === param('group_id')),
            'group',
          )
          assertMatches(tagOfGroup(known))
          return deleteGroup(groups, known, context)
        },
        context.at,
      ),
  )

  list(
    '/groups/:group_id/members',
    {
      operationId: 'listMembers',
      summary: 'List the users who were added to a group, in the order of their sub',
      response: pageOf(MemberResource, 'Members'),
      querystring: listQuery({}),
    },
    async ({ size, after }, { param }) => {
      const prefix = membershipPrefix((await findGroup(param('group_id'))).id)
      const from = after === undefined ? {} : { after: prefix + after }
      return store.listFrom(membershipKind, { prefix, ...from, limit: size })
    },
    ({ userId }) => userId,
    async ({ userId, addedAt }: Membership) => ({
      sub: userId,
      username: (await store.find('user', userId))?.username ?? '',
      added_at: addedAt,
    }),
  )
  act(
    '/groups/:group_id/members',
    {
      operationId: 'addMember',
      summary: 'Add a user to a group; one who is in it stays',
      response: GroupResource,
      body: NewMember,
    },
    async ({ param, body, caller, context }, keep) => {
      const group = await findGroup(param('group_id'))
      assertOutside(caller, await lineFrom(group))
      const { id: userId } = await requireUser(/^[\x21-\x7e]+$/.test(body.sub) ? body.sub : '')
      const known = await store.find(membershipKind, membershipPrefix(group.id) + userId)
      const kept = { status: 200, body: describeGroup(group), headers: {}, userId }
      return store.transact(groupKind, group.id, (found) =>
        accept(kept, ...addMember(requireFound(found, 'group'), userId, known, context), ...keep(kept)),
      )
    },
  )
  end(
    '/groups/:group_id/members/:sub',
    { operationId: 'removeMember', summary: 'Remove a user from a group' },
    async ({ param, caller, context }) => {
      const group = await findGroup(param('group_id'))
      assertOutside(caller, await lineFrom(group))
      const wasIn = await removeFromGroup(store, group, param('sub'), context, (decision) =>
        keepAdministrator(decision, administrators, context.at),
      )
      requireFound(wasIn || undefined, 'member')
    },
  )
  list(
    '/users/:sub/groups',
    {
      operationId: 'listGroupsOfUser',
      summary: 'List the groups of a user and the groups above them, in the order of their ids',
      response: pageOf(GroupResource, 'GroupsOfUser'),
      querystring: listQuery({}),
    },
    async ({ size, after }, { param }) => {
      const { id } = await requireUser(param('sub'))
      return pageOfAll(await groupsOf(store, id), keyOf, { size, after })
    },
    keyOf,
    describeGroup,
  )

  /** Returns a group and the groups above it, each by its key. */
  async function lineFrom(group: Group): Promise<readonly Group[]> {
    const line = [group]
    for (let next: Group | undefined = group; next?.parentId !== undefined && line.length < 100; ) {
      next = await store.find(groupKind, next.parentId)
      if (next !== undefined) line.push(next)
    }
    return line
  }
}

function keyOf({ id }: Group): string {
  return id
}

function shown(group: Group) {
  return { body: describeGroup(group), tag: tagOfGroup(group) }
}

function describeGroup({ id, name, description, parentId, createdAt }: Group) {
  return {
    group_id: id,
    name,
    ...omitUndefined({ description, parent_id: parentId }),
    created_at: createdAt,
  }
}
