import type { FastifyInstance, FastifyReply } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { changeProfile } from '../domain/account.ts'
import { auditEvent, type Occasion } from '../domain/audit.ts'
import { accept, withWrites } from '../domain/decision.ts'
import { OAuthError } from '../domain/errors.ts'
import type { Account } from '../domain/model.ts'
import { single } from '../domain/parameters.ts'
import type { Text } from '../domain/text.ts'
import { ownPages, type Submission, type Visit } from '../http/own-pages.ts'
import { RecordExists } from '../storage/store.ts'
import { says } from '../texts/catalogue.ts'

/**
 * A person gives another e-mail address, where the operator lets them. It is a way to sign in, so the sign-in has to be
 * recent; it is nobody's proven one until the link that is sent there comes back, OpenID Connect Core §5.1.
 */
export function ownEmail(app: FastifyInstance, deps: AppDeps): void {
  const { config, service, store } = deps
  if (!config.accounts.editable.includes('email')) return
  const { visit, submission, back } = ownPages(app, deps)
  const action = `${service.prefix}/account/email`
  const entry = { room: 'profile', recent: true } as const

  app.get('/account/email', { schema: { hide: true } }, async (request, reply) => {
    const here = await visit(request, reply, entry)
    return here === undefined ? reply : show(here, reply)
  })

  app.post('/account/email', { schema: { hide: true } }, async (request, reply) => {
    const here = await submission(request, reply, entry)
    if (here === undefined) return reply
    const occasion = { by: 'person', at: here.now, from: request.ip } as const
    try {
      const account = await change(here, occasion)
      if (account?.email === undefined) return back(reply, 'email-removed', 'profile')
      const isSent = await letterSent(app, account, occasion)
      return back(reply, isSent ? 'email-sent' : 'email-saved', 'profile')
    } catch (error) {
      return show(here, reply, problemOf(error))
    }
  })

  const change = ({ account, form, now }: Submission, occasion: Occasion): Promise<Account | undefined> =>
    store.transact('account', account.id, (current) => {
      const email = (single(form, 'email') ?? '').trim()
      if (current === undefined) return accept(undefined)
      const decision = changeProfile(current, { email }, now)
      const isNew = 'result' in decision && decision.result.email !== current.email
      if (!isNew) return accept(current)
      const facts = { accountId: current.id, changed: 'email' }
      // A link to a new password that went to the old address is not for whoever reads that any more.
      const links = { op: 'deleteLinksOf', accountId: current.id } as const
      return withWrites(decision, links, auditEvent('person-changed', occasion, facts))
    })

  const show = ({ frame, hidden, account }: Visit, reply: FastifyReply, problem?: Text) => {
    const { email } = account
    const model = { frame, action, hidden, canVerify: app.letters.canSend }
    return reply.page(
      'account-email',
      { ...model, ...(email !== undefined && { email }), ...(problem && { problem }) },
      { status: problem === undefined ? 200 : 400 },
    )
  }
}

/** Whether the link that proves the address is under way; nothing is where no mail server is, or nothing has to be proven. */
export async function letterSent(
  app: FastifyInstance,
  account: Account,
  occasion: Occasion,
): Promise<boolean> {
  if (!app.letters.canSend || account.claims['email_verified'] === true) return false
  try {
    await app.letters.verifyEmail(account, occasion)
    return true
  } catch (error) {
    // The address is saved all the same; the profile offers the link again.
    if (error instanceof OAuthError && error.code === 'temporarily_unavailable') return false
    throw error
  }
}

function problemOf(error: unknown): Text {
  if (error instanceof RecordExists) return says('email.taken')
  if (!(error instanceof OAuthError)) throw error
  if (error.detail.rule === 'oidc-core-5.1-email-syntax') return says('email.invalid')
  if (error.detail.rule === 'lychgate-account-username') return says('email.needed')
  throw error
}
