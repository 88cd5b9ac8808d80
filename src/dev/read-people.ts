import { Type } from '@sinclair/typebox'
import { parse } from 'yaml'
import { ConfigError } from '../config/error.ts'
import { readText } from '../config/read-text.ts'
import { createAccount } from '../domain/account.ts'
import { OAuthError } from '../domain/errors.ts'
import { faultsOf } from './json-body.ts'
import { DevelopmentPerson } from './people.ts'

const PeopleFile = Type.Object(
  { people: Type.Array(DevelopmentPerson, { minItems: 1 }) },
  { additionalProperties: false },
)

/**
 * The people of a YAML or JSON file.
 * @throws {ConfigError} a line for every fault: where it is, and what was probably meant.
 */
export function readPeople(path: string): readonly DevelopmentPerson[] {
  const text = readText(path, 'people')
  let content: unknown
  try {
    content = parse(text)
  } catch (cause) {
    const [reason = ''] = String(cause instanceof Error ? cause.message : cause).split('\n')
    throw new ConfigError(`people: ${path} is not valid YAML: ${reason.replace(/:$/, '')}`, { cause })
  }
  return requirePeople(content, path)
}

/** @throws {ConfigError} unless `content` is `{ people: […] }`, each of whom can be one. */
export function requirePeople(content: unknown, path: string): readonly DevelopmentPerson[] {
  const faults = [...faultsOf(PeopleFile, content)].map(
    ({ where, why }) => `people (${path}): ${where ? `${where} ` : ''}${why}`,
  )
  if (faults.length > 0) throw new ConfigError(faults)
  // `as`: faultsOf has compared the two.
  const { people } = content as { readonly people: readonly DevelopmentPerson[] }
  const unfit = people.flatMap((person, index) => unfitness(person, people.slice(0, index)))
  if (unfit.length > 0) throw new ConfigError(unfit.map((line) => `people (${path}): ${line}`))
  return people
}

function unfitness(person: DevelopmentPerson, before: readonly DevelopmentPerson[]): string[] {
  const { username, email } = person
  if (before.some((other) => other.username === username)) return [`${username} is listed twice`]
  if (email !== undefined && before.some((other) => other.email === email))
    return [`${email} is listed twice`]
  try {
    createAccount({ username, email, passwordHash: '' }, Buffer.alloc(16), 0)
    return []
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error
    return [`${JSON.stringify(username)}: ${error.message}`]
  }
}
