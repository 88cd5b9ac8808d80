import type { Static, TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { nearest } from '../config/error.ts'
import { OAuthError } from '../domain/errors.ts'
import { isObject } from '../domain/is-object.ts'
import { parseJson } from '../domain/strict-json.ts'
import { demandOf } from '../settings/options.ts'

/** How large a body for the routes below /_dev may be. */
export const bodyBytes = 1_048_576

/**
 * Returns the body if it matches the schema; without a body, an empty object.
 * @throws {OAuthError} `invalid_request` with the member, and the member that was probably meant.
 */
export function requireBody<T extends TSchema>(schema: T, body: unknown): Static<T> {
  const given = body ?? {}
  const [fault] = faultsOf(schema, given)
  if (fault === undefined) return given as Static<T> // faultsOf has compared the two
  throw new OAuthError('invalid_request', `${fault.where || 'the body'} ${fault.why}`, {
    rule: 'lychgate-dev-body',
  })
}

/** One difference between a value and its schema. */
export interface Fault {
  /** A path such as `users.0.email`; for an unknown member, the path of its object. */
  readonly where: string
  /** The rest of the sentence. */
  readonly why: string
}

/** Compares a value with its schema; yields at most one fault per place. */
export function* faultsOf(schema: TSchema, value: unknown): Generator<Fault> {
  const seen = new Set<string>()
  for (const { path, schema: expected, value: actual } of Value.Errors(schema, value)) {
    if (seen.has(path)) continue
    seen.add(path)
    const names = path.split('/').slice(1)
    const parent = schemaAt(schema, names.slice(0, -1))
    const memberNames = Object.keys(parent?.properties ?? {})
    const last = names.at(-1)
    const isUnknown =
      last !== undefined && parent?.additionalProperties === false && !memberNames.includes(last)
    if (isUnknown) yield { where: names.slice(0, -1).join('.'), why: unknownMember(last, memberNames) }
    else yield { where: names.join('.'), why: actual === undefined ? 'is missing' : demandOf(expected) }
  }
}

function unknownMember(name: string, names: readonly string[]): string {
  const meant = nearest(name, names)
  return `has a member that does not exist here; ${meant === undefined ? `there are ${names.join(', ')}` : `did you mean ${meant}?`}`
}

function schemaAt(schema: TSchema, path: readonly string[]): TSchema | undefined {
  return path.reduce<TSchema | undefined>(
    (at, name) => (at?.type === 'array' ? at.items : at?.properties?.[name]),
    schema,
  )
}

/** The members of a JSON object; undefined for anything else. */
export function objectOf(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value = parseJson(text)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
