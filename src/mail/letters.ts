import type { Account, LinkPurpose, Seconds } from '../domain/model.ts'
import type { Letter } from './mailer.ts'
import { type Words, wordsOf } from './words.ts'

/** What a letter with a link says beside it. */
export interface LetterFacts {
  readonly purpose: Exclude<LinkPurpose, 'first-person'>
  readonly service: string
  readonly account: Account
  readonly to: string
  readonly url: string
  /** For how long the link works. */
  readonly seconds: Seconds
}

/** The letter that carries a link, in the person's language; nothing in it is fetched, counted or followed. */
export function composeLetter(facts: LetterFacts): Letter {
  const words = wordsOf(facts)
  return {
    to: facts.to,
    subject: words.subject,
    text: asText(words, facts.url),
    html: asHtml(words, facts.url),
  }
}

function asText({ greeting, reason, notes }: Words, url: string): string {
  return `${[greeting, reason, url, ...notes].join('\n\n')}\n`
}

function asHtml({ language, subject, greeting, reason, button, notes }: Words, url: string): string {
  const paragraph = (html: string) => `<p style="margin:0 0 1em">${html}</p>`
  const address = markup(url)
  const link = `<a href="${address}" style="display:inline-block;padding:.6em 1.2em;border-radius:6px;background:#1f3d7a;color:#fff;text-decoration:none">${markup(button)}</a>`
  const body = [markup(greeting), markup(reason), link, `<small>${address}</small>`, ...notes.map(markup)]
  return `<!doctype html>
<html lang="${language}" dir="auto">
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
