import type { Config } from '../../config/schema.ts'
import { chooseLanguage } from '../../domain/language.ts'
import type { AuditEvent, LinkPurpose, Seconds, User } from '../../domain/model.ts'
import type { Email } from '../../outbound/mailer.ts'
import type { GivenLink } from '../../users/one-time-links.ts'
import { escapeForPage } from '../i18n/html.ts'
import { createI18n, type Translator } from '../i18n/i18n.ts'

/** What an email with a link is about. */
export interface EmailFacts {
  readonly purpose: Exclude<LinkPurpose, 'first-user'> | 'email-changed' | 'email-taken'
  readonly user: User
  /** The address it goes to. */
  readonly to: string
  /** Absent: there is nothing to do. */
  readonly link?: GivenLink
  /** Where the user's `locale` says nothing. */
  readonly language: string
}

/** The sentences of an email. */
interface EmailParts {
  readonly subject: string
  readonly greeting: string
  readonly reason: string
  readonly button?: string
  readonly notes: readonly string[]
}

/** Composes the email of a link in the user's language, without anything that is fetched, counted or tracked. */
export function composeEmail(
  { service, texts }: Pick<Config, 'service' | 'texts'>,
  facts: EmailFacts,
): Email {
  const translator = translatorFor({ service, texts }, facts.user, facts.language)
  const parts = partsOf(translator, facts)
  const url = facts.link?.url
  return {
    to: facts.to,
    subject: parts.subject,
    text: asText(parts, url),
    html: asHtml(translator, parts, url),
  }
}

/** A change of an account that its user gets an email about. */
export type NoticeKind = 'password' | 'codes' | 'passkey' | 'token' | 'upstream' | 'address' | 'browser'

/** What an email about a change says. */
export interface NoticeFacts {
  readonly notices: readonly NoticeKind[]
  readonly user: User
  readonly to: string
  readonly at: Seconds
  readonly by: AuditEvent['by']
  /** "Firefox, Linux". */
  readonly browser?: string | undefined
}

/** Composes an email about what happened to an account. It has nothing secret, and a link to the account page only. */
export function composeNotice(
  { service, texts, issuer }: Pick<Config, 'service' | 'texts' | 'issuer'>,
  { notices, user, to, at, by, browser }: NoticeFacts,
): Email {
  const translator = translatorFor({ service, texts }, user, service.language)
  const { t } = translator
  const { username } = user
  const isSignIn = notices.includes('browser')
  const parts = {
    subject: t(isSignIn ? 'mail.notice.signIn' : 'mail.notice.subject').text,
    greeting: t('mail.hello', { name: nameOf({ purpose: 'password-reset', user, to }) }).text,
    reason: notices.map((kind) => t(`mail.notice.${kind}`, { username }).text).join(' '),
    button: t('link.account').text,
    notes: [
      t('mail.notice.when', { time: { moment: at } }).text,
      ...(browser === undefined ? [] : [t('mail.notice.from', { browser }).text]),
      ...(by === 'operator' ? [t('mail.notice.byOperator').text] : []),
      t('mail.notice.advice').text,
    ],
  }
  const url = `${issuer}/account`
  return { to, subject: parts.subject, text: asText(parts, url), html: asHtml(translator, parts, url) }
}

/** Composes an email that only says that emails arrive. */
export function composeTestEmail(
  { service, texts }: Pick<Config, 'service' | 'texts'>,
  user: User,
  to: string,
): Email {
  const translator = translatorFor({ service, texts }, user, service.language)
  const { t } = translator
  const greeting = t('mail.hello', { name: user.username }).text
  const parts = {
    subject: t('mail.test.subject').text,
    greeting,
    reason: t('mail.test.reason').text,
    notes: [],
  }
  return {
    to,
    subject: parts.subject,
    text: asText(parts, undefined),
    html: asHtml(translator, parts, undefined),
  }
}

/** Returns the language of the user's profile, else the fallback. */
function translatorFor({ service, texts }: Pick<Config, 'service' | 'texts'>, user: User, fallback: string) {
  const all = createI18n({ service: service.name }, texts)
  const { locale } = user.claims
  const uiLocales = typeof locale === 'string' ? [locale.replaceAll('_', '-')] : []
  return all.in(chooseLanguage({ uiLocales, acceptLanguage: undefined }, all.languages, fallback))
}

const kinds = {
  invitation: 'invitation',
  'password-reset': 'reset',
  'email-verification': 'verify',
  'email-change': 'verify',
  'email-undo': 'undo',
} as const

function partsOf({ t }: Translator, facts: EmailFacts): EmailParts {
  const { purpose, user, link } = facts
  const { username } = user
  const greeting = t('mail.hello', { name: nameOf(facts) }).text
  if (purpose === 'email-changed' || purpose === 'email-taken' || link === undefined) {
    const [subject, reason] =
      purpose === 'email-taken'
        ? [t('mail.taken.subject'), t('mail.taken.reason', { username })]
        : [t('mail.undo.subject'), t('mail.changed.reason', { username })]
    return { subject: subject.text, greeting, reason: reason.text, notes: [] }
  }
  const kind = kinds[purpose]
  return {
    subject: t(`mail.${kind}.subject`).text,
    greeting,
    reason: t(`mail.${kind}.reason`, { username }).text,
    button: t(`mail.${kind}.button`).text,
    notes: [t('mail.once', { time: { duration: link.seconds } }).text, t(`mail.${kind}.ignore`).text],
  }
}

/**
 * Returns the name an email greets. Users write their `name` themselves: it goes only to their own proven address, or
 * the operator wrote it in the invitation. Otherwise anybody could send text of their own to any address under this
 * sender.
 */
function nameOf({ purpose, user, to }: Pick<EmailFacts, 'purpose' | 'user' | 'to'>): string {
  const { username, email, claims } = user
  const isProven = claims['email_verified'] === true && to === email
  const isTheirs = purpose === 'invitation' || (purpose === 'password-reset' && isProven)
  return isTheirs ? String(claims['name'] ?? username) : username
}

function asText({ greeting, reason, notes }: EmailParts, url: string | undefined): string {
  return `${[greeting, reason, ...(url === undefined ? [] : [url]), ...notes].join('\n\n')}\n`
}

function asHtml(
  { language, direction }: Translator,
  { subject, greeting, reason, button = '', notes }: EmailParts,
  url: string | undefined,
): string {
  const paragraph = (html: string) => `<p style="margin:0 0 1em">${html}</p>`
  const address = escapeForPage(url ?? '')
  const link = `<a href="${address}" style="display:inline-block;padding:.6em 1.2em;border-radius:6px;background:#1f3d7a;color:#fff;text-decoration:none">${escapeForPage(button)}</a>`
  const links = url === undefined ? [] : [link, `<small>${address}</small>`]
  const body = [escapeForPage(greeting), escapeForPage(reason), ...links, ...notes.map(escapeForPage)]
  return `<!doctype html>
<html lang="${language}" dir="${direction}">
<head><meta charset="utf-8"><title>${escapeForPage(subject)}</title></head>
<body style="font-family:system-ui,sans-serif;line-height:1.5;max-width:36em;margin:2em auto;padding:0 1em">
${body.map(paragraph).join('\n')}
</body>
</html>
`
}
