import type { Command } from 'commander'

/** Claims of the profile scope that are plain text, OpenID Connect Core §5.4; each is a flag. */
const profileClaims = [
  'name',
  'given_name',
  'family_name',
  'middle_name',
  'nickname',
  'profile',
  'picture',
  'website',
  'gender',
  'birthdate',
  'zoneinfo',
  'locale',
]

/** Claims, under commander's names for their flags. */
export interface ClaimFlags {
  readonly [flag: string]: unknown
}

/** Adds a flag for each of them. */
export function addClaimFlags(command: Command): Command {
  for (const claim of profileClaims)
    command.option(`--${claim.replaceAll('_', '-')} <text>`, `the claim ${claim}`)
  return command
}

/** What these flags say, also that a claim is to be empty. */
export function claimsOf(flags: ClaimFlags): Readonly<Record<string, string>> {
  const claims: Record<string, string> = {}
  for (const claim of profileClaims) {
    const value = flags[claim.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase())]
    if (typeof value === 'string') claims[claim] = value.trim()
  }
  return claims
}

/** OpenID Connect Core §5.3.2: a claim without a value is left out, never empty. */
export function withoutEmpty(claims: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(claims).filter(([, value]) => value !== ''))
}
