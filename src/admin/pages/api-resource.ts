import type { FastifyInstance } from 'fastify'
import type { StoredResource } from '../../domain/api-definitions.ts'
import { every, type Parameters, single } from '../../domain/parameters.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { readDefinitions } from '../operations/definitions.ts'
import { addResource, changeResource, removeResource } from '../operations/resources.ts'
import { actPage, requireFound } from './act-page.ts'
import { type AdminModel, type AdminPage, type AdminVisit, adminPath } from './admin-page.ts'
import { performAt } from './call.ts'
import { assertVersion, versionField } from './version.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/api-resource': AdminModel & {
      /** Absent: it is added. */
      readonly identifier?: string
      readonly typed: {
        readonly identifier: string
        readonly name: string
        readonly scopes: readonly string[]
        readonly tokenFormat: 'opaque' | 'jwt'
      }
      /** The scopes in force. */
      readonly offered: readonly string[]
      readonly deleteUrl?: string
      readonly backUrl: string
    }
  }
}

const kept = {
  version: undefined,
  identifier: msg('admin.apis.resource.identifier'),
  name: msg('admin.apis.resource.name'),
  scope: msg('admin.apis.scopes'),
  format: undefined,
}

/** Pages that add, change and delete a stored resource. */
export function apiResourcePages(_app: FastifyInstance, deps: PageDeps): readonly AdminPage[] {
  const { service, store } = deps
  const backUrl = service.prefix + adminPath('apis')
  const find = async (identifier: string): Promise<StoredResource> => {
    const { resources } = await readDefinitions(store)
    return requireFound(
      resources.find((one) => one.identifier === identifier),
      'stored resource',
    )
  }
  const show = ({ form, render }: AdminVisit, resource?: StoredResource) => {
    const isTyped = single(form, 'name') !== undefined
    const format = single(form, 'format') ?? resource?.tokenFormat
    return render('admin/api-resource', {
      ...(resource && {
        identifier: resource.identifier,
        hidden: versionField(form, resource),
        deleteUrl: `${backUrl}/resources/${encodeURIComponent(resource.identifier)}/delete`,
      }),
      typed: {
        identifier: single(form, 'identifier') ?? '',
        name: single(form, 'name') ?? resource?.name ?? '',
        scopes: isTyped ? every(form, 'scope') : (resource?.scopes ?? []),
        tokenFormat: format === 'jwt' ? 'jwt' : 'opaque',
      },
      offered: service.catalogue.flatMap(({ name, access }) => (access === 'identity' ? [] : [name])),
      backUrl,
    })
  }
  return [
    {
      path: '/apis/resources/add',
      section: 'apis',
      isForm: true,
      kept,
      repeats: ['scope'],
      show: (visit) => show(visit),
      submit: async (visit) => {
        const identifier = (single(visit.form, 'identifier') ?? '').trim()
        await performAt(deps, visit, addResource, {}, { identifier, ...membersOf(visit.form) })
        return visit.done('saved', '/apis')
      },
    },
    {
      path: '/apis/resources/:id',
      section: 'apis',
      isForm: true,
      kept,
      repeats: ['scope'],
      show: async (visit) => show(visit, await find(visit.param('id'))),
      submit: async (visit) => {
        const assertShown = (resource: object) => assertVersion(visit.form, resource)
        const params = { resource: visit.param('id') }
        await performAt(deps, visit, changeResource, params, membersOf(visit.form), assertShown)
        return visit.done('saved', '/apis')
      },
    },
    actPage<StoredResource>({
      path: '/apis/resources/:id/delete',
      section: 'apis',
      title: msg('admin.apis.delete'),
      about: msg('admin.apis.resource.deleteAbout'),
      isTyped: true,
      find: async (id) => {
        const subject = await find(id)
        const { identifier } = subject
        return { subject, name: identifier, url: `${backUrl}/resources/${encodeURIComponent(identifier)}` }
      },
      perform: async ({ identifier }, visit) => {
        await performAt(deps, visit, removeResource, { resource: identifier })
        return visit.done('deleted', '/apis')
      },
    }),
  ]
}

function membersOf(form: Parameters) {
  return {
    name: (single(form, 'name') ?? '').trim(),
    scopes: [...every(form, 'scope')],
    token_format: single(form, 'format') === 'jwt' ? ('jwt' as const) : ('opaque' as const),
  }
}
