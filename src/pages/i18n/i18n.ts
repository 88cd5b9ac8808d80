/** The texts of pages and emails in every language: views/texts/*.json. A language is read when it is first needed. */

import type { TextEntry } from '../../config/schema.ts'
import type { Text, Value, Values } from '../../domain/text.ts'
import { readTextAsset } from '../../system/assets.ts'
import { type Html, type Locale, memoize, render, renderValue } from './html.ts'

/** The key of a text. English has every key. */
export type Key = keyof typeof import('../../../views/texts/en.json', { with: { type: 'json' }})

/** The texts of one language. */
export type Catalogue = Readonly<Record<string, TextEntry>>

/** An operator's texts in place of the shipped ones: by language, by key. */
export type TextOverrides = Readonly<Record<string, Catalogue>>

/** Translates into one language. */
export interface Translator {
  /** The tag for `lang` and `Content-Language`. */
  readonly language: string
  readonly direction: 'ltr' | 'rtl'
  /** Returns a text of the catalogue with its values. */
  t(text: Key | Text, values?: Values): Html
  /** Returns a value by itself: a name, a date, a list. */
  show(value: Value): Html
}

/** The languages of an installation, and a translator for each. */
export interface I18n {
  readonly languages: readonly string[]
  /** Whether there is a text with this key. */
  has(key: string): key is Key
  in(language: string): Translator
}

/** The shipped languages; each has every key. */
export const shippedLanguages = ['en', 'de', 'fr', 'es', 'pt', 'ja', 'ar'] as const

/** Returns a text by its key, with its values. */
export function msg(key: Key, values?: Values): Text {
  return values === undefined ? { key } : { key, with: values }
}

/** Reads the shipped texts of a language; none for a language that is not shipped. */
export function readCatalogue(language: string): Catalogue {
  if (!shippedLanguages.some((shipped) => shipped === language)) return {}
  return JSON.parse(readTextAsset(`views/texts/${language}.json`)) as Catalogue // a test verifies the form of each
}

/** Returns the shipped languages, then languages that only the operator has texts for. */
export function languagesOf(overrides: TextOverrides = {}): readonly string[] {
  return [...new Set([...shippedLanguages, ...Object.keys(overrides)])]
}

/**
 * Returns the texts of an installation.
 * @param always Values for every text, such as the name of the service.
 */
export function createI18n(always: Values, overrides: TextOverrides = {}): I18n {
  const catalogueOf = memoize((language) => ({ ...readCatalogue(language), ...overrides[language] }))
  const translatorOf = (language: string): Translator => {
    const own: Catalogue = catalogueOf(language)
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
  return {
    languages: languagesOf(overrides),
    has: (key): key is Key => Object.hasOwn(catalogueOf('en'), key),
    in: memoize(translatorOf),
  }
}

const rightToLeft = ['ar', 'dv', 'fa', 'he', 'ps', 'sd', 'ug', 'ur', 'yi']

/** Where Intl needs more than the language: our English is British, and Arabic has the digits that users type here. */
const locales: Readonly<Record<string, string>> = { en: 'en-GB', ar: 'ar-u-nu-latn' }
