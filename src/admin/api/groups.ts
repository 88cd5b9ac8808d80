import { Type } from '@sinclair/typebox'
import type { FastifyPluginAsync } from 'fastify'
import {
  canonicalGroupName,
  type Group,
  groupKind,
  groupNameKind,
  membershipKind,
} from '../../domain/group.ts'
import type { AppDeps } from '../../feature/deps.ts'
import { groupsOf } from '../../users/groups.ts'
import {
  addGroup,
  describeGroup,
  editGroup,
  joinGroup,
  leaveGroup,
  removeGroup,
  seenFrom,
  shownGroup,
} from '../operations/groups.ts'
import { pageOfAll } from '../operations/operation.ts'
import { requireFound } from '../operations/rules.ts'
import { GroupResource, listQuery, MemberResource, pageOf } from '../operations/schema.ts'
import { pageOfMembers } from './member-pages.ts'
import { addOperation, operationsOf } from './operation.ts'

const text = (description: string) => Type.Optional(Type.String({ description }))
/** `/groups`: list, create, read, change and delete; their members, and the groups of a user. */
export const groupResource: FastifyPluginAsync<AppDeps> = async (app, deps) => {
  const { store } = deps
  const admin = app.administration
  const { list, page, read } = operationsOf(app, deps, 'users')
  const findGroup = async (id: string) => requireFound(await store.find(groupKind, id), 'group')
  const requireUser = async (id: string) => requireFound(await store.find('user', id), 'user')

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
  read(
    '/groups/:group_id',
    { operationId: 'readGroup', delegates: true, summary: 'Read a group', response: GroupResource },
    async ({ param, request }) => {
      const group = await findGroup(param('group_id'))
      const reach = await admin.reachFor(request)
      return reach === undefined ? shownGroup(group) : { body: describeGroup(seenFrom(reach)(group)) }
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
  for (const operation of [addGroup, editGroup, removeGroup, joinGroup, leaveGroup])
    addOperation(app, deps, operation)
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
