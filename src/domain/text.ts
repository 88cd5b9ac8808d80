import type { Seconds } from './model.ts'

/** Something to be said to a user in the language of the page: a key of the texts, and what fills its places. */
export interface Text {
  readonly key: string
  readonly with?: Values
}

/** What fills the places of a text, by name; `count` also chooses its plural form. */
export type Values = Readonly<Record<string, Value>>

/**
 * One value for a user. A plain string counts as foreign: it is shortened and keeps its own writing direction. All
 * others are written as the language does it.
 */
export type Value =
  | string
  | number
  | Text
  /** An address on the net, set apart from words. */
  | { readonly host: string }
  /** Something for machines. */
  | { readonly code: string }
  /** Where the marked words of the text lead. */
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
