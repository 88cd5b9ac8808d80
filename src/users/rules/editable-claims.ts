import { type TextClaim, textFault } from '../../domain/claims.ts'
import type { UserClaims } from '../../domain/model.ts'

/** What is wrong with the text of a claim. */
export type ClaimFault = 'tooLong' | 'invisible' | 'url' | 'birthdate' | 'zoneinfo' | 'locale'

const longestUrl = 2048

/** What is wrong with this text as that claim, OpenID Connect Core §5.1; empty takes the claim away. */
export function claimFault(claim: TextClaim, text: string): ClaimFault | undefined {
  if (text === '') return undefined
  const fault = textFault(text, isUrl(claim) ? longestUrl : undefined)
  if (fault !== undefined) return fault
  if (isUrl(claim)) return isWebAddress(text) ? undefined : 'url'
  if (claim === 'birthdate') return isBirthdate(text) ? undefined : 'birthdate'
  if (claim === 'zoneinfo') return isTimeZone(text) ? undefined : 'zoneinfo'
  if (claim === 'locale') return isLocale(text) ? undefined : 'locale'
  return undefined
}

/** Returns the claims that differ from the user's present ones. */
export function changedClaims(
  before: UserClaims,
  wanted: Readonly<Partial<Record<TextClaim, string>>>,
): Readonly<Partial<Record<TextClaim, string>>> {
  return Object.fromEntries(Object.entries(wanted).filter(([claim, text]) => text !== (before[claim] ?? '')))
}

function isUrl(claim: TextClaim): boolean {
  return claim === 'profile' || claim === 'picture' || claim === 'website'
}

function isWebAddress(text: string): boolean {
  return /^https?:\/\/[^/?#@]+(?:[/?#].*)?$/i.test(text) && URL.canParse(text)
}

/** ISO 8601 `YYYY-MM-DD`, year `0000` where it is left out, or a year alone. */
function isBirthdate(text: string): boolean {
  const match = /^\d{4}(?:-(\d\d)-(\d\d))?$/.exec(text)
  if (match === null) return false
  const [, month = '01', day = '01'] = match
  const days = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][Number(month) - 1]
  return days !== undefined && Number(day) >= 1 && Number(day) <= days
}

function isTimeZone(text: string): boolean {
  return text.includes('/') && accepts(() => new Intl.DateTimeFormat('en', { timeZone: text }))
}

function isLocale(text: string): boolean {
  return accepts(() => Intl.getCanonicalLocales(text))
}

function accepts(attempt: () => unknown): boolean {
  try {
    attempt()
    return true
  } catch {
    return false
  }
}
