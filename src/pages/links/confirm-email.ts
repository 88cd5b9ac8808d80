import type { FastifyInstance, FastifyReply } from 'fastify'
import { auditEvent } from '../../domain/audit.ts'
import { withWrites } from '../../domain/decision.ts'
import type { Needs } from '../../feature/deps.ts'
import { linkPath } from '../../users/one-time-links.ts'
import { unusableLink } from '../../users/rules/one-time-link.ts'
import { moveEmail, verifyEmail } from '../../users/rules/user.ts'
import type { FormModel } from '../forms.ts'
import { claimAddress, type OpenedLink, redirectToDone, useUp } from './open-link.ts'

declare module '../pages.ts' {
  interface Pages {
    /** Asks whether the address is the user's: programs open links, too, so opening alone verifies nothing. */
    'link-email': FormModel & { readonly email: string; readonly username: string }
  }
}

/** Verifies an address by a link that was sent to it: `email_verified`, OpenID Connect Core §5.1. */
export function confirmEmail(app: FastifyInstance, { service, store }: Needs<'store' | 'service'>) {
  const { prefix } = service

  const verify = async ({ link, context }: OpenedLink): Promise<void> => {
    const { userId = '', email = '' } = link
    await store.transact('user', userId, (current) => {
      if (current === undefined || current.email !== email) throw unusableLink()
      return withWrites(
        verifyEmail(current, email, context.at),
        auditEvent('user-email-verified', context, { userId }),
      )
    })
  }

  /** Emails the old address first: if that fails, nothing changes. */
  const move = async (opened: OpenedLink): Promise<void> => {
    const { link, user, context } = opened
    const { userId = '', email = '' } = link
    const undo = user && (await app.emails.announceChange(user, context))
    await useUp(store, opened)
    const moved = store.transact('user', userId, (current) => {
      if (current === undefined || current.lockedAt !== undefined) throw unusableLink()
      if (current.email !== user?.email) throw unusableLink()
      return withWrites(
        moveEmail(current, email, context.at, undo),
        auditEvent('user-changed', context, { userId, changed: 'email' }),
        auditEvent('user-email-verified', context, { userId }),
      )
    })
    await claimAddress(moved)
  }

  return {
    show: ({ purpose, link, hidden, user, reply }: OpenedLink): FastifyReply => {
      const { email } = link
      if (user === undefined || email === undefined) throw unusableLink()
      // The user has another address by now, which this link does not verify.
      if (purpose === 'email-verification' && user.email !== email) throw unusableLink()
      const { username } = user
      return reply.page('link-email', { action: `${prefix}${linkPath}`, hidden, email, username })
    },

    submit: async (opened: OpenedLink): Promise<FastifyReply> => {
      if (opened.purpose === 'email-change') await move(opened)
      else {
        await useUp(store, opened)
        await verify(opened)
      }
      return redirectToDone(opened, prefix, 'email')
    },
  }
}
