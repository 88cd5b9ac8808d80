import type { FastifyInstance } from 'fastify'
import type { StoredScope } from '../../domain/api-definitions.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { readDefinitions } from '../operations/definitions.ts'
import { addScope, changeScope, removeScope } from '../operations/scopes.ts'
import { actPage, requireFound } from './act-page.ts'
import { type AdminModel, type AdminPage, type AdminVisit, adminPath } from './admin-page.ts'
import { performAt } from './call.ts'
import { assertVersion, versionField } from './version.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/api-scope': AdminModel & {
      /** Absent: it is added. */
      readonly name?: string
      readonly typed: {
        readonly name: string
        readonly group: string
        readonly description: string
        readonly access: 'read' | 'write'
        readonly sensitive: boolean
      }
      readonly deleteUrl?: string
      readonly backUrl: string
    }
  }
}

const kept = {
  version: undefined,
  name: msg('admin.apis.scope.name'),
  group: msg('admin.apis.scope.group'),
  description: msg('admin.apis.scope.description'),
  access: undefined,
  sensitive: undefined,
}

/** Pages that add, change and delete a stored scope. */
export function apiScopePages(_app: FastifyInstance, deps: PageDeps): readonly AdminPage[] {
  const { service, store } = deps
  const backUrl = service.prefix + adminPath('apis')
  const find = async (name: string): Promise<StoredScope> => {
    const { scopes } = await readDefinitions(store)
    return requireFound(
      scopes.find((one) => one.name === name),
      'stored scope',
    )
  }
  const show = ({ form, render }: AdminVisit, scope?: StoredScope) => {
    const isTyped = single(form, 'group') !== undefined
    const text = (name: 'name' | 'group' | 'description') => single(form, name) ?? scope?.[name] ?? ''
    const access = single(form, 'access') ?? scope?.access
    return render('admin/api-scope', {
      ...(scope && {
        name: scope.name,
        hidden: versionField(form, scope),
        deleteUrl: `${backUrl}/scopes/${encodeURIComponent(scope.name)}/delete`,
      }),
      typed: {
        name: text('name'),
        group: text('group'),
        description: text('description'),
        access: access === 'write' ? 'write' : 'read',
        sensitive: isTyped ? single(form, 'sensitive') !== undefined : scope?.sensitive === true,
      },
      backUrl,
    })
  }
  return [
    {
      path: '/apis/scopes/add',
      section: 'apis',
      isForm: true,
      kept,
      show: (visit) => show(visit),
      submit: async (visit) => {
        const name = (single(visit.form, 'name') ?? '').trim()
        await performAt(deps, visit, addScope, {}, { name, ...wordsOf(visit.form) })
        return visit.done('saved', '/apis')
      },
    },
    {
      path: '/apis/scopes/:id',
      section: 'apis',
      isForm: true,
      kept,
      show: async (visit) => show(visit, await find(visit.param('id'))),
      submit: async (visit) => {
        const assertShown = (scope: object) => assertVersion(visit.form, scope)
        const params = { scope: visit.param('id') }
        await performAt(deps, visit, changeScope, params, wordsOf(visit.form), assertShown)
        return visit.done('saved', '/apis')
      },
    },
    actPage<StoredScope>({
      path: '/apis/scopes/:id/delete',
      section: 'apis',
      title: msg('admin.apis.delete'),
      about: msg('admin.apis.scope.deleteAbout'),
      isTyped: true,
      find: async (id) => {
        const subject = await find(id)
        return { subject, name: subject.name, url: `${backUrl}/scopes/${encodeURIComponent(subject.name)}` }
      },
      perform: async ({ name }, visit) => {
        await performAt(deps, visit, removeScope, { scope: name })
        return visit.done('deleted', '/apis')
      },
    }),
  ]
}

function wordsOf(form: Parameters) {
  const text = (name: string) => (single(form, name) ?? '').trim()
  return {
    group: text('group'),
    description: text('description'),
    access: single(form, 'access') === 'write' ? ('write' as const) : ('read' as const),
    sensitive: single(form, 'sensitive') !== undefined,
  }
}
