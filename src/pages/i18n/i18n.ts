/**
 * What is said to users, in their language. A page asks for a text by its key and never holds words itself; the files
 * are views/texts/*.json. A language is read when it is first needed.
 */
import type { Text, Value, Values } from '../../domain/text.ts'
import { type Catalogue, type Key, readCatalogue, shippedLanguages } from './catalogue.ts'
import { type Html, type Locale, render, renderValue } from './html.ts'

/** Texts of an operator in place of the shipped ones: by language, by key. */
export type TextOverrides = Readonly<Record<string, Catalogue>>

/** Everything that can be said in one language. */
export interface Translator {
  /** The tag for `lang` and `Content-Language`. */
  readonly language: string
  readonly direction: 'ltr' | 'rtl'
  /** A text of the catalogue with its places filled. */
  t(text: Key | Text, values?: Values): Html
  /** A value by itself: a name, a date, a list. */
  show(value: Value): Html
}

/** The languages there are, and what can be said in each. */
export interface I18n {
  readonly languages: readonly string[]
  in(language: string): Translator
}

/** Shipped first, then those an operator wrote. */
export function languagesOf(overrides: TextOverrides = {}): readonly string[] {
  return [...new Set([...shippedLanguages, ...Object.keys(overrides)])]
}

/**
 * The texts of one installation.
 * @param always Values every text may use, such as the name of the service.
 */
export function createI18n(always: Values, overrides: TextOverrides = {}): I18n {
  const catalogues = new Map<string, Catalogue>()
  const catalogueOf = (language: string): Catalogue => {
    const known = catalogues.get(language)
    if (known !== undefined) return known
    const catalogue = { ...readCatalogue(language), ...overrides[language] }
    catalogues.set(language, catalogue)
    return catalogue
  }
  const translators = new Map<string, Translator>()
  return {
    languages: languagesOf(overrides),
    in: (language) => {
      const known = translators.get(language)
      if (known !== undefined) return known
      const translator = createTranslator(language, always, catalogueOf)
      translators.set(language, translator)
      return translator
    },
  }
}

function createTranslator(
  language: string,
  always: Values,
  catalogueOf: (language: string) => Catalogue,
): Translator {
  const own = catalogueOf(language)
  const direction = rightToLeft.includes(language) ? 'rtl' : 'ltr'
  const locale: Locale = {
    locale: locales[language] ?? language,
    direction,
    always,
    entry: (key) => {
      const entry = own[key] ?? catalogueOf('en')[key]
      if (entry === undefined) throw new Error(`there is no text ${key}`)
      return entry
    },
  }
  return {
    language,
    direction,
    t: (text, values) =>
      render(locale, typeof text === 'string' ? { key: text, ...(values && { with: values }) } : text),
    show: (value) => renderValue(locale, value),
  }
}

const rightToLeft = ['ar', 'dv', 'fa', 'he', 'ps', 'sd', 'ug', 'ur', 'yi']

/** Where Intl needs more than the language: our English is British, and digits are those users type here. */
const locales: Readonly<Record<string, string>> = { en: 'en-GB', ar: 'ar-u-nu-latn' }
