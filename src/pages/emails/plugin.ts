/**
 * Emails to users from the running server: a decorator for the pages that send one. What an email's link opens is
 * decided in pages/links.
 */

import fp from 'fastify-plugin'
import type { AuditContext } from '../../domain/audit.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { OneTimeLink, Seconds, User } from '../../domain/model.ts'
import { secretBytes } from '../../domain/secret.ts'
import type { Needs } from '../../feature/deps.ts'
import { MailFailed, sendEmail, senderOf } from '../../outbound/mailer.ts'
import { givenLink, makeLink } from '../../users/one-time-links.ts'
import { mintLink } from '../../users/rules/one-time-link.ts'
import { countEmail, emailBucket, throttleKind, tooManyEmails } from '../../users/rules/throttle.ts'
import { composeEmail, type EmailFacts } from './emails.ts'

declare module 'fastify' {
  interface FastifyInstance {
    readonly emails: Emails
  }
}

/** What the server writes to users. */
export interface Emails {
  /** Whether a mail server is set; without one nothing can be sent. */
  readonly canSend: boolean
  /**
   * Counts an email that a user asks for.
   * @throws {OAuthError} `temporarily_unavailable` with status 429 after too many.
   */
  count(userId: string, now: Seconds): Promise<void>
  /**
   * Sends a link with which the user proves that the present email address of the account is theirs.
   * @throws {OAuthError} `temporarily_unavailable`: 503 when it could not be sent.
   */
  verifyEmail(user: User, context: AuditContext): Promise<void>
  /** The same with a link to a new password, counted. */
  resetPassword(user: User, context: AuditContext, hints?: EmailHints): Promise<void>
  /** The same to another address, with a link that makes it the address of the account. */
  changeEmail(user: User, email: string, context: AuditContext): Promise<void>
  /**
   * Tells the present address that it is about to be replaced or removed. Where it is proven, the email has a link to
   * undo that, which is returned and stored together with the change.
   * @throws {OAuthError} `temporarily_unavailable`: 503 when it could not be sent.
   */
  announceChange(user: User, context: AuditContext): Promise<OneTimeLink | undefined>
  /** Tells the owner of an address that another account asked for it; not more often than users ask for emails. */
  tellTaken(owner: User, now: Seconds): Promise<void>
}

/** What is known where an email is requested. */
export interface EmailHints {
  /** For the page that the link opens. */
  readonly query?: Readonly<Record<string, string>>
  /** Of the request; the user's own takes precedence. */
  readonly language?: string
}

/** Decorates `app.emails`. */
export const emails = fp<Needs<'config' | 'store' | 'random'>>(
  async (app, deps) => {
    const { config, store, random } = deps
    const sender = senderOf(config)

    const count = async (userId: string, now: Seconds): Promise<void> => {
      const isDue = await store.transact(throttleKind, emailBucket(userId), (throttle) =>
        countEmail(throttle, userId, now),
      )
      if (!isDue) throw tooManyEmails()
    }

    const deliver = async (facts: Omit<EmailFacts, 'language'>, language = config.service.language) => {
      if (sender === undefined) throw undelivered()
      try {
        await sendEmail(sender, composeEmail(config, { ...facts, language }))
      } catch (error) {
        if (!(error instanceof MailFailed)) throw error
        app.log.error(error.message)
        throw undelivered(error)
      }
    }

    const send = async (
      purpose: 'email-verification' | 'email-change' | 'password-reset',
      user: User,
      to: string | undefined,
      context: AuditContext,
      { query = {}, language }: EmailHints = {},
    ): Promise<void> => {
      if (sender === undefined || to === undefined) throw undelivered()
      const recipient = { purpose, userId: user.id, email: to }
      const link = await makeLink(deps, recipient, context, query)
      await deliver({ purpose, user, to, link }, language)
    }

    app.decorate('emails', {
      canSend: sender !== undefined,
      count,
      verifyEmail: (user, context) => send('email-verification', user, user.email, context),
      resetPassword: async (user, context, hints) => {
        await count(user.id, context.at)
        await send('password-reset', user, user.email, context, hints)
      },
      changeEmail: (user, email, context) => send('email-change', user, email, context),
      announceChange: async (user, { at }) => {
        const { id: userId, email, claims } = user
        if (email === undefined) return undefined
        if (claims['email_verified'] !== true) {
          await deliver({ purpose: 'email-changed', user, to: email })
          return undefined
        }
        const recipient = { userId, email }
        const minted = mintLink('email-undo', recipient, config.lifetimes, random(secretBytes), at)
        await deliver({ purpose: 'email-undo', user, to: email, link: givenLink(config, minted) })
        return minted.link
      },
      tellTaken: async (owner, now) => {
        if (owner.email === undefined || owner.lockedAt !== undefined) return
        await count(owner.id, now)
        await deliver({ purpose: 'email-taken', user: owner, to: owner.email })
      },
    })
  },
  { name: 'emails' },
)

function undelivered(cause?: MailFailed): OAuthError {
  return new OAuthError('temporarily_unavailable', 'the email could not be sent', {
    rule: 'lychgate-letter-sent',
    headers: { 'retry-after': '60' },
    ...(cause && { cause }),
  })
}
