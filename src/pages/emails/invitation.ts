import { type AuditContext, auditEvent } from '../../domain/audit.ts'
import type { Write } from '../../domain/decision.ts'
import type { Seconds, User } from '../../domain/model.ts'
import { secretBytes } from '../../domain/secret.ts'
import type { Needs } from '../../feature/deps.ts'
import { MailFailed, sendEmail, senderOf } from '../../outbound/mailer.ts'
import { givenLink } from '../../users/one-time-links.ts'
import { insertLink, mintLink } from '../../users/rules/one-time-link.ts'
import { composeEmail } from './emails.ts'

/** An invitation of a user who is being added: what to write with the user, and how to deliver it afterwards. */
interface NewInvitation {
  readonly writes: readonly Write[]
  readonly expiresAt: Seconds
  /** The link, for the caller to give to the user. */
  readonly shown: DeliveredInvitation
  /** Sends the link, or returns it if it cannot be sent: then the caller gives it to the user. */
  deliver(log: { error(line: string): void }): Promise<DeliveredInvitation>
}

/** Where an invitation went: to an address, or as a link to the caller. */
export interface DeliveredInvitation {
  readonly sent_to?: string
  readonly link?: string
  readonly expires_at: Seconds
}

/**
 * Creates an invitation, as `lychgate user invite` does, or a link to a new password, as `lychgate user reset-link`.
 * @param isSent Whether it is sent, if emails can be sent.
 */
export function createInvitation(
  { config, random }: Needs<'config' | 'random'>,
  user: User,
  isSent: boolean,
  context: AuditContext,
  purpose: 'invitation' | 'password-reset' = 'invitation',
): NewInvitation {
  const sender = isSent ? senderOf(config) : undefined
  const to = sender === undefined ? undefined : user.email
  const recipient = { userId: user.id, ...(to !== undefined && { email: to }) }
  const minted = mintLink(purpose, recipient, config.lifetimes, random(secretBytes), context.at)
  const link = givenLink(config, minted)
  const shown = { link: link.url, expires_at: link.expiresAt }
  return {
    writes: [insertLink(minted.link), auditEvent('link-made', context, { userId: user.id, purpose })],
    expiresAt: link.expiresAt,
    shown,
    deliver: async (log) => {
      if (sender === undefined || to === undefined) return shown
      const { language } = config.service
      try {
        await sendEmail(sender, composeEmail(config, { purpose, user, to, link, language }))
        return { sent_to: to, expires_at: link.expiresAt }
      } catch (error) {
        if (!(error instanceof MailFailed)) throw error
        log.error(error.message)
        return shown
      }
    },
  }
}
