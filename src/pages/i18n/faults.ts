import { suggestion } from '../../config/error.ts'
import type { TextEntry } from '../../config/schema.ts'
import { type Catalogue, readCatalogue, shippedLanguages, type TextOverrides } from './i18n.ts'

/** Plural forms, Unicode TR35 §5; every language has the last. */
const pluralForms = ['zero', 'one', 'two', 'few', 'many', 'other']

/** Yields the faults of an operator's texts, a line each. A fault would keep a page from being shown. */
export function* textFaults(overrides: TextOverrides): Generator<string> {
  if (Object.keys(overrides).length === 0) return
  const english = readCatalogue('en')
  for (const [language, texts] of Object.entries(overrides)) {
    if (!/^[a-z]{2,8}(?:-[a-z\d]{1,8})*$/.test(language)) {
      yield `texts.${language}: must be a language tag in lower case, such as de or pt-br`
      continue
    }
    for (const [key, entry] of Object.entries(texts)) yield* entryFaults(language, key, entry, english)
    yield* incompleteness(language, texts, english)
  }
}

function* entryFaults(
  language: string,
  key: string,
  entry: TextEntry,
  english: Catalogue,
): Generator<string> {
  const place = `texts.${language}: ${key}`
  const shipped = english[key]
  if (shipped === undefined) {
    yield `${place}: there is no such text${suggestion(key, Object.keys(english))}`
    return
  }
  const sentences = sentencesOf(entry)
  if (sentences === undefined) {
    yield `${place}: must be a sentence, or one for each plural form: ${pluralForms.join(', ')}`
    return
  }
  if (sentences.some((sentence) => sentence.trim() === '')) {
    yield `${place}: is empty; a button or a field would have no name`
    return
  }
  const known = new Set(['{service}', '<b>', '</b>', ...(sentencesOf(shipped)?.flatMap(placesIn) ?? [])])
  for (const name of new Set(sentences.flatMap(placesIn))) {
    if (!known.has(name)) yield `${place}: there is no ${name} to fill in; ${offered(known)}`
  }
}

/**
 * A language that is not shipped needs every text: its readers could not read English in their place. Those of the
 * admin pages may be missing: administrators read English there.
 */
function* incompleteness(language: string, texts: Catalogue, english: Catalogue): Generator<string> {
  if (shippedLanguages.some((shipped) => shipped === language)) return
  const missing = Object.keys(english).filter((key) => texts[key] === undefined && !key.startsWith('admin.'))
  if (missing.length === 0) return
  yield `texts.${language}: is not shipped and so needs every text; ${missing.length} are missing, the first is ${missing[0]}`
}

/** Returns the sentences of an entry; undefined if it is not one. It comes from a file, whatever its type. */
function sentencesOf(entry: unknown): readonly string[] | undefined {
  if (typeof entry === 'string') return [entry]
  if (typeof entry !== 'object' || entry === null || !('other' in entry)) return undefined
  const forms = Object.entries(entry)
  const sentences = forms.flatMap(([form, text]) =>
    pluralForms.includes(form) && typeof text === 'string' ? [text] : [],
  )
  return sentences.length === forms.length ? sentences : undefined
}

/** Returns the placeholders and elements of a sentence. */
function placesIn(sentence: string): readonly string[] {
  return sentence.match(/\{\w+\}|<\/?\w+>/g) ?? []
}

function offered(names: ReadonlySet<string>): string {
  return `it has ${[...names].filter((name) => !name.startsWith('</')).join(', ')}`
}
