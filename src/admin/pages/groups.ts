import type { FastifyInstance } from 'fastify'
import { canonicalGroupName, groupKind, groupNameKind } from '../../domain/group.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { addGroup } from '../operations/groups.ts'
import { type AdminModel, type AdminPage, type AdminVisit, adminPath } from './admin-page.ts'
import { performAt } from './call.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/groups': AdminModel & {
      readonly groups: readonly ListedGroup[]
      /** What their names begin with. */
      readonly search: string
      readonly nextUrl?: string
      readonly typed: Readonly<Record<'name' | 'description', string>>
      /** The group of administrators. */
      readonly administrators: string
    }
  }
}

interface ListedGroup {
  readonly name: string
  readonly description?: string
  readonly url: string
}

const onPage = 50

/** The groups in the order of their names, and a form for another one. */
export function groupsPage(_app: FastifyInstance, deps: PageDeps): AdminPage {
  const { config, service, store } = deps
  const url = service.prefix + adminPath('groups')
  const show = async ({ query, form, render }: AdminVisit, problem?: Text) => {
    const search = (single(query, 'search') ?? '').slice(0, 200)
    const after = single(query, 'after')?.slice(0, 200)
    const prefix = canonicalGroupName(search.trim())
    const names = await store.listFrom(groupNameKind, { prefix, after, limit: onPage + 1 })
    const shown = names.slice(0, onPage)
    const groups = await Promise.all(shown.map(({ id }) => store.find(groupKind, id)))
    const next = new URLSearchParams({
      ...(search && { search }),
      after: canonicalGroupName(shown.at(-1)?.name ?? ''),
    })
    return render(
      'admin/groups',
      {
        groups: groups
          .filter((group) => group !== undefined)
          .map(({ id, name, description }) => ({
            name,
            ...(description !== undefined && { description }),
            url: `${url}/${id}`,
          })),
        search,
        ...(names.length > onPage && { nextUrl: `${url}?${next}` }),
        typed: { name: single(form, 'name') ?? '', description: single(form, 'description') ?? '' },
        administrators: config.admin.group,
      },
      problem,
    )
  }
  return {
    path: '/groups',
    section: 'groups',
    kept: { name: msg('admin.name'), description: msg('admin.group.description') },
    show,
    submit: async (visit) => {
      const { form } = visit
      const [name = '', description = ''] = [single(form, 'name'), single(form, 'description')]
      const { group_id: id } = await performAt(deps, visit, addGroup, {}, { name, description })
      return visit.done('group-created', `/groups/${id}`)
    },
  }
}
