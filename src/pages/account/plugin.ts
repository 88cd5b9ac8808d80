import type { FastifyPluginAsync } from 'fastify'
import type { PageDeps } from '../../feature/deps.ts'
import { acceptOwnForms } from '../forms.ts'
import { addAccountPage, sectionPath } from './account-page.ts'
import { activityPage } from './activity.ts'
import { appsPage } from './apps.ts'
import { emailPage } from './email.ts'
import { codesPage, codesPicture } from './one-time-codes.ts'
import { overviewPage, securityPage } from './overview.ts'
import { passkeysPage } from './passkeys.ts'
import { passwordPage } from './password.ts'
import { deletePage, privacyPage } from './privacy.ts'
import { profilePage } from './profile.ts'
import { sessionsPage } from './sessions.ts'
import { startPage } from './start.ts'

const accountPageOf = [
  overviewPage,
  startPage,
  appsPage,
  sessionsPage,
  securityPage,
  passwordPage,
  passkeysPage,
  codesPage,
  codesPicture,
  profilePage,
  emailPage,
  activityPage,
  privacyPage,
  deletePage,
]

/** The page where users manage their account. A file describes a page; account-page.ts serves it. */
export const accountPages: FastifyPluginAsync<PageDeps> = async (app, deps) => {
  const { accounts } = deps.config
  await acceptOwnForms(app, deps)
  for (const pageOf of accountPageOf) {
    if (pageOf === deletePage && accounts.deletion !== 'on') continue
    if (pageOf === emailPage && !(accounts.editable.includes('email') && app.emails.canSend)) continue
    addAccountPage(app, deps, pageOf(app, deps))
  }
  // Switches to another user of this browser, or to a new one.
  app.get('/account/switch', { schema: { hide: true } }, (_request, reply) =>
    reply.startInteraction({ page: sectionPath('overview'), prompt: ['select_account'] }, 'login'),
  )
}
