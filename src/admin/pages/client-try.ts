import type { FastifyInstance } from 'fastify'
import { single } from '../../domain/parameters.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { findByLogin } from '../../users/search.ts'
import { previewClient } from '../operations/client-preview.ts'
import { requireFound } from './act-page.ts'
import { type AdminModel, type AdminPage, adminPath } from './admin-page.ts'
import { performAt } from './call.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    /** What an app would get. */
    'admin/client-try': AdminModel & {
      readonly name: string
      readonly typedUser: string
      readonly preview?: PreviewResponse
      readonly url: string
    }
  }
}

interface PreviewResponse {
  readonly allowed: boolean
  /** Why the app would get nothing, for any user. */
  readonly why?: string
  readonly scope: string
  readonly contents: readonly {
    readonly of: string
    readonly names: readonly string[]
    /** Of the administrator alone. */
    readonly claims?: Readonly<Record<string, unknown>>
  }[]
}

/** What an app would get for the administrator, or for another user without the values. Nothing is issued or sent. */
export function clientTryPage(_app: FastifyInstance, deps: PageDeps): AdminPage {
  const { service, store } = deps
  return {
    path: '/clients/:id/try',
    section: 'clients',
    show: async (visit) => {
      const { param, query, user, render } = visit
      const client = requireFound(await store.find('client', param('id')), 'client')
      const typedUser = (single(query, 'user') ?? '').trim().slice(0, 300)
      const url = `${service.prefix}${adminPath('clients')}/${encodeURIComponent(client.id)}`
      const model = { name: client.name ?? client.id, typedUser, url, action: `${url}/try` }
      const sub = typedUser === '' ? user.id : (await findByLogin(store, typedUser)).user?.id
      if (sub === undefined) return render('admin/client-try', model, msg('admin.group.noUser'))
      const params = { client_id: client.id }
      const found = await performAt(deps, visit, previewClient, params, undefined, undefined, { sub })
      const preview = found as unknown as PreviewResponse // as the operation responds
      return render('admin/client-try', { ...model, preview })
    },
  }
}
