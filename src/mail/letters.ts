import type { Config } from '../config/schema.ts'
import { chooseLanguage } from '../domain/language.ts'
import type { Account, LinkPurpose } from '../domain/model.ts'
import { createTexts, type Speech } from '../texts/texts.ts'
import type { GivenLink } from './given-link.ts'
import type { Letter } from './mailer.ts'

/** What a letter with a link is about. */
export interface LetterFacts {
  readonly purpose: Exclude<LinkPurpose, 'first-person'>
  readonly account: Account
  /** The address it goes to. */
  readonly to: string
  readonly link: GivenLink
  /** Where the person's `locale` says nothing. */
  readonly language: string
}

/** A letter's sentences, ready to read. */
interface Words {
  readonly subject: string
  readonly greeting: string
  readonly reason: string
  readonly button: string
  readonly notes: readonly string[]
}

/** The letter that carries a link, in the person's language; nothing in it is fetched, counted or followed. */
export function composeLetter(
  { service, texts }: Pick<Config, 'service' | 'texts'>,
  facts: LetterFacts,
): Letter {
  const all = createTexts({ service: service.name }, texts)
  const { locale } = facts.account.claims
  const uiLocales = typeof locale === 'string' ? [locale.replaceAll('_', '-')] : []
  const language = chooseLanguage({ uiLocales, acceptLanguage: undefined }, all.languages, facts.language)
  const speech = all.in(language)
  const words = wordsOf(speech, facts)
  const { url } = facts.link
  return { to: facts.to, subject: words.subject, text: asText(words, url), html: asHtml(speech, words, url) }
}

const kinds = { invitation: 'invitation', 'password-reset': 'reset', 'email-verification': 'verify' } as const

function wordsOf({ t }: Speech, { purpose, account, link }: LetterFacts): Words {
  const kind = kinds[purpose]
  const { username } = account
  const name = String(account.claims['name'] ?? username)
  return {
    subject: t(`mail.${kind}.subject`).text,
    greeting: t('mail.hello', { name }).text,
    reason: t(`mail.${kind}.reason`, { username }).text,
    button: t(`mail.${kind}.button`).text,
    notes: [t('mail.once', { time: { duration: link.seconds } }).text, t(`mail.${kind}.ignore`).text],
  }
}

function asText({ greeting, reason, notes }: Words, url: string): string {
  return `${[greeting, reason, url, ...notes].join('\n\n')}\n`
}

function asHtml(
  { language, direction }: Speech,
  { subject, greeting, reason, button, notes }: Words,
  url: string,
): string {
  const paragraph = (html: string) => `<p style="margin:0 0 1em">${html}</p>`
  const address = markup(url)
  const link = `<a href="${address}" style="display:inline-block;padding:.6em 1.2em;border-radius:6px;background:#1f3d7a;color:#fff;text-decoration:none">${markup(button)}</a>`
  const body = [markup(greeting), markup(reason), link, `<small>${address}</small>`, ...notes.map(markup)]
  return `<!doctype html>
<html lang="${language}" dir="${direction}">
<head><meta charset="utf-8"><title>${markup(subject)}</title></head>
<body style="font-family:system-ui,sans-serif;line-height:1.5;max-width:36em;margin:2em auto;padding:0 1em">
${body.map(paragraph).join('\n')}
</body>
</html>
`
}

function markup(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
