import type { FastifyInstance } from 'fastify'
import { isConfiguredResource, isConfiguredScope } from '../../domain/api-definitions.ts'
import { resourceName } from '../../domain/localized.ts'
import type { Value } from '../../domain/text.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { scopesFor } from '../../pages/scopes.ts'
import { type AdminModel, type AdminPage, adminPath } from './admin-page.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/apis': AdminModel & {
      readonly scopes: readonly {
        readonly name: string
        readonly group: Value
        readonly description: Value
        /** Absent: the configuration file sets it, or the server. */
        readonly url?: string
      }[]
      readonly resources: readonly {
        readonly identifier: string
        readonly name: Value
        readonly scopes: readonly string[]
        readonly url?: string
      }[]
    }
  }
}

/** The scopes and APIs in force. Those of the configuration file win, and are changed there. */
export function apisPage(app: FastifyInstance, deps: PageDeps): AdminPage {
  const { service, declared, definitions } = deps
  const root = service.prefix + adminPath('apis')
  const scopesIn = scopesFor(service, app.texts, declared.scopes)
  const { configured } = definitions
  return {
    path: '/apis',
    section: 'apis',
    show: ({ request: { language }, render }) =>
      render('admin/apis', {
        scopes: scopesIn(language).map(({ name, group, description }) => ({
          name,
          group,
          description,
          ...(!isConfiguredScope(name, configured) && { url: `${root}/scopes/${encodeURIComponent(name)}` }),
        })),
        resources: service.allResources.map((resource) => ({
          identifier: resource.identifier,
          name: resourceName(resource, language),
          scopes: [...resource.scopes],
          ...(!isConfiguredResource(resource.identifier, configured) && {
            url: `${root}/resources/${encodeURIComponent(resource.identifier)}`,
          }),
        })),
      }),
  }
}
