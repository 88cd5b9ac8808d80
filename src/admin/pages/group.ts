import type { FastifyInstance } from 'fastify'
import {
  canonicalGroupName,
  type Group,
  groupKind,
  groupNameKind,
  membershipKind,
  membershipPrefix,
} from '../../domain/group.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { displayName, type NamedUser } from '../../pages/describe.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { findByLogin } from '../../users/search.ts'
import { editGroup, joinGroup, leaveGroup, removeGroup } from '../operations/groups.ts'
import { actPage, requireFound } from './act-page.ts'
import { type AdminModel, type AdminPage, type AdminVisit, adminPath } from './admin-page.ts'
import { performAt, wasFound } from './call.ts'
import { assertVersion, versionField } from './version.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/group': AdminModel & {
      readonly group: Group
      /** Whether its members are administrators. */
      readonly isOfAdministrators: boolean
      readonly typed: Readonly<Record<'name' | 'description' | 'parent' | 'join', string>>
      readonly members: readonly (NamedUser & { readonly id: string; readonly url: string })[]
      readonly nextUrl?: string
      readonly url: string
      /** What the last form was about. */
      readonly about?: 'group' | 'member'
    }
  }
}

const onPage = 50

/** A group: its members, and its name, description and parent. */
export function groupPage(_app: FastifyInstance, deps: PageDeps): AdminPage {
  const { config, service, store } = deps
  const find = async (id: string) => requireFound(await store.find(groupKind, id), 'group')
  const idNamed = async (name: string) =>
    (await store.find(groupNameKind, canonicalGroupName(name.trim())))?.id

  const show = async (visit: AdminVisit, problem?: Text) => {
    const { param, query, form, render } = visit
    const group = await find(param('id'))
    const prefix = membershipPrefix(group.id)
    const from = single(query, 'after')?.slice(0, 100)
    const memberships = await store.listFrom(membershipKind, {
      prefix,
      ...(from !== undefined && { after: prefix + from }),
      limit: onPage + 1,
    })
    const users = await Promise.all(
      memberships.slice(0, onPage).map(({ userId }) => store.find('user', userId)),
    )
    const parent = group.parentId === undefined ? undefined : await store.find(groupKind, group.parentId)
    const url = `${service.prefix}${adminPath('groups')}/${group.id}`
    const isChange = single(form, 'name') !== undefined
    return render(
      'admin/group',
      {
        hidden: versionField(form, shownOf(group)),
        group,
        isOfAdministrators: canonicalGroupName(group.name) === canonicalGroupName(config.admin.group),
        typed: {
          name: single(form, 'name') ?? group.name,
          description: isChange ? (single(form, 'description') ?? '') : (group.description ?? ''),
          join: single(form, 'join') ?? '',
          parent: isChange ? (single(form, 'parent') ?? '') : (parent?.name ?? ''),
        },
        members: users
          .filter((user) => user !== undefined)
          .map((user) => ({
            ...displayName(user),
            id: user.id,
            url: `${service.prefix}${adminPath('users')}/${encodeURIComponent(user.id)}`,
          })),
        ...(memberships.length > onPage && { nextUrl: `${url}?after=${memberships.at(onPage - 1)?.userId}` }),
        url,
        ...(isChange ? { about: 'group' } : single(form, 'join') !== undefined && { about: 'member' }),
      },
      problem,
    )
  }

  const change = async (visit: AdminVisit, id: string, name: string) => {
    const { form } = visit
    const typedParent = single(form, 'parent')?.trim() ?? ''
    const parentId = typedParent === '' ? '' : await idNamed(typedParent)
    if (parentId === undefined) return show(visit, msg('admin.user.noGroup'))
    const body = { name, description: single(form, 'description') ?? '', parent_id: parentId }
    const assertSeen = (record: object) => assertVersion(form, shownOf(record as Group)) // what it changes
    await performAt(deps, visit, editGroup, { group_id: id }, body, assertSeen)
    return visit.done('saved', `/groups/${id}`)
  }

  const join = async (visit: AdminVisit, group: Group, typed: string) => {
    const { user } = await findByLogin(store, typed)
    if (user === undefined) return show(visit, msg('admin.group.noUser'))
    const joining = performAt(deps, visit, joinGroup, { group_id: group.id }, { sub: user.id })
    return visit.done((await wasFound(joining)) ? 'group-added' : 'gone', `/groups/${group.id}`)
  }

  return {
    path: '/groups/:id',
    section: 'groups',
    kept: {
      version: undefined,
      name: msg('admin.name'),
      description: msg('admin.group.description'),
      parent: msg('admin.group.parent'),
      join: msg('admin.group.join'),
    },
    show,
    submit: async (visit) => {
      const { form, param } = visit
      const group = await find(param('id'))
      const [name, joins, leaves] = ['name', 'join', 'leave'].map((field) => single(form, field))
      if (name !== undefined) return change(visit, group.id, name)
      if (joins !== undefined) return join(visit, group, joins)
      const isRemoved =
        leaves !== undefined &&
        (await wasFound(performAt(deps, visit, leaveGroup, { group_id: group.id, sub: leaves })))
      return visit.done(isRemoved ? 'group-removed' : 'gone', `/groups/${group.id}`)
    },
  }
}

/** What the form about the group shows of it. */
function shownOf({ name, description = '', parentId = '' }: Group): object {
  return { name, description, parentId }
}

/** Deletes a group; its members stay users. */
export function groupDeletePage(_app: FastifyInstance, deps: PageDeps): AdminPage {
  const { service, store } = deps
  return actPage<Group>({
    path: '/groups/:id/delete',
    section: 'groups',
    title: msg('admin.group.delete'),
    about: msg('admin.group.delete.about'),
    isTyped: true,
    find: async (id) => {
      const subject = requireFound(await store.find(groupKind, id), 'group')
      return { subject, name: subject.name, url: `${service.prefix}${adminPath('groups')}/${id}` }
    },
    perform: async ({ id }, visit) => {
      await performAt(deps, visit, removeGroup, { group_id: id })
      return visit.done('group-deleted', '/groups')
    },
  })
}
