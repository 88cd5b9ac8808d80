import type { FastifyInstance } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { auditEvent } from '../../domain/audit.ts'
import { accept, remove } from '../../domain/decision.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import { canonicalUsername } from '../../users/rules/user.ts'
import { msg } from '../i18n/catalogue.ts'
import type { AccountPage, Visit } from './account-page.ts'
import { type AccountModel, sectionPath } from './frame.ts'
import { exportUserData } from './user-export.ts'

declare module '../page-models.ts' {
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
export function privacyPage(_app: FastifyInstance, { config, service, store }: AppDeps): AccountPage {
  const deleteUrl = config.accounts.deletion === 'on' ? { deleteUrl: service.prefix + deletePath } : {}
  return {
    path: '/account/privacy',
    section: 'privacy',
    formRequires: 'recent',
    show: ({ render }) => render('account-privacy', deleteUrl),
    submit: async ({ user, now, context, reply }) => {
      await store.write(auditEvent('person-exported', context, { userId: user.id }))
      const copy = await exportUserData(store, user, now)
      return reply
        .header('content-disposition', 'attachment; filename="account.json"')
        .type('application/json; charset=utf-8')
        .send(`${JSON.stringify(copy, undefined, 2)}\n`)
    },
  }
}

/** Deletes the account of a user who types their name. */
export function deletePage(app: FastifyInstance, { service, store }: AppDeps): AccountPage {
  const keepUrl = service.prefix + sectionPath('privacy')
  const show = ({ user: { username }, render }: Visit, problem?: Text) =>
    render('account-delete', { username, keepUrl }, problem)
  return {
    path: deletePath,
    section: 'privacy',
    requires: 'recent',
    show,
    submit: async (submission) => {
      const { form, user, context, reply } = submission
      if (canonicalUsername(single(form, 'username') ?? '') !== user.username)
        return show(submission, msg('delete.other'))
      const event = auditEvent('person-removed', context, { userId: user.id })
      await store.transact('user', user.id, (current) =>
        current === undefined ? accept(undefined) : accept(undefined, remove('user', user.id), event),
      )
      app.browser.dropSession(reply)
      return reply.page('account-deleted', {})
    },
  }
}
