import { accept, type Decision } from './decision.ts'
import { OAuthError } from './errors.ts'
import type { Account, AccountClaims, Seconds } from './model.ts'

/** What an operator says about a new person. */
export interface NewAccount {
  readonly username: string
  readonly email?: string | undefined
  readonly emailVerified?: boolean
  /** PHC string, argon2id. */
  readonly passwordHash: string
  /** Further standard claims, OpenID Connect Core §5.1. */
  readonly claims?: AccountClaims
  readonly seeded?: boolean
}

const longestUsername = 128
/** RFC 5321 §4.5.3.1.3: a path of 256 characters, less its angle brackets. */
const longestEmail = 254
/** Control, bidirectional, zero-width and other invisible characters, and every kind of space. */
const invisible = /[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/u

/** The one spelling of a user name: trimmed, NFKC, lower case; undefined when it cannot be one. */
export function canonicalUsername(text: string): string | undefined {
  const name = canonical(text, longestUsername)
  return name === '' || invisible.test(name) ? undefined : name
}

/** The one spelling of an e-mail address, to compare and to sign in with; undefined when it cannot be one. */
export function canonicalEmail(text: string): string | undefined {
  const address = canonical(text, longestEmail)
  return /^[^@]+@[^@]+$/.test(address) && !invisible.test(address) ? address : undefined
}

/** What a person typed to sign in, as the store knows it: a user name or an e-mail address. */
export function canonicalLogin(text: string): string | undefined {
  return canonicalUsername(text) ?? canonicalEmail(text)
}

/**
 * A new person. The id, 128 random bits, is their `sub`, OpenID Connect Core §2, never derived from a name: removed and
 * added again is somebody else.
 * @param fresh 16 random bytes.
 * @throws {OAuthError} `invalid_request` for a user name or e-mail address that cannot be one.
 */
export function createAccount(person: NewAccount, fresh: Buffer, now: Seconds): Account {
  const username = canonicalUsername(person.username)
  if (username === undefined) {
    throw new OAuthError(
      'invalid_request',
      'username must have 1 to 128 characters, none of them invisible or a space',
      { rule: 'lychgate-account-username' },
    )
  }
  const email = person.email === undefined ? undefined : canonicalEmail(person.email)
  if (person.email !== undefined && email === undefined) {
    throw new OAuthError('invalid_request', 'email must be an e-mail address', {
      rule: 'oidc-core-5.1-email-syntax',
    })
  }
  // Both are ways to sign in: nobody may take another person's address as a user name.
  if (username.includes('@') && username !== email) {
    throw new OAuthError(
      'invalid_request',
      'username may be an e-mail address only if it is the email of the same person',
      { rule: 'lychgate-account-username' },
    )
  }
  return {
    id: `person_${fresh.toString('base64url')}`,
    username,
    ...(email !== undefined && { email }),
    passwordHash: person.passwordHash,
    claims: {
      ...person.claims,
      preferred_username: username,
      ...(email !== undefined && { email, email_verified: person.emailVerified ?? false }),
      updated_at: now,
    },
    seeded: person.seeded ?? false,
    createdAt: now,
    updatedAt: now,
  }
}

/** Sets a password and ends every session: whoever knew the old one is out. */
export function changePassword(account: Account, passwordHash: string, now: Seconds): Decision<Account> {
  const changed = { ...account, passwordHash, updatedAt: now }
  return accept(
    changed,
    { op: 'updateAccount', account: changed },
    { op: 'deleteSessionsOf', accountId: account.id },
  )
}

/** NFKC can follow from lower case too: once more makes it stable. */
function canonical(text: string, longest: number): string {
  // NFKC makes one character eighteen at most; longer text cannot become short enough to matter.
  if (text.length > 4 * longest) return ''
  const folded = text.normalize('NFKC').toLowerCase().normalize('NFKC').trim()
  return [...folded].length > longest ? '' : folded
}
