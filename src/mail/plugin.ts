/**
 * Letters to people from the running server: a decorator for the pages that ask for one. What a letter's link opens is
 * decided in one-time-links.
 */
import fp from 'fastify-plugin'
import type { AppDeps } from '../deps.ts'
import type { Occasion } from '../domain/audit.ts'
import { OAuthError } from '../domain/errors.ts'
import { countLetter, letterBucket, tooManyLetters } from '../domain/letter-throttle.ts'
import type { Account, OneTimeLink, Seconds } from '../domain/model.ts'
import { mintLink } from '../domain/one-time-link.ts'
import { secretBytes } from '../domain/secret.ts'
import type { LetterFacts } from './letters.ts'
import { givenLink, makeLink, sendLink } from './links.ts'
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
   * Counts an e-mail that a user asks for.
   * @throws {OAuthError} `temporarily_unavailable` with status 429 after too many.
   */
  count(accountId: string, now: Seconds): Promise<void>
  /**
   * Sends a link with which the user proves that the present e-mail address of the account is theirs.
   * @throws {OAuthError} `temporarily_unavailable`: 503 when it could not be sent.
   */
  verifyEmail(account: Account, occasion: Occasion): Promise<void>
  /** The same with a link to a new password, counted. */
  resetPassword(account: Account, occasion: Occasion, hints?: LetterHints): Promise<void>
  /** The same to another address, with a link that makes it the address of the account. */
  changeEmail(account: Account, email: string, occasion: Occasion): Promise<void>
  /**
   * Tells the present address that it is about to be replaced or removed. Where it is proven, the e-mail has a link to
   * undo that, which is returned and stored together with the change.
   * @throws {OAuthError} `temporarily_unavailable`: 503 when it could not be sent.
   */
  announceChange(account: Account, occasion: Occasion): Promise<OneTimeLink | undefined>
  /** Tells the owner of an address that another account asked for it; not more often than users ask for e-mails. */
  tellTaken(owner: Account, now: Seconds): Promise<void>
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
    const { config, store, random } = deps
    const sender = senderOf(config)

    const count = async (accountId: string, now: Seconds): Promise<void> => {
      const isDue = await store.transact('throttle', letterBucket(accountId), (throttle) =>
        countLetter(throttle, accountId, now),
      )
      if (!isDue) throw tooManyLetters(3600)
    }

    const deliver = async (facts: Omit<LetterFacts, 'language'>, language = config.service.language) => {
      if (sender === undefined) throw undelivered()
      try {
        await sendLink(sender, config, { ...facts, language })
      } catch (error) {
        if (!(error instanceof MailFailed)) throw error
        app.log.error(error.message)
        throw undelivered(error)
      }
    }

    const send = async (
      purpose: 'email-verification' | 'email-change' | 'password-reset',
      account: Account,
      to: string | undefined,
      occasion: Occasion,
      { query = {}, language }: LetterHints = {},
    ): Promise<void> => {
      if (sender === undefined || to === undefined) throw undelivered()
      const whom = { purpose, accountId: account.id, email: to }
      const link = await makeLink(deps, whom, occasion, query)
      await deliver({ purpose, account, to, link }, language)
    }

    app.decorate('letters', {
      canSend: sender !== undefined,
      count,
      verifyEmail: (account, occasion) => send('email-verification', account, account.email, occasion),
      resetPassword: async (account, occasion, hints) => {
        await count(account.id, occasion.at)
        await send('password-reset', account, account.email, occasion, hints)
      },
      changeEmail: (account, email, occasion) => send('email-change', account, email, occasion),
      announceChange: async (account, { at }) => {
        const { id: accountId, email, claims } = account
        if (email === undefined) return undefined
        if (claims['email_verified'] !== true) {
          await deliver({ purpose: 'email-changed', account, to: email })
          return undefined
        }
        const whom = { accountId, email }
        const minted = mintLink('email-undo', whom, config.lifetimes, random(secretBytes), at)
        await deliver({ purpose: 'email-undo', account, to: email, link: givenLink(config, minted) })
        return minted.link
      },
      tellTaken: async (owner, now) => {
        if (owner.email === undefined || owner.lockedAt !== undefined) return
        await count(owner.id, now)
        await deliver({ purpose: 'email-taken', account: owner, to: owner.email })
      },
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
