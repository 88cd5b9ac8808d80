import type { FastifyReply } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { verifyEmail } from '../domain/account.ts'
import { auditEvent, type Occasion } from '../domain/audit.ts'
import { accept, withWrites } from '../domain/decision.ts'
import { requireLink, unusableLink } from '../domain/one-time-link.ts'
import { linkPath } from '../mail/links.ts'
import type { OpenedLink } from './open-link.ts'
import { doneUrl } from './show-done.ts'

/** An address is proven by a link that went to it: `email_verified`, OpenID Connect Core §5.1. */
export function confirmEmail({ service, store }: AppDeps) {
  const { prefix } = service
  return {
    show: ({ link, hidden, account }: OpenedLink, reply: FastifyReply): FastifyReply => {
      const { email } = link
      // Another address by now: this link proves nothing of it.
      if (account === undefined || email === undefined || account.email !== email) throw unusableLink()
      const { username } = account
      return reply.page('link-email', { action: `${prefix}${linkPath}`, hidden, email, username })
    },

    submit: async ({ link }: OpenedLink, occasion: Occasion, reply: FastifyReply): Promise<FastifyReply> => {
      const { accountId = '', email = '' } = link
      await store.transact('link', link.id, (found) => {
        requireLink(found, occasion.at)
        return accept(undefined, { op: 'deleteLink', linkId: link.id })
      })
      await store.transact('account', accountId, (current) => {
        if (current === undefined || current.email !== email) throw unusableLink()
        return withWrites(
          verifyEmail(current, email, occasion.at),
          auditEvent('person-email-verified', occasion, { accountId }),
        )
      })
      return reply.redirect(doneUrl(prefix, 'email', undefined), 303)
    },
  }
}
