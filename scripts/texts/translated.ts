/**
 * Which English text each translation was made from: `translated.json` has, by key, the fingerprint of the English text
 * that all languages translate, or one by language where they differ. It is no part of a build.
 */

import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import type { TextEntry } from '../../src/config/schema.ts'
import { type Catalogue, shippedLanguages } from '../../src/pages/i18n/i18n.ts'

/** By key: a fingerprint for all languages, or one by language. */
export type Translated = Readonly<Record<string, string | Readonly<Record<string, string>>>>

/** The languages that English is translated to. */
export const translations: readonly string[] = shippedLanguages.filter((language) => language !== 'en')

const file = new URL('translated.json', import.meta.url)

/** Reads the record. */
export function readTranslated(): Translated {
  return JSON.parse(readFileSync(file, 'utf8')) as Translated // `settle` alone writes it
}

/** Writes the record. */
export function writeTranslated(record: Translated): void {
  writeFileSync(file, `${JSON.stringify(record, null, 2)}\n`)
}

/** Returns a line for each text whose translations were made from another English text, or for no text any more. */
export function* outdatedTexts(english: Catalogue, record: Translated): Generator<string> {
  for (const [key, text] of Object.entries(english)) {
    const now = fingerprint(text)
    const outdated = translations.filter((language) => madeFrom(record, key, language) !== now)
    if (outdated.length > 0) yield `${key}: out of date in ${outdated.join(', ')}. ${advice(key)}`
  }
  for (const key of Object.keys(record)) {
    if (!(key in english)) yield `${key}: recorded as translated, and not in English. ${advice(key)}`
  }
}

/** Returns the record after a translator has read these texts in these languages. A text that is gone is dropped. */
export function settle(
  english: Catalogue,
  record: Translated,
  keys: readonly string[],
  languages: readonly string[] = translations,
): Translated {
  const settled = Object.entries(english).flatMap(([key, text]) => {
    if (!keys.includes(key)) return record[key] === undefined ? [] : [[key, record[key]] as const]
    const now = fingerprint(text)
    const byLanguage = translations.flatMap((language) => {
      const from = languages.includes(language) ? now : madeFrom(record, key, language)
      return from === undefined ? [] : [[language, from] as const]
    })
    const isWhole = byLanguage.filter(([, from]) => from === now).length === translations.length
    return [[key, isWhole ? now : Object.fromEntries(byLanguage)] as const]
  })
  const gone = Object.entries(record).filter(([key]) => !(key in english) && !keys.includes(key))
  return Object.fromEntries([...settled, ...gone])
}

function madeFrom(record: Translated, key: string, language: string): string | undefined {
  const entry = record[key]
  return typeof entry === 'object' ? entry[language] : entry
}

function advice(key: string): string {
  return `Make each translation say what English says, then: npm run texts -- --settle ${key}`
}

/** A fingerprint instead of the text: a word that is replaced in every file would change both. */
function fingerprint(text: TextEntry): string {
  return createHash('sha256').update(JSON.stringify(text)).digest('hex').slice(0, 8)
}
