import type { Seconds } from './model.ts'

/** A text for a user in the language of the page: its key, and the values of its placeholders. */
export interface Text {
  readonly key: string
  readonly with?: Values
}

/** The values of a text's placeholders, by name; `count` also selects its plural form. */
export type Values = Readonly<Record<string, Value>>

/**
 * One value for a user. A plain string counts as untrusted: it is shortened and isolated in its writing direction. All
 * others are written as in the language.
 */
export type Value =
  | string
  | number
  | Text
  /** A URL, set apart from words. */
  | { readonly host: string }
  /** Text for machines. */
  | { readonly code: string }
  /** The target of the marked words of the text. */
  | { readonly link: string }
  /** "3 days ago". */
  | { readonly ago: Seconds }
  /** "in 2 minutes". */
  | { readonly in: Seconds }
  /** "90 days". */
  | { readonly duration: Seconds }
  /** The day of an instant. */
  | { readonly date: Seconds }
  /** Day and time of an instant, UTC. */
  | { readonly moment: Seconds }
  | { readonly list: readonly Value[] }
