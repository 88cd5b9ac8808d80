import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { canonicalEmail, changeProfile, moveEmail } from '../domain/account.ts'
import { auditEvent, type Occasion } from '../domain/audit.ts'
import { accept, withWrites } from '../domain/decision.ts'
import { OAuthError } from '../domain/errors.ts'
import type { Account } from '../domain/model.ts'
import { single } from '../domain/parameters.ts'
import type { Text } from '../domain/text.ts'
import { afterResponse } from '../http/after-response.ts'
import type { Submission, Visit } from '../http/own-pages.ts'
import { says } from '../texts/catalogue.ts'
import { currentPassword } from './current-password.ts'
import { factorEntry } from './factor-entry.ts'

const page = '/account/email'

/**
 * A user gives another e-mail address, where the operator permits it and a mail server is set. It is a way to sign in
 * and to a new password: it needs a recent sign-in with every factor, and the current password unless that was a
 * passkey. The present address stays until the link that is sent to the new one is used (one-time-links); it gets an
 * e-mail with a link to undo the change.
 */
export function ownEmail(app: FastifyInstance, deps: AppDeps): void {
  const { config, service, store } = deps
  if (!config.accounts.editable.includes('email') || !app.letters.canSend) return
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
    const occasion = { by: 'person', at: here.now, from: request.ip } as const
    const typed = (single(here.form, 'email') ?? '').trim()
    const problem = problemOf(here, typed) ?? (await proofProblem(here, request, reply))
    if (problem !== undefined) return show(here, reply, problem)
    try {
      if (typed === '') return await remove(here, occasion, reply)
      return await ask(here, canonicalEmail(typed) ?? '', occasion, reply)
    } catch (error) {
      if (!(error instanceof OAuthError) || error.code !== 'temporarily_unavailable') throw error
      reply.code(error.status).headers(error.headers)
      return show(here, reply, says(error.status === 429 ? 'email.throttled' : 'email.unsent'))
    }
  })

  const proofProblem = (here: Submission, request: FastifyRequest, reply: FastifyReply) =>
    isByPasskey(here) ? undefined : passwordProblem(here, request, reply)

  /** The same response, at the same time, whether the address belongs to another account or not. */
  const ask = async (
    { account, now }: Submission,
    email: string,
    occasion: Occasion,
    reply: FastifyReply,
  ) => {
    const isProven = account.claims['email_verified'] === true
    if (email === account.email && isProven) return back(reply, 'email-saved', 'profile')
    await app.letters.count(account.id, now)
    later(reply, async () => {
      const owner = await store.find('accountByLogin', email)
      if (owner === undefined) return app.letters.changeEmail(account, email, occasion)
      if (owner.id === account.id) return app.letters.verifyEmail(account, occasion)
      return app.letters.tellTaken(owner, now)
    })
    return back(reply, 'email-sent', 'profile')
  }

  const remove = async ({ account, now }: Submission, occasion: Occasion, reply: FastifyReply) => {
    if (account.email === undefined) return back(reply, 'email-removed', 'profile')
    const undo = await app.letters.announceChange(account, occasion)
    const isRemoved = await store.transact('account', account.id, (current) => {
      if (current === undefined || current.lockedAt !== undefined) return accept(false)
      if (current.email !== account.email) return accept(false)
      const facts = { accountId: current.id, changed: 'email' }
      const event = auditEvent('person-changed', occasion, facts)
      return withWrites({ ...moveEmail(current, '', now, undo), result: true }, event)
    })
    return back(reply, isRemoved ? 'email-removed' : 'gone', 'profile')
  }

  const show = (here: Visit, reply: FastifyReply, problem?: Text) => {
    const { frame, hidden, account } = here
    const { email, passwordHash } = account
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
export async function letterSent(
  app: FastifyInstance,
  account: Account,
  occasion: Occasion,
): Promise<boolean> {
  if (!app.letters.canSend || account.claims['email_verified'] === true) return false
  try {
    await app.letters.count(account.id, occasion.at)
    await app.letters.verifyEmail(account, occasion)
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

/** Why this account cannot have this address, whoever else has it. */
function problemOf({ account, now }: Visit, email: string): Text | undefined {
  try {
    changeProfile(account, { email }, now)
    return undefined
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    if (error.detail.rule === 'oidc-core-5.1-email-syntax') return says('email.invalid')
    if (error.detail.rule === 'lychgate-account-username') return says('email.needed')
    throw error
  }
}
