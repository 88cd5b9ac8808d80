import type { FastifyInstance } from 'fastify'
import type { PageDeps } from '../../feature/deps.ts'
import { hasUpstreams, mostUpstreams } from '../../users/upstreams.ts'
import { listUpstreams } from '../operations/upstreams.ts'
import { type AdminModel, type AdminPage, adminPath, adminRoot } from './admin-page.ts'
import { performAt } from './call.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/upstreams': AdminModel & {
      readonly upstreams: readonly ListedUpstream[]
      readonly addUrl: string
    }
  }
}

interface ListedUpstream {
  readonly name: string
  readonly issuer: string
  readonly isEnabled: boolean
  /** Whether the configuration has it. */
  readonly isConfigured: boolean
  readonly url: string
}

/** The upstreams that users may sign in with; a build without upstreams has no such page. */
export function upstreamsPage(_app: FastifyInstance, deps: PageDeps): readonly AdminPage[] {
  const { config, service } = deps
  const page: AdminPage = {
    path: '/upstreams',
    section: 'upstreams',
    show: async (visit) => {
      const query = { limit: String(mostUpstreams) }
      const { items } = await performAt(deps, visit, listUpstreams, {}, undefined, undefined, query)
      const all = items as readonly Readonly<Record<string, unknown>>[] // as the operation responds
      return visit.render('admin/upstreams', {
        upstreams: all.map(({ upstream_id: id, name, issuer, enabled, source }) => ({
          name: String(name),
          issuer: String(issuer),
          isEnabled: enabled === true,
          isConfigured: source === 'configuration',
          url: `${service.prefix}${adminPath('upstreams')}/${id}`,
        })),
        addUrl: `${service.prefix}${adminRoot}/add-upstream`,
      })
    },
  }
  return hasUpstreams(config) ? [page] : []
}
