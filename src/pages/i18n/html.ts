import type { TextEntry } from '../../config/schema.ts'
import type { Seconds } from '../../domain/model.ts'
import type { Text, Value, Values } from '../../domain/text.ts'

/**
 * A text in one language, as markup and as plain text. Only this file creates it: everything foreign in `html` is
 * escaped.
 */
export class Html {
  readonly html: string
  readonly text: string

  constructor(html: string, text: string) {
    this.html = html
    this.text = text
  }

  toString(): string {
    return this.text
  }
}

/** A language, and its texts. */
export interface Locale {
  /** The locale for Intl, such as `en-GB`. */
  readonly locale: string
  readonly direction: 'ltr' | 'rtl'
  /** @throws {Error} if there is no such text. */
  entry(key: string): TextEntry
  /** Values for every text. */
  readonly always: Values
}

/** Returns a function that calls `make` once for each key. */
export function memoize<T>(make: (key: string) => T): (key: string) => T {
  const made = new Map<string, T>()
  return (key) => {
    const value = made.get(key) ?? make(key)
    made.set(key, value)
    return value
  }
}

const longestName = 60
const longestHost = 120

/** Renders a text with its values. @throws {Error} if a value is missing. */
export function render(locale: Locale, { key, with: given = {} }: Text): Html {
  const values = { ...locale.always, ...given }
  const entry = locale.entry(key)
  const sentence = typeof entry === 'string' ? entry : pluralForm(locale, entry, values['count'])
  const parts = sentence.split(/(\{\w+\}|<\/?\w+>)/).map((part) => {
    const [, name] = /^\{(\w+)\}$/.exec(part) ?? []
    if (name !== undefined) return renderValue(locale, required(values, name, key))
    const [, slash, element] = /^<(\/?)(\w+)>$/.exec(part) ?? []
    if (element !== undefined) return new Html(tag(element, slash === '/', values, key), '')
    return literal(part)
  })
  return join(parts)
}

/** Renders a value by itself. */
export function renderValue(locale: Locale, value: Value): Html {
  if (typeof value === 'string') return name(locale, shorten(value, longestName))
  if (typeof value === 'number') return literal(numberFormat(locale.locale).format(value))
  if ('key' in value) return render(locale, value)
  if ('host' in value) return name(locale, shorten(value.host, longestHost), ' class="host"')
  if ('code' in value) return new Html(`<code>${escapeMarkup(value.code)}</code>`, value.code)
  if ('link' in value) return literal(value.link)
  if ('list' in value) return renderList(locale, value.list)
  return literal(renderTime(locale.locale, value))
}

/** Escapes a value for a template, RFC 6749 §10.14; a rendered text is markup already. */
export function escapeForPage(value: unknown): string {
  return value instanceof Html ? value.html : escapeMarkup(String(value))
}

/** Escapes a text for an element or an attribute. */
function escapeMarkup(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? '')
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

function literal(text: string): Html {
  return new Html(escapeMarkup(text), text)
}

function join(parts: readonly Html[]): Html {
  return new Html(parts.map(({ html }) => html).join(''), parts.map(({ text }) => text).join(''))
}

/** Isolates foreign text, so that it does not change the writing direction of the text around it. */
function name({ direction }: Locale, text: string, attributes = ''): Html {
  const turns = direction === 'rtl' || /[^\0-\u02ff]/.test(text)
  return new Html(`<bdi${attributes}>${escapeMarkup(text)}</bdi>`, turns ? `\u2068${text}\u2069` : text)
}

function tag(element: string, closes: boolean, values: Values, key: string): string {
  if (element === 'b') return closes ? '</strong>' : '<strong>'
  const value = required(values, element, key)
  if (typeof value !== 'object' || !('link' in value)) throw new Error(`${key}: <${element}> needs a link`)
  // Any other scheme, such as javascript:, gets no link.
  if (!/^(?:https?:\/\/|\/(?!\/))/i.test(value.link)) return ''
  return closes ? '</a>' : `<a href="${escapeMarkup(value.link)}">`
}

function required(values: Values, name: string, key: string): Value {
  const value = values[name]
  if (value === undefined) throw new Error(`${key}: nothing was given for ${name}`)
  return value
}

function pluralForm({ locale }: Locale, forms: Exclude<TextEntry, string>, count: Value | undefined): string {
  const number = typeof count === 'number' ? count : 0
  return forms[pluralRules(locale).select(number)] ?? forms.other ?? ''
}

function renderList(locale: Locale, values: readonly Value[]): Html {
  const words = values.map((value) => renderValue(locale, value))
  let next = 0
  const parts = list(locale.locale)
    .formatToParts(words.map(String))
    .map(({ type, value }) => (type === 'element' ? (words[next++] ?? literal(value)) : literal(value)))
  return join(parts)
}

// To make one costs far more than to use it, and a page may have hundreds of times.
const numberFormat = memoize((locale) => new Intl.NumberFormat(locale))
const pluralRules = memoize((locale) => new Intl.PluralRules(locale))
const relativeTime = memoize((locale) => new Intl.RelativeTimeFormat(locale))
const list = memoize((locale) => new Intl.ListFormat(locale, { type: 'conjunction' }))
const date = memoize((locale) => new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeZone: 'UTC' }))
const moment = memoize(
  (locale) => new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' }),
)

type Time = Extract<Value, Partial<Record<'ago' | 'in' | 'duration' | 'date' | 'moment', Seconds>>>

function renderTime(locale: string, value: Exclude<Time, string | number | Text>): string {
  if ('date' in value) return date(locale).format(value.date * 1000)
  if ('moment' in value) return `${moment(locale).format(value.moment * 1000)} UTC`
  if ('duration' in value) {
    const [count, unit] = largestUnit(value.duration)
    const style = { style: 'unit', unitDisplay: 'long', unit } as const
    return new Intl.NumberFormat(locale, style).format(Math.floor(count))
  }
  if ('in' in value) {
    const [count, unit] = largestUnit(value.in)
    // Arabic has one word for "within" and "in"; the text tells users to come back after.
    return relativeTime(locale).format(Math.ceil(count), unit).replace('خلال', 'بعد')
  }
  const [count, unit] = largestUnit(value.ago)
  return relativeTime(locale).format(-Math.floor(count), unit)
}

function largestUnit(seconds: Seconds): readonly [number, 'day' | 'hour' | 'minute' | 'second'] {
  if (seconds >= 86_400) return [seconds / 86_400, 'day']
  if (seconds >= 3600) return [seconds / 3600, 'hour']
  if (seconds >= 60) return [seconds / 60, 'minute']
  return [seconds, 'second']
}

/** Shortens foreign text for a sentence. */
function shorten(text: string, length: number): string {
  const characters = [...text]
  return characters.length > length ? `${characters.slice(0, length - 1).join('')}…` : text
}
