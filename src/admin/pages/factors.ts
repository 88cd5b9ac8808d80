import type { FastifyInstance } from 'fastify'
import type { Seconds } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { accessOperations, lacking } from '../operations/access.ts'
import type { UserFactors } from '../operations/schema.ts'
import { type AdminModel, type AdminPage, adminPath } from './admin-page.ts'
import { performAt } from './call.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/factors': AdminModel & {
      readonly users: readonly {
        readonly username: string
        readonly url: string
        readonly password: boolean
        readonly codes: boolean
        readonly passkeys: number
        /** What the policy requires of the user, who has not set it up. */
        readonly lacks?: string
        /** When that will be required. */
        readonly from?: Seconds
      }[]
      /** What is listed; empty: every user. */
      readonly only: (typeof lacking)[number] | ''
      readonly usersUrl: string
      readonly nextUrl?: string
    }
  }
}

/** Lists what users can sign in with, and who lacks a factor: before a policy requires one, and after. */
export function factorsPage(_app: FastifyInstance, deps: PageDeps): AdminPage {
  const usersUrl = deps.service.prefix + adminPath('users')
  const { listFactors } = accessOperations(deps.declared)
  return {
    path: '/users/factors',
    section: 'users',
    show: async (visit) => {
      const only = lacking.find((name) => name === single(visit.query, 'lacks')) ?? ''
      const after = single(visit.query, 'after')
      const query = { ...(only && { lacks: only }), ...(after !== undefined && { after }) }
      const { items, next } = await performAt(deps, visit, listFactors, {}, undefined, undefined, query)
      const rows = items as readonly (typeof UserFactors)['static'][] // what the operation describes
      const more = new URLSearchParams({ ...(only && { lacks: only }), after: String(next) })
      return visit.render('admin/factors', {
        users: rows.map(({ sub, username, password, codes, passkeys, lacks, required_from: from }) => ({
          ...{ username, password, codes, passkeys, url: `${usersUrl}/${encodeURIComponent(sub)}` },
          ...(lacks !== undefined && { lacks }),
          ...(from !== undefined && { from }),
        })),
        only,
        usersUrl,
        ...(next !== undefined && { nextUrl: `${usersUrl}/factors?${more}` }),
      })
    },
  }
}
