import type { FastifyInstance } from 'fastify'
import { auditEvent } from '../../domain/audit.ts'
import { accept } from '../../domain/decision.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { keepAdministrator, lastAdministrator } from '../../users/administrators.ts'
import { deleteUser, isSameName } from '../../users/rules/user.ts'
import { msg } from '../i18n/i18n.ts'
import { type AccountModel, type AccountPage, sectionPath, type Visit } from './account-page.ts'
import { copyOfData } from './copy-of-data.ts'
import { jsonStream } from './json-stream.ts'

declare module '../pages.ts' {
  interface Pages {
    'account-privacy': AccountModel & {
      /** Absent where only the operator deletes accounts. */
      readonly deleteUrl?: string
    }
    'account-delete': AccountModel & {
      /** What has to be typed. */
      readonly username: string
      /** The way back. */
      readonly keepUrl: string
    }
    /** Shown after the account is deleted and its user signed out. */
    'account-deleted': Readonly<Record<never, never>>
  }
}

const deletePath = '/account/delete'

/** Sends a copy of everything stored about the user. Its form needs a recent sign-in. */
export function privacyPage(app: FastifyInstance, deps: PageDeps): AccountPage {
  const { config, service, store } = deps
  const deleteUrl = config.accounts.deletion === 'on' ? { deleteUrl: service.prefix + deletePath } : {}
  return {
    path: '/account/privacy',
    section: 'privacy',
    formRequires: 'recent',
    show: ({ render }) => render('account-privacy', deleteUrl),
    submit: async ({ user, now, context, reply }) => {
      await store.write(auditEvent('user-exported', context, { userId: user.id }))
      const copy = await copyOfData(app, deps, user, now)
      return reply
        .header('content-disposition', 'attachment; filename="account.json"')
        .type('application/json; charset=utf-8')
        .send(jsonStream(copy))
    },
  }
}

/** Deletes the account of a user who types their name. */
export function deletePage(app: FastifyInstance, { config, service, store }: PageDeps): AccountPage {
  const keepUrl = service.prefix + sectionPath('privacy')
  const show = ({ user: { username }, render }: Visit, problem?: Text) =>
    render('account-delete', { username, keepUrl }, problem)
  return {
    path: deletePath,
    section: 'privacy',
    requires: 'recent',
    problems: { [lastAdministrator]: 'delete.lastAdministrator' },
    show,
    submit: async (visit) => {
      const { form, user, context, reply } = visit
      if (!isSameName(single(form, 'username') ?? '', user.username)) return show(visit, msg('delete.other'))
      await store.transact('user', user.id, (current) => {
        if (current === undefined) return accept(undefined)
        return keepAdministrator(deleteUser(current, context), config.admin.group, context.at)
      })
      app.browser.dropSession(reply)
      return reply.page('account-deleted', {})
    },
  }
}
