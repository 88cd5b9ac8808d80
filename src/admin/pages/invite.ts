import type { FastifyInstance } from 'fastify'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { Needs, PageDeps } from '../../feature/deps.ts'
import type { DeliveredInvitation } from '../../pages/emails/invitation.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { RecordExists } from '../../storage/store.ts'
import { waysToSignIn } from '../../users/factors.ts'
import { isAwaited, type WaysToSignIn } from '../../users/rules/upstream-link.ts'
import { canonicalEmail } from '../../users/rules/user.ts'
import { createLink } from '../operations/links.ts'
import { inviteUser } from '../operations/user-changes.ts'
import { actPage, requireFound } from './act-page.ts'
import { type AdminModel, type AdminPage, type AdminVisit, adminPath } from './admin-page.ts'
import { performAt } from './call.ts'

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

/** Adds a user, who sets a passkey or a password by a link. */
export function invitePage(app: FastifyInstance, deps: PageDeps): AdminPage {
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
      const { form } = visit
      const text = (name: string) => (single(form, name) ?? '').trim()
      const [email, username] = [text('email'), text('username') || text('email')]
      const [given_name, family_name] = [text('given_name'), text('family_name')]
      if (canonicalEmail(email) === undefined) return show(visit, msg('email.invalid'))
      const claims = { ...(given_name && { given_name }), ...(family_name && { family_name }) }
      const body = { username, email, claims, send: single(form, 'show') === undefined }
      try {
        return showLink(visit, await performAt(deps, visit, inviteUser, {}, body))
      } catch (error) {
        if (!(error instanceof RecordExists)) throw error
        return show(visit, msg('admin.invite.taken'))
      }
    },
  }
}

/** Gives a user another link: an invitation until they can sign in, and then one with which they begin again. */
export function userLinkPage(_app: FastifyInstance, deps: PageDeps): AdminPage {
  const { service, store } = deps
  const showLink = linkShower(deps)
  return actPage<WaysToSignIn>({
    path: '/users/:id/link',
    section: 'users',
    title: msg('admin.user.link'),
    about: msg('admin.user.link.about'),
    isTyped: false,
    find: async (id) => {
      const subject = requireFound(await store.find(waysToSignIn, id), 'user')
      const url = `${service.prefix}${adminPath('users')}/${encodeURIComponent(id)}`
      return { subject, name: subject.user.username, url }
    },
    perform: async (ways, visit) => {
      const { user } = ways
      if (user.lockedAt !== undefined) return visit.done('gone', `/users/${encodeURIComponent(user.id)}`)
      const purpose = isAwaited(ways) ? 'invitation' : 'password-reset'
      const { id: sub, username } = user
      const invitation = await performAt(deps, visit, createLink, { sub }, { purpose })
      return showLink(visit, { sub, username, invitation })
    },
  })
}

function linkShower({ service }: Needs<'service'>) {
  return ({ render }: AdminVisit, { sub, username: name, invitation }: Readonly<Record<string, unknown>>) => {
    const userUrl = `${service.prefix}${adminPath('users')}/${encodeURIComponent(String(sub))}`
    const link = invitation as DeliveredInvitation // as the operation responds
    return render('admin/user-link', { link, name: String(name), userUrl })
  }
}
