import type { FastifyInstance, FastifyReply } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { moveEmail, verifyEmail } from '../domain/account.ts'
import { auditEvent, type Occasion } from '../domain/audit.ts'
import { accept, withWrites } from '../domain/decision.ts'
import { requireLink, unusableLink } from '../domain/one-time-link.ts'
import { linkPath } from '../mail/links.ts'
import { RecordExists } from '../storage/store.ts'
import type { OpenedLink } from './open-link.ts'
import { doneUrl } from './show-done.ts'

/** An address is proven by a link that went to it: `email_verified`, OpenID Connect Core §5.1. */
export function confirmEmail(app: FastifyInstance, { service, store }: AppDeps) {
  const { prefix } = service

  const useUp = ({ link }: OpenedLink, { at }: Occasion): Promise<void> =>
    store.transact('link', link.id, (found) => {
      requireLink(found, at)
      return accept(undefined, { op: 'deleteLink', linkId: link.id })
    })

  const verify = async ({ link }: OpenedLink, occasion: Occasion): Promise<void> => {
    const { accountId = '', email = '' } = link
    await store.transact('account', accountId, (current) => {
      if (current === undefined || current.email !== email) throw unusableLink()
      return withWrites(
        verifyEmail(current, email, occasion.at),
        auditEvent('person-email-verified', occasion, { accountId }),
      )
    })
  }

  /** The old address hears of it first: where it cannot be told, nothing changes. */
  const move = async (opened: OpenedLink, occasion: Occasion): Promise<void> => {
    const { link, account } = opened
    const { accountId = '', email = '' } = link
    const undo = account && (await app.letters.announceChange(account, occasion))
    await useUp(opened, occasion)
    try {
      await store.transact('account', accountId, (current) => {
        if (current === undefined || current.lockedAt !== undefined) throw unusableLink()
        if (current.email !== account?.email) throw unusableLink()
        return withWrites(
          moveEmail(current, email, occasion.at, undo),
          auditEvent('person-changed', occasion, { accountId, changed: 'email' }),
          auditEvent('person-email-verified', occasion, { accountId }),
        )
      })
    } catch (error) {
      // Another account has it by now; whoever opened the link reads its mail, and learns no more than that.
      throw error instanceof RecordExists ? unusableLink() : error
    }
  }

  return {
    show: ({ purpose, link, hidden, account }: OpenedLink, reply: FastifyReply): FastifyReply => {
      const { email } = link
      if (account === undefined || email === undefined) throw unusableLink()
      // Another address by now: a link that proves the present one proves nothing of it.
      if (purpose === 'email-verification' && account.email !== email) throw unusableLink()
      const { username } = account
      return reply.page('link-email', { action: `${prefix}${linkPath}`, hidden, email, username })
    },

    submit: async (opened: OpenedLink, occasion: Occasion, reply: FastifyReply): Promise<FastifyReply> => {
      if (opened.purpose === 'email-change') await move(opened, occasion)
      else {
        await useUp(opened, occasion)
        await verify(opened, occasion)
      }
      return reply.redirect(doneUrl(prefix, 'email', undefined), 303)
    },
  }
}
