import { greetMailServer, MailFailed, senderOf } from '../../mail/mailer.ts'
import { type Finding, ok, problem, setting } from './finding.ts'
import type { Setup } from './setup.ts'

/** Checks that the mail server accepts this sender, if one is configured; sends no email. */
export async function examineMail({ config }: Pick<Setup, 'config'>): Promise<readonly Finding[]> {
  const sender = senderOf(config)
  if (sender === undefined) return []
  const { host } = new URL(sender.url)
  try {
    await greetMailServer(sender)
    return [ok('mail', `${host} accepts email from ${sender.from}`)]
  } catch (error) {
    if (!(error instanceof MailFailed)) throw error
    const detail = {
      expected: 'a mail server that lets this sender in',
      found: error.message.replace(/^mail: /, ''),
      change: setting('mail.url', 'smtps://USER:PASSWORD@HOST:465'),
    }
    return [problem('mail', 'cannot be sent', detail)]
  }
}
