import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { type AuditContext, auditEvent } from '../../domain/audit.ts'
import { accept, withWrites } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { User } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import { userContext } from '../../http/address-prefix.ts'
import { afterResponse } from '../../http/after-response.ts'
import { canonicalEmail, changeProfile, moveEmail } from '../../users/rules/user.ts'
import { msg } from '../i18n/catalogue.ts'
import type { Submission, Visit } from '../own-pages.ts'
import { currentPassword } from './current-password.ts'
import { factorEntry } from './factor-entry.ts'

const page = '/account/email'

/**
 * A user gives another email address, where the operator permits it and a mail server is set. It is a way to sign in
 * and to a new password: it needs a recent sign-in with every factor, and the current password unless that was a
 * passkey. The present address stays until the link that is sent to the new one is used (one-time-links); it gets an
 * email with a link to undo the change.
 */
export function ownEmail(app: FastifyInstance, deps: AppDeps): void {
  const { config, service, store } = deps
  if (!config.accounts.editable.includes('email') || !app.emails.canSend) return
  const { visit, submission, back } = factorEntry(app, deps, page, 'profile')
  const passwordProblem = currentPassword(app, deps)
  const later = afterResponse(app, 'an e-mail about a change of address could not be made')

  app.get(page, { schema: { hide: true } }, async (request, reply) => {
    const here = await visit(request, reply)
    return here === undefined ? reply : show(here, reply)
  })

  app.post(page, { schema: { hide: true } }, async (request, reply) => {
    const here = await submission(request, reply)
    if (here === undefined) return reply
    const context = userContext(request, here.now)
    const typed = (single(here.form, 'email') ?? '').trim()
    const problem = problemOf(here, typed) ?? (await proofProblem(here, request, reply))
    if (problem !== undefined) return show(here, reply, problem)
    try {
      if (typed === '') return await remove(here, context, reply)
      return await ask(here, canonicalEmail(typed) ?? '', context, reply)
    } catch (error) {
      if (!(error instanceof OAuthError) || error.code !== 'temporarily_unavailable') throw error
      reply.code(error.status).headers(error.headers)
      return show(here, reply, msg(error.status === 429 ? 'email.throttled' : 'email.unsent'))
    }
  })

  const proofProblem = (here: Submission, request: FastifyRequest, reply: FastifyReply) =>
    isByPasskey(here) ? undefined : passwordProblem(here, request, reply)

  /** The same response, at the same time, whether the address belongs to another account or not. */
  const ask = async (
    { user, now }: Submission,
    email: string,
    context: AuditContext,
    reply: FastifyReply,
  ) => {
    const isProven = user.claims['email_verified'] === true
    if (email === user.email && isProven) return back(reply, 'email-saved', 'profile')
    await app.emails.count(user.id, now)
    later(reply, async () => {
      const owner = await store.find('userByLogin', email)
      if (owner === undefined) return app.emails.changeEmail(user, email, context)
      if (owner.id === user.id) return app.emails.verifyEmail(user, context)
      return app.emails.tellTaken(owner, now)
    })
    return back(reply, 'email-sent', 'profile')
  }

  const remove = async ({ user, now }: Submission, context: AuditContext, reply: FastifyReply) => {
    if (user.email === undefined) return back(reply, 'email-removed', 'profile')
    const undo = await app.emails.announceChange(user, context)
    const isRemoved = await store.transact('user', user.id, (current) => {
      if (current === undefined || current.lockedAt !== undefined) return accept(false)
      if (current.email !== user.email) return accept(false)
      const facts = { userId: current.id, changed: 'email' }
      const event = auditEvent('person-changed', context, facts)
      return withWrites({ ...moveEmail(current, '', now, undo), result: true }, event)
    })
    return back(reply, isRemoved ? 'email-removed' : 'gone', 'profile')
  }

  const show = (here: Visit, reply: FastifyReply, problem?: Text) => {
    const { frame, hidden, user } = here
    const { email, passwordHash } = user
    const asksPassword = passwordHash !== undefined && !isByPasskey(here)
    const status = problem === undefined || reply.statusCode >= 400 ? reply.statusCode : 400
    return reply.page(
      'account-email',
      {
        frame,
        action: service.prefix + page,
        hidden,
        asksPassword,
        ...(email !== undefined && { email }),
        ...(problem && { problem }),
      },
      { status },
    )
  }
}

/** Sends the link that proves the present address; false where no mail server is, or nothing has to be proven. */
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
    // The address is saved all the same; the profile offers the link again.
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

/** Returns why this user cannot have this address, apart from its being taken. */
function problemOf({ user, now }: Visit, email: string): Text | undefined {
  try {
    changeProfile(user, { email }, now)
    return undefined
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    if (error.detail.rule === 'oidc-core-5.1-email-syntax') return msg('email.invalid')
    if (error.detail.rule === 'lychgate-account-username') return msg('email.needed')
    throw error
  }
}
