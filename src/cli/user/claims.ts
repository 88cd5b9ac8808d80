import type { Command } from 'commander'
import { textClaims } from '../../domain/claims.ts'
import { type ClaimFault, claimFault } from '../../users/rules/editable-claims.ts'
import { WrongUsage } from '../failure.ts'

/** Claims, under commander's names for their flags. */
export interface ClaimFlags {
  readonly [flag: string]: unknown
}

/** Adds a flag for each of them. */
export function addClaimFlags(command: Command): Command {
  for (const claim of textClaims)
    command.option(`--${claim.replaceAll('_', '-')} <text>`, `the claim ${claim}`)
  return command
}

const demands: Readonly<Record<ClaimFault, string>> = {
  tooLong: 'is too long',
  invisible: 'has characters that cannot be seen',
  url: 'must be an http or https URL',
  birthdate: 'must be YYYY-MM-DD, or a year alone',
  zoneinfo: 'must be a time zone, such as Europe/Berlin',
  locale: 'must be a language tag, such as de-CH',
}

/**
 * What these flags say, also that a claim is to be empty.
 * @throws {WrongUsage} for text that the claim cannot have.
 */
export function claimsOf(flags: ClaimFlags): Readonly<Record<string, string>> {
  const claims: Record<string, string> = {}
  for (const claim of textClaims) {
    const value = flags[claim.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())]
    if (typeof value !== 'string') continue
    const text = value.trim()
    const fault = claimFault(claim, text)
    if (fault !== undefined) throw new WrongUsage(`--${claim.replaceAll('_', '-')}: ${demands[fault]}`)
    claims[claim] = text
  }
  return claims
}

/** OpenID Connect Core §5.3.2: a claim without a value is left out, never empty. */
export function withoutEmpty(claims: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== ''))
}
