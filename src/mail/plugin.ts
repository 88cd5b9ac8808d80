/**
 * Letters to people from the running server: a decorator for the pages that ask for one. What a letter's link opens is
 * decided in one-time-links.
 */
import fp from 'fastify-plugin'
import type { AppDeps } from '../deps.ts'
import type { Occasion } from '../domain/audit.ts'
import { OAuthError } from '../domain/errors.ts'
import { countLetter, letterBucket, tooManyLetters } from '../domain/letter-throttle.ts'
import type { Account } from '../domain/model.ts'
import type { LetterFacts } from './letters.ts'
import { makeLink, sendLink } from './links.ts'
import { MailFailed, senderOf } from './mailer.ts'

declare module 'fastify' {
  interface FastifyInstance {
    readonly letters: Letters
  }
}

/** What the server writes to people. */
export interface Letters {
  /** Whether a mail server is set; without one nothing can be sent. */
  readonly canSend: boolean
  /**
   * Sends a link with which the person proves that the e-mail address of their account is theirs.
   * @throws {OAuthError} `temporarily_unavailable`: 429 after too many letters, 503 when it could not be sent.
   */
  verifyEmail(account: Account, occasion: Occasion): Promise<void>
  /** The same with a link to a new password. */
  resetPassword(account: Account, occasion: Occasion, hints?: LetterHints): Promise<void>
}

/** What is known where a letter is asked for. */
export interface LetterHints {
  /** For the page that the link opens. */
  readonly query?: Readonly<Record<string, string>>
  /** Of whoever asks; the person's own goes before. */
  readonly language?: string
}

/** Decorates `app.letters`. */
export const letters = fp<Pick<AppDeps, 'config' | 'store' | 'random'>>(
  async (app, deps) => {
    const { config, store } = deps
    const sender = senderOf(config)

    const send = async (
      purpose: Exclude<LetterFacts['purpose'], 'invitation'>,
      account: Account,
      occasion: Occasion,
      { query = {}, language = config.service.language }: LetterHints = {},
    ): Promise<void> => {
      const { id: accountId, email } = account
      if (sender === undefined || email === undefined) throw undelivered()
      const { at } = occasion
      const isDue = await store.transact('throttle', letterBucket(accountId), (throttle) =>
        countLetter(throttle, accountId, at),
      )
      if (!isDue) throw tooManyLetters(3600)
      const link = await makeLink(deps, { purpose, accountId, email }, occasion, query)
      try {
        await sendLink(sender, config, { purpose, account, to: email, link, language })
      } catch (error) {
        if (!(error instanceof MailFailed)) throw error
        app.log.error(error.message)
        throw undelivered(error)
      }
    }

    app.decorate('letters', {
      canSend: sender !== undefined,
      verifyEmail: (account, occasion) => send('email-verification', account, occasion),
      resetPassword: (account, occasion, hints) => send('password-reset', account, occasion, hints),
    })
  },
  { name: 'letters' },
)

function undelivered(cause?: MailFailed): OAuthError {
  return new OAuthError('temporarily_unavailable', 'the letter could not be sent', {
    rule: 'lychgate-letter-sent',
    headers: { 'retry-after': '60' },
    ...(cause && { cause }),
  })
}
