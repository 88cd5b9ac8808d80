import type { Parameters } from './parameters.ts'

/** RFC 5646 §4.4.1: every language tag in use is shorter. */
const longestTag = 35
/** A browser of a real user names fewer languages than this. */
const mostTags = 20
/** How much of a header is parsed; browsers send a tenth of it. */
const longestHeader = 1000

const wellFormed = /^[a-z]{1,8}(?:-[a-z\d]{1,8})*$/i

/**
 * `ui_locales`, OpenID Connect Core §3.1.2.1: language tags by preference; anything else is ignored, never an error.
 */
export function parseUiLocales({ ui_locales: text }: Parameters): readonly string[] | undefined {
  if (typeof text !== 'string') return undefined
  const tags = text.slice(0, longestHeader).split(' ').filter(isTag).slice(0, mostTags)
  return tags.length > 0 ? tags : undefined
}

/** The inputs that select the language of a page. */
export interface RequestedLanguages {
  /** From the request of the client, first preference first. */
  readonly uiLocales: readonly string[] | undefined
  /** The header as received, RFC 9110 §12.5.4. */
  readonly acceptLanguage: string | undefined
}

/**
 * Selects the language of a page: the first available of `ui_locales`, OpenID Connect Core §3.1.2.1, else the best of
 * `Accept-Language`, else the fallback.
 * @param available In lower case, such as `de` and `pt-br`.
 */
export function chooseLanguage<L extends string>(
  { uiLocales = [], acceptLanguage }: RequestedLanguages,
  available: readonly L[],
  fallback: L,
): L {
  const asked = firstOf(uiLocales, available)
  if (asked !== undefined) return asked
  const ranges = acceptLanguage === undefined ? [] : parseAcceptLanguage(acceptLanguage)
  const rejected = ranges.filter(({ weight }) => weight === 0).map(({ range }) => lookUp(range, available))
  for (const { range, weight } of ranges) {
    if (weight === 0) continue
    // RFC 4647 §3.4: the wildcard means the fallback, unless that is excluded by name.
    const match =
      range === '*'
        ? [fallback, ...available].find((language) => !rejected.includes(language))
        : lookUp(range, available)
    if (match !== undefined) return match
  }
  return fallback
}

/** Returns the first requested language that is available (RFC 4647 §3.4). */
export function firstOf<L extends string>(
  requests: readonly string[],
  available: readonly L[],
): L | undefined {
  for (const requested of requests) {
    const found = lookUp(requested, available)
    if (found !== undefined) return found
  }
  return undefined
}

/** RFC 4647 §3.4: shortens the tag from its end until it names a language: `de-CH-1996`, `de-CH`, `de`. */
function lookUp<L extends string>(requested: string, available: readonly L[]): L | undefined {
  const subtags = requested.toLowerCase().split('-')
  const ranges = subtags.map((_, cut) => subtags.slice(0, subtags.length - cut).join('-'))
  for (const range of ranges) {
    const found = available.find((language) => language === range)
    if (found !== undefined) return found
  }
  return undefined
}

/** RFC 9110 §12.5.4, by weight; those of equal weight in their order. */
function parseAcceptLanguage(header: string): readonly { readonly range: string; readonly weight: number }[] {
  return header
    .slice(0, longestHeader)
    .split(',')
    .flatMap((part) => {
      const [range = '', parameter = 'q=1'] = part.split(';').map((text) => text.trim())
      const [, weight] = /^q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/i.exec(parameter) ?? []
      return weight !== undefined && (range === '*' || isTag(range))
        ? [{ range, weight: Number(weight) }]
        : []
    })
    .slice(0, mostTags)
    .sort((one, other) => other.weight - one.weight)
}

/** Whether a text has the form of a language tag, RFC 5646 §2.1. */
export function isTag(text: string): boolean {
  return text.length <= longestTag && wellFormed.test(text)
}
