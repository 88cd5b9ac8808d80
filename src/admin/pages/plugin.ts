import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import type { PageDeps } from '../../feature/deps.ts'
import { acceptOwnForms } from '../../pages/forms.ts'
import { accessPage } from './access.ts'
import { type AdminPage, addAdminPage, adminRoot } from './admin-page.ts'
import { apiResourcePages } from './api-resource.ts'
import { apiScopePages } from './api-scope.ts'
import { apisPage } from './apis.ts'
import { auditExport, auditPage } from './audit.ts'
import { clientEditPage, clientPage } from './client.ts'
import { clientActPages } from './client-acts.ts'
import { clientAddPage } from './client-add.ts'
import { clientKeysPage } from './client-keys.ts'
import { clientTryPage } from './client-try.ts'
import { clientsPage } from './clients.ts'
import { errorsPage } from './errors.ts'
import { factorsPage } from './factors.ts'
import { groupDeletePage, groupPage } from './group.ts'
import { groupsPage } from './groups.ts'
import { invitePage, userLinkPage } from './invite.ts'
import { inviteListPage } from './invite-list.ts'
import { keyRetirePage, keysPage, keysRotatePage } from './keys.ts'
import { overviewPage } from './overview.ts'
import { settingsPage } from './settings.ts'
import { upstreamAddPage, upstreamDeletePage, upstreamPage } from './upstream.ts'
import { upstreamsPage } from './upstreams.ts'
import { userPage } from './user.ts'
import { userActPages } from './user-acts.ts'
import { userEditPage, userPasswordPage } from './user-edit.ts'
import { userTokensPage } from './user-tokens.ts'
import { usersPage } from './users.ts'

type PageOf = (app: FastifyInstance, deps: PageDeps) => AdminPage | readonly AdminPage[]

const adminPageOf: readonly PageOf[] = [
  overviewPage,
  usersPage,
  factorsPage,
  invitePage,
  inviteListPage,
  userPage,
  accessPage,
  userLinkPage,
  userTokensPage,
  userEditPage,
  userPasswordPage,
  userActPages,
  groupsPage,
  groupPage,
  groupDeletePage,
  clientsPage,
  clientAddPage,
  clientPage,
  clientEditPage,
  clientKeysPage,
  clientTryPage,
  clientActPages,
  upstreamsPage,
  upstreamAddPage,
  upstreamPage,
  upstreamDeletePage,
  apisPage,
  apiScopePages,
  apiResourcePages,
  keysPage,
  keysRotatePage,
  keyRetirePage,
  auditPage,
  auditExport,
  errorsPage,
  settingsPage,
]

/** The admin pages. A file describes a page; admin-page.ts serves it. */
export const adminPages: FastifyPluginAsync<PageDeps> = async (app, deps) => {
  if (deps.config.admin.pages === 'off') return
  app.adminPages.url = deps.service.prefix + adminRoot
  await acceptOwnForms(app, deps)
  for (const page of adminPageOf.flatMap((pageOf) => pageOf(app, deps))) addAdminPage(app, deps, page)
}
