import { Type } from '@sinclair/typebox'
import { canonicalGroupName, type Group, groupKind, groupNameKind } from '../../domain/group.ts'
import { describeGroup, groupsOf } from '../../users/groups.ts'
import { seenFrom, shownGroup } from './groups.ts'
import { isSeen, pageOfMembers } from './member-pages.ts'
import { findGroup, findUser, listed, type Operation, pageOfAll } from './operation.ts'
import { GroupResource, listQuery, MemberResource, pageOf } from './schema.ts'

const keyOf = ({ id }: Group) => id

export const listGroups: Operation = {
  operationId: 'listGroups',
  area: 'users',
  kind: 'list',
  url: '/groups',
  delegates: true,
  summary: 'List groups, in the order of their ids',
  response: pageOf(GroupResource, 'Groups'),
  querystring: listQuery({
    name: Type.Optional(Type.String({ description: 'Only the group with this name.' })),
  }),
  async perform(call) {
    const { store } = call.deps
    const name = call.query('name')
    const reach = await call.reach()
    const isNamed = (group: Group) =>
      name === undefined || canonicalGroupName(group.name) === canonicalGroupName(name.trim())
    return listed(
      call,
      async ({ size, after }) => {
        if (reach !== undefined)
          return pageOfAll(reach.groups.filter(isNamed), keyOf, { size, after }).map(seenFrom(reach))
        if (name === undefined) return store.listFrom(groupKind, { prefix: 'group_', after, limit: size })
        const named = await store.find(groupNameKind, canonicalGroupName(name.trim()))
        const group = named && (await store.find(groupKind, named.id))
        return group === undefined ? [] : [group]
      },
      keyOf,
      describeGroup,
    )
  },
}

export const readGroup: Operation = {
  operationId: 'readGroup',
  area: 'users',
  kind: 'read',
  url: '/groups/:group_id',
  delegates: true,
  summary: 'Read a group',
  response: GroupResource,
  async perform(call) {
    const group = await findGroup(call)
    const reach = await call.reach()
    return reach === undefined ? shownGroup(group) : { body: describeGroup(seenFrom(reach)(group)) }
  },
}

export const listMembers: Operation = {
  operationId: 'listMembers',
  area: 'users',
  kind: 'list',
  url: '/groups/:group_id/members',
  delegates: true,
  summary: 'List the users who were added to a group, in the order of their sub',
  response: pageOf(MemberResource, 'Members'),
  querystring: listQuery({}),
  async perform(call) {
    const { store } = call.deps
    const group = await findGroup(call)
    const seen = await call.reach()
    const reach = async () => seen
    return pageOfMembers(call, store, [group], async ({ userId, addedAt }) => {
      if (!(await isSeen({ ...call, reach }, userId))) return undefined
      const { username = '' } = (await store.find('user', userId)) ?? {}
      return { sub: userId, username, added_at: addedAt }
    })
  },
}

export const listGroupsOfUser: Operation = {
  operationId: 'listGroupsOfUser',
  area: 'users',
  kind: 'list',
  url: '/users/:sub/groups',
  delegates: true,
  summary: 'List the groups of a user and the groups above them, in the order of their ids',
  response: pageOf(GroupResource, 'GroupsOfUser'),
  querystring: listQuery({}),
  async perform(call) {
    const groups = await groupsOf(call.deps.store, (await findUser(call)).id)
    const reach = await call.reach()
    const seen =
      reach === undefined
        ? groups
        : groups.filter((group) => reach.groups.some((one) => one.id === group.id)).map(seenFrom(reach))
    return listed(call, async (page) => pageOfAll(seen, keyOf, page), keyOf, describeGroup)
  },
}
