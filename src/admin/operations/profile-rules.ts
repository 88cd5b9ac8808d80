import { check } from '../../domain/check.ts'
import type { TextClaim } from '../../domain/claims.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { passwordFault } from '../../users/passwords.ts'
import { claimFault } from '../../users/rules/editable-claims.ts'

/** The claims that an administrator of a group may change: they prove nothing, and give nothing. */
const names: readonly string[] = ['name', 'given_name', 'family_name', 'middle_name', 'nickname']

/** Checks that an administrator of a group sets nothing of a profile but names. */
export function assertNamesOnly(members: object): void {
  const others = Object.keys(members).filter((name) => !names.includes(name))
  check(
    others.length === 0,
    'lychgate-admin-delegate-names',
    'access_denied',
    'an administrator of a group sets the names of a user, and no other claim',
    { received: others },
  )
}

/** Checks that an administrator of a group invites into it. */
export function assertNamed(groupId: string | undefined): asserts groupId is string {
  check(
    groupId !== undefined,
    'lychgate-admin-delegate-invites',
    'access_denied',
    'an administrator of a group invites into it: name it in group_id',
  )
}

/** @throws {OAuthError} `invalid_request` for a password that users cannot choose themselves. */
export function assertPassword(password: string): void {
  const fault = passwordFault(password)
  check(
    fault === undefined,
    'lychgate-password-policy',
    'invalid_request',
    fault === 'length'
      ? 'password must have 8 to 256 characters'
      : 'password is one of the 3,000 most common ones; choose another',
  )
}

/** @throws {OAuthError} `invalid_request` for a text that the claim cannot have. */
export function readClaims(
  claims: Readonly<Record<string, string | undefined>>,
  of: 'new' | 'known' = 'known',
): Readonly<Record<string, string>> {
  const texts = Object.entries(omitUndefined(claims)).map(([name, text = '']) => [name, text.trim()] as const)
  for (const [name, text] of texts) {
    check(
      // `as`: the schema has no other.
      claimFault(name as TextClaim, text) === undefined,
      'oidc-core-5.1-claim-types',
      'invalid_request',
      `${name} cannot have this value`,
    )
  }
  // OpenID Connect Core §5.3.2: a claim without a value is left out.
  return Object.fromEntries(texts.filter(([, text]) => of === 'known' || text !== ''))
}
