import { Type } from '@sinclair/typebox'
import { parse } from 'yaml'
import { ConfigError, readText } from '../config/error.ts'
import { OAuthError } from '../domain/errors.ts'
import { createUser } from '../users/rules/user.ts'
import { faultsOf } from './json-body.ts'
import { DevelopmentUser } from './users.ts'

const UsersFile = Type.Object(
  { people: Type.Array(DevelopmentUser, { minItems: 1 }) },
  { additionalProperties: false },
)

/**
 * Reads the users of a YAML or JSON file.
 * @throws {ConfigError} with a line for every fault.
 */
export function readUsers(path: string): readonly DevelopmentUser[] {
  const text = readText(path, 'people')
  let content: unknown
  try {
    content = parse(text)
  } catch (cause) {
    const [reason = ''] = String(cause instanceof Error ? cause.message : cause).split('\n')
    throw new ConfigError(`people: ${path} is not valid YAML: ${reason.replace(/:$/, '')}`, { cause })
  }
  return requireUsers(content, path)
}

/** @throws {ConfigError} unless `content` is `{ people: […] }` with valid users. */
export function requireUsers(content: unknown, path: string): readonly DevelopmentUser[] {
  const faults = [...faultsOf(UsersFile, content)].map(
    ({ where, why }) => `people (${path}): ${where ? `${where} ` : ''}${why}`,
  )
  if (faults.length > 0) throw new ConfigError(faults)
  // `as`: faultsOf has compared it with the schema.
  const { people } = content as { readonly people: readonly DevelopmentUser[] }
  const unfit = people.flatMap((person, index) => unfitness(person, people.slice(0, index)))
  if (unfit.length > 0) throw new ConfigError(unfit.map((line) => `people (${path}): ${line}`))
  return people
}

function unfitness(person: DevelopmentUser, before: readonly DevelopmentUser[]): string[] {
  const { username, email } = person
  if (before.some((other) => other.username === username)) return [`${username} is listed twice`]
  if (email !== undefined && before.some((other) => other.email === email))
    return [`${email} is listed twice`]
  try {
    createUser({ username, email, passwordHash: '' }, Buffer.alloc(16), 0)
    return []
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    return [`${JSON.stringify(username)}: ${error.message}`]
  }
}
