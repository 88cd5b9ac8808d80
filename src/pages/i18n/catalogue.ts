import { readTextAsset } from '../../assets.ts'
import type { TextEntry } from '../../config/schema.ts'
import type { Text, Values } from '../../domain/text.ts'

/** Every text there is, by its key; English is what the others are measured by. */
export type Key = keyof typeof import('../../../views/texts/en.json', { with: { type: 'json' }})

/** The texts of one language. */
export type Catalogue = Readonly<Record<string, TextEntry>>

/** The languages that are shipped; every key is in each of them. */
export const shippedLanguages = ['en', 'de', 'fr', 'es', 'pt', 'ja', 'ar'] as const

/** A text to be said, with what fills its places. */
export function msg(key: Key, values?: Values): Text {
  return values === undefined ? { key } : { key, with: values }
}

/** The shipped texts of a language; none for a language that is not shipped. */
export function readCatalogue(language: string): Catalogue {
  if (!shippedLanguages.some((shipped) => shipped === language)) return {}
  return JSON.parse(readTextAsset(`views/texts/${language}.json`)) as Catalogue // a test holds each to this form
}
