import type { FastifyInstance, FastifyReply } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { type AuditContext, auditEvent } from '../../domain/audit.ts'
import { accept, remove, withWrites } from '../../domain/decision.ts'
import { RecordExists } from '../../storage/store.ts'
import { linkPath } from '../../users/one-time-links.ts'
import { linkKinds, requireLink, unusableLink } from '../../users/rules/one-time-link.ts'
import { moveEmail, verifyEmail } from '../../users/rules/user.ts'
import type { OpenedLink } from './open-link.ts'
import { doneUrl } from './show-done.ts'

/** An address is proven by a link that went to it: `email_verified`, OpenID Connect Core §5.1. */
export function confirmEmail(app: FastifyInstance, { service, store }: AppDeps) {
  const { prefix } = service

  const useUp = ({ link }: OpenedLink, { at }: AuditContext): Promise<void> =>
    store.transact(linkKinds[link.purpose], link.id, (found) => {
      requireLink(found, at)
      return accept(undefined, remove(linkKinds[link.purpose], link.id))
    })

  const verify = async ({ link }: OpenedLink, context: AuditContext): Promise<void> => {
    const { userId = '', email = '' } = link
    await store.transact('user', userId, (current) => {
      if (current === undefined || current.email !== email) throw unusableLink()
      return withWrites(
        verifyEmail(current, email, context.at),
        auditEvent('person-email-verified', context, { userId }),
      )
    })
  }

  /** The old address hears of it first: where it cannot be told, nothing changes. */
  const move = async (opened: OpenedLink, context: AuditContext): Promise<void> => {
    const { link, user } = opened
    const { userId = '', email = '' } = link
    const undo = user && (await app.emails.announceChange(user, context))
    await useUp(opened, context)
    try {
      await store.transact('user', userId, (current) => {
        if (current === undefined || current.lockedAt !== undefined) throw unusableLink()
        if (current.email !== user?.email) throw unusableLink()
        return withWrites(
          moveEmail(current, email, context.at, undo),
          auditEvent('person-changed', context, { userId, changed: 'email' }),
          auditEvent('person-email-verified', context, { userId }),
        )
      })
    } catch (error) {
      // Another account has it by now; the user who opened the link reads its mail, and learns no more than that.
      throw error instanceof RecordExists ? unusableLink() : error
    }
  }

  return {
    show: ({ purpose, link, hidden, user }: OpenedLink, reply: FastifyReply): FastifyReply => {
      const { email } = link
      if (user === undefined || email === undefined) throw unusableLink()
      // Another address by now: a link that proves the present one proves nothing of it.
      if (purpose === 'email-verification' && user.email !== email) throw unusableLink()
      const { username } = user
      return reply.page('link-email', { action: `${prefix}${linkPath}`, hidden, email, username })
    },

    submit: async (opened: OpenedLink, context: AuditContext, reply: FastifyReply): Promise<FastifyReply> => {
      if (opened.purpose === 'email-change') await move(opened, context)
      else {
        await useUp(opened, context)
        await verify(opened, context)
      }
      return reply.redirect(doneUrl(prefix, 'email', undefined), 303)
    },
  }
}
