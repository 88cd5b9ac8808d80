import type { AuditContext } from '../../domain/audit.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { OneTimeLink, User } from '../../domain/model.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import { hashSecret } from '../../domain/secret.ts'
import type { Text } from '../../domain/text.ts'
import { createUser } from '../../users/rules/user.ts'
import { msg } from '../i18n/i18n.ts'

/** What the user of a link typed about themselves. */
export interface TypedProfile {
  readonly username: string
  readonly email: string
  readonly givenName: string
  readonly familyName: string
}

/** Reads the profile of a form. */
export function readProfile(form: Parameters): TypedProfile {
  const text = (name: string) => (single(form, name) ?? '').trim()
  return {
    username: text('username'),
    email: text('email'),
    givenName: legible(text('given_name')),
    familyName: legible(text('family_name')),
  }
}

/** Returns a name without invisible characters, and no longer than pages show it. */
function legible(name: string): string {
  return [...name.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '')].slice(0, 100).join('')
}

/** What is typed replaces the name that an operator gave; the whole name follows. */
export function namesOf({ givenName, familyName }: TypedProfile): Readonly<Record<string, string>> {
  if (givenName === '' && familyName === '') return {}
  const name = [givenName, familyName].filter(Boolean).join(' ')
  const parts = { given_name: givenName, family_name: familyName, name }
  return Object.fromEntries(Object.entries(parts).filter(([, text]) => text !== ''))
}

/**
 * Creates the first user as typed. The id follows from the link: a passkey belongs to it before there is a user, and a
 * second attempt replaces the first one's on the device.
 * @throws {OAuthError} `invalid_request` for a user name or email address that cannot be one.
 */
export function firstUser(
  typed: TypedProfile,
  link: Pick<OneTimeLink, 'id'>,
  { at }: Pick<AuditContext, 'at'>,
  passwordHash?: string,
): User {
  const { username, email } = typed
  const fresh = Buffer.from(hashSecret(`first user ${link.id}`), 'base64url').subarray(0, 16)
  const described = {
    username,
    ...(email !== '' && { email }),
    ...(passwordHash !== undefined && { passwordHash }),
    claims: namesOf(typed),
  }
  return createUser(described, fresh, at)
}

/** Returns why the first user cannot be created as typed. */
export function firstUserProblem(typed: TypedProfile, link: Pick<OneTimeLink, 'id'>): Text | undefined {
  try {
    firstUser(typed, link, { at: 0 })
    return undefined
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    return msg(error.detail.rule === 'oidc-core-5.1-email-syntax' ? 'email.invalid' : 'link.username.invalid')
  }
}
