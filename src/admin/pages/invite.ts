import type { FastifyInstance } from 'fastify'
import { auditEvent } from '../../domain/audit.ts'
import { accept, insert } from '../../domain/decision.ts'
import type { User } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { AppDeps } from '../../feature/deps.ts'
import { createInvitation, type DeliveredInvitation } from '../../pages/emails/invitation.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { RecordExists } from '../../storage/store.ts'
import { canonicalEmail, createUser } from '../../users/rules/user.ts'
import { actPage, requireFound } from './act-page.ts'
import { type AdminModel, type AdminPage, type AdminVisit, adminPath } from './admin-page.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/user-invite': AdminModel & {
      readonly typed: Readonly<Record<'email' | 'givenName' | 'familyName' | 'username', string>>
      /** Whether the server can send the link itself. */
      readonly canSend: boolean
    }
    /** The link of a user, shown this once, or where it was sent. */
    'admin/user-link': AdminModel & {
      readonly link: DeliveredInvitation
      readonly name: string
      readonly userUrl: string
    }
  }
}

/** Adds a user, who sets a password by a link. */
export function invitePage(app: FastifyInstance, deps: AppDeps): AdminPage {
  const { random } = deps
  const showLink = linkShower(deps)
  const show = ({ form, render }: AdminVisit, problem?: Text) => {
    const text = (name: string) => (single(form, name) ?? '').trim()
    const names = { givenName: text('given_name'), familyName: text('family_name') }
    const typed = { email: text('email'), ...names, username: text('username') }
    return render('admin/user-invite', { typed, canSend: app.emails.canSend }, problem)
  }
  return {
    path: '/users/invite',
    section: 'users',
    isForm: true,
    kept: {
      email: msg('admin.invite.email'),
      given_name: msg('claim.given_name'),
      family_name: msg('claim.family_name'),
      username: msg('profile.username'),
    },
    show,
    submit: async (visit) => {
      const { form, context, request } = visit
      const text = (name: string) => (single(form, name) ?? '').trim()
      const [email, username] = [text('email'), text('username') || text('email')]
      const [given_name, family_name] = [text('given_name'), text('family_name')]
      if (canonicalEmail(email) === undefined) return show(visit, msg('email.invalid'))
      const user = createUser(
        {
          username,
          email,
          claims: { ...(given_name && { given_name }), ...(family_name && { family_name }) },
        },
        random(16),
        context.at,
      )
      const link = createInvitation(deps, user, single(form, 'show') === undefined, context)
      const event = auditEvent('user-invited', context, { userId: user.id })
      try {
        await visit.store.write(insert('user', user), event, ...link.writes)
      } catch (error) {
        if (!(error instanceof RecordExists)) throw error
        return show(visit, msg('admin.invite.taken'))
      }
      return showLink(visit, user, await link.deliver(request.log))
    },
  }
}

/** Gives a user another link: an invitation as long as they have no password, and then one to a new password. */
export function userLinkPage(_app: FastifyInstance, deps: AppDeps): AdminPage {
  const { service, store } = deps
  const showLink = linkShower(deps)
  return actPage<User>({
    path: '/users/:id/link',
    section: 'users',
    title: msg('admin.user.link'),
    about: msg('admin.user.link.about'),
    isTyped: false,
    find: async (id) => {
      const subject = requireFound(await store.find('user', id), 'user')
      const url = `${service.prefix}${adminPath('users')}/${encodeURIComponent(id)}`
      return { subject, name: subject.username, url }
    },
    perform: async (user, visit) => {
      const { context, request } = visit
      const purpose = user.passwordHash === undefined ? 'invitation' : 'password-reset'
      const link = createInvitation(deps, user, true, context, purpose)
      const isGiven = await visit.store.transact('user', user.id, (current) =>
        current === undefined || current.lockedAt !== undefined
          ? accept(false)
          : accept(true, ...link.writes),
      )
      if (!isGiven) return visit.done('gone', `/users/${encodeURIComponent(user.id)}`)
      return showLink(visit, user, await link.deliver(request.log))
    },
  })
}

function linkShower({ service }: Pick<AppDeps, 'service'>) {
  return ({ render }: AdminVisit, { id, username }: User, link: DeliveredInvitation) => {
    const userUrl = `${service.prefix}${adminPath('users')}/${encodeURIComponent(id)}`
    return render('admin/user-link', { link, name: username, userUrl })
  }
}
