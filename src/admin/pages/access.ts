import type { FastifyInstance } from 'fastify'
import { single } from '../../domain/parameters.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { instantOf } from '../../system/system.ts'
import { accessOperations } from '../operations/access.ts'
import type { Access } from '../operations/schema.ts'
import { requireFound } from './act-page.ts'
import { type AdminModel, type AdminPage, adminPath } from './admin-page.ts'
import { clientIdOf } from './audit.ts'
import { performAt } from './call.ts'

type Explained = (typeof Access)['static']

declare module '../../pages/pages.ts' {
  interface Pages {
    /** Which rules let a user use an app, or do not. */
    'admin/access': AdminModel & {
      readonly username: string
      readonly url: string
      readonly typed: Readonly<Record<'client' | 'at', string>>
      readonly explained?: Pick<Explained, 'result' | 'rules' | 'at'>
    }
  }
}

/** Explains why a user may use an app or not, now or at an earlier time. */
export function accessPage(_app: FastifyInstance, deps: PageDeps): AdminPage {
  const { service, store } = deps
  const { readAccess } = accessOperations(deps.declared)
  return {
    path: '/users/:id/access',
    section: 'users',
    show: async (visit) => {
      const { param, query, render } = visit
      const { id: sub, username } = requireFound(await store.find('user', param('id')), 'user')
      const url = `${service.prefix}${adminPath('users')}/${encodeURIComponent(sub)}`
      const typed = {
        client: (single(query, 'client') ?? '').trim().slice(0, 2048),
        at: (single(query, 'at') ?? '').slice(0, 30),
      }
      const common = { username, url, typed }
      if (typed.client === '') return render('admin/access', common)
      const clientId = await clientIdOf(typed.client, store)
      if ((await store.find('client', clientId)) === undefined)
        return render('admin/access', common, msg('admin.access.noApp'))
      const at = typed.at === '' ? undefined : instantOf(`${typed.at}Z`)
      if (typed.at !== '' && (at === undefined || at > visit.now))
        return render('admin/access', common, msg('admin.access.noTime'))
      const params = { sub, client_id: clientId }
      const asked = at === undefined ? {} : { at: `${at}` }
      const body = await performAt(deps, visit, readAccess, params, undefined, undefined, asked)
      return render('admin/access', { ...common, explained: body as unknown as Explained }) // as the schema says
    },
  }
}
