import { Type } from '@sinclair/typebox'
import { auditEvent } from '../../domain/audit.ts'
import { MailFailed, sendEmail, senderOf } from '../../outbound/mailer.ts'
import { composeTestEmail } from '../../pages/emails/emails.ts'
import { findUser, type Operation } from './operation.ts'
import { conflict } from './rules.ts'

const SentEmail = Type.Object({ sent_to: Type.String() }, { title: 'SentEmail', additionalProperties: false })

/** It goes to the address of a user, and not to any: the server sends nothing for strangers. */
export const sendTestEmail: Operation = {
  operationId: 'sendTestEmail',
  area: 'users',
  kind: 'act',
  url: '/users/:sub/test-email',
  delegates: false,
  summary: 'Send a test email to a user; the response says whether the mail server took it',
  response: SentEmail,
  async perform(call, keep) {
    const { config } = call.deps
    const user = await findUser(call)
    const sender = senderOf(config)
    if (sender === undefined) throw conflict('no email can be sent: set mail.url and mail.from')
    if (user.email === undefined) throw conflict('the user has no email address')
    try {
      await sendEmail(sender, composeTestEmail(config, user, user.email))
    } catch (error) {
      if (!(error instanceof MailFailed)) throw error
      // The characters of an error_description, RFC 6749 §5.2.
      throw conflict(error.message.replaceAll(/[^\x20\x21\x23-\x5b\x5d-\x7e]/g, "'"))
    }
    const kept = { status: 200, body: { sent_to: user.email }, headers: {}, userId: user.id }
    await call.store.write(auditEvent('email-tested', call.context, { userId: user.id }), ...keep(kept))
    return kept
  },
}
