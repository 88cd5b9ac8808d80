import { Type } from '@sinclair/typebox'
import { parse } from 'yaml'
import { ConfigError, readText } from '../config/error.ts'
import type { Attribute } from '../domain/attributes.ts'
import { OAuthError } from '../domain/errors.ts'
import { createUser } from '../users/rules/user.ts'
import { faultsOf } from './json-body.ts'
import { DevelopmentUser } from './users.ts'

const UsersFile = Type.Object(
  { users: Type.Array(DevelopmentUser, { minItems: 1 }) },
  { additionalProperties: false },
)

/**
 * Reads the users of a YAML or JSON file.
 * @throws {ConfigError} with a line for every fault.
 */
export function readUsers(path: string, declared: readonly Attribute[]): readonly DevelopmentUser[] {
  const text = readText(path, 'users')
  let content: unknown
  try {
    content = parse(text)
  } catch (cause) {
    const [reason = ''] = String(cause instanceof Error ? cause.message : cause).split('\n')
    throw new ConfigError(`users: ${path} is not valid YAML: ${reason.replace(/:$/, '')}`, { cause })
  }
  return requireUsers(content, path, declared)
}

/** @throws {ConfigError} unless `content` is `{ users: […] }` with valid users. */
export function requireUsers(
  content: unknown,
  path: string,
  declared: readonly Attribute[],
): readonly DevelopmentUser[] {
  const faults = [...faultsOf(UsersFile, content)].map(
    ({ where, why }) => `users (${path}): ${where ? `${where} ` : ''}${why}`,
  )
  if (faults.length > 0) throw new ConfigError(faults)
  // `as`: faultsOf has compared it with the schema.
  const { users } = content as { readonly users: readonly DevelopmentUser[] }
  const unfit = users.flatMap((user, index) => unfitness(user, users.slice(0, index), declared))
  if (unfit.length > 0) throw new ConfigError(unfit.map((line) => `users (${path}): ${line}`))
  return users
}

function unfitness(
  user: DevelopmentUser,
  before: readonly DevelopmentUser[],
  declared: readonly Attribute[],
): string[] {
  const { username, email, attributes: attributeValues = {} } = user
  if (before.some((other) => other.username === username)) return [`${username} is listed twice`]
  if (email !== undefined && before.some((other) => other.email === email))
    return [`${email} is listed twice`]
  try {
    const attributes = { declared, assigned: attributeValues }
    createUser({ username, email, passwordHash: '', attributes }, Buffer.alloc(16), 0)
    return []
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    return [`${JSON.stringify(username)}: ${error.message}`]
  }
}
