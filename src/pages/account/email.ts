import type { FastifyInstance } from 'fastify'
import { type AuditContext, auditEvent } from '../../domain/audit.ts'
import { accept, withWrites } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { User } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { afterResponse } from '../../http/after-response.ts'
import { canonicalEmail, changeProfile, moveEmail } from '../../users/rules/user.ts'
import { msg } from '../i18n/i18n.ts'
import type { AccountModel, AccountPage, Visit } from './account-page.ts'
import { currentPasswordCheck } from './password.ts'

declare module '../pages.ts' {
  interface Pages {
    'account-email': AccountModel & {
      readonly email?: string
      /** Whether the form asks for the current password: the session did not begin with a passkey. */
      readonly asksPassword: boolean
    }
  }
}

/**
 * Changes the email address, where the operator permits it and a mail server is set. An address is a way to sign in
 * and to a new password: the form needs a recent sign-in with every factor, and the current password unless that
 * sign-in was by passkey. The present address stays until the link that is sent to the new one is opened
 * (pages/links); the old address gets an email with a link that undoes the change.
 */
export function emailPage(app: FastifyInstance, deps: PageDeps): AccountPage {
  const { store } = deps
  const currentPasswordProblem = currentPasswordCheck(app, deps)
  const later = afterResponse(app, 'an email about a change of address could not be sent')

  const show = (visit: Visit, problem?: Text) => {
    const { email, passwordHash } = visit.user
    const asksPassword = passwordHash !== undefined && !isByPasskey(visit)
    return visit.render('account-email', { asksPassword, ...(email !== undefined && { email }) }, problem)
  }

  /** Responds alike, and at the same time, whether the address belongs to another user or not. */
  const change = async ({ user, now, context, reply, done }: Visit, email: string) => {
    const isProven = user.claims['email_verified'] === true
    if (email === user.email && isProven) return done('email-saved', 'profile')
    await app.emails.count(user.id, now)
    later(reply, async () => {
      const owner = await store.find('userByLogin', email)
      if (owner === undefined) return app.emails.changeEmail(user, email, context)
      if (owner.id === user.id) return app.emails.verifyEmail(user, context)
      return app.emails.tellTaken(owner, now)
    })
    return done('email-sent', 'profile')
  }

  const removeAddress = async ({ user, now, context, done }: Visit) => {
    if (user.email === undefined) return done('email-removed', 'profile')
    const undo = await app.emails.announceChange(user, context)
    const isRemoved = await store.transact('user', user.id, (current) => {
      if (current === undefined || current.lockedAt !== undefined) return accept(false)
      if (current.email !== user.email) return accept(false)
      const event = auditEvent('user-changed', context, { userId: current.id, changed: 'email' })
      return withWrites({ ...moveEmail(current, '', now, undo), result: true }, event)
    })
    return done(isRemoved ? 'email-removed' : 'gone', 'profile')
  }

  return {
    path: '/account/email',
    section: 'profile',
    requires: 'every-factor',
    problems: { 'oidc-core-5.1-email-syntax': 'email.invalid', 'lychgate-account-username': 'email.needed' },
    show,
    submit: async (visit) => {
      const typed = (single(visit.form, 'email') ?? '').trim()
      // It may be taken, which the page does not say.
      changeProfile(visit.user, { email: typed }, visit.now)
      const problem = isByPasskey(visit) ? undefined : await currentPasswordProblem(visit)
      if (problem !== undefined) return show(visit, problem)
      try {
        if (typed === '') return await removeAddress(visit)
        return await change(visit, canonicalEmail(typed) ?? '')
      } catch (error) {
        if (!(error instanceof OAuthError) || error.code !== 'temporarily_unavailable') throw error
        visit.reply.code(error.status).headers(error.headers)
        return show(visit, msg(error.status === 429 ? 'email.throttled' : 'email.unsent'))
      }
    },
  }
}

/** Sends the link that verifies the present address; false without a mail server, or if the address is verified. */
export async function isVerificationSent(
  app: FastifyInstance,
  user: User,
  context: AuditContext,
): Promise<boolean> {
  if (!app.emails.canSend || user.claims['email_verified'] === true) return false
  try {
    await app.emails.count(user.id, context.at)
    await app.emails.verifyEmail(user, context)
    return true
  } catch (error) {
    // The profile offers the link again.
    if (error instanceof OAuthError && error.code === 'temporarily_unavailable') return false
    throw error
  }
}

/**
 * Whether the session began with a passkey, which proves more than the password. A session that began with the password
 * does not count: its passkey may have been added minutes ago from a browser left open.
 */
function isByPasskey({ session }: Visit): boolean {
  return session.methods.includes('pop') && !session.methods.includes('pwd')
}
