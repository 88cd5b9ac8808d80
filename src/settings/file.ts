import type { TSchema } from '@sinclair/typebox'
import { parseDocument } from 'yaml'
import { ConfigError, readText } from '../config/error.ts'
import { isObject } from '../domain/is-object.ts'
import type { Given } from './environment.ts'
import { schemaAt } from './options.ts'

/** A section of the file during the merge. */
export interface Section {
  [name: string]: unknown
}

/**
 * The content of the YAML file.
 * @throws {ConfigError} when it cannot be read, is not YAML, or no mapping.
 */
export function readSections(path: string): Section {
  const document = parseDocument(readText(path, 'config'), { prettyErrors: true })
  const fault = document.errors[0] ?? document.warnings[0]
  if (fault)
    throw new ConfigError(`${path}: not valid YAML: ${fault.message.split('\n')[0]?.replace(/:$/, '')}`)
  const content: unknown = document.toJS() ?? {}
  if (!isObject(content)) throw new ConfigError(`${path}: must be a YAML mapping of options`)
  return content
}

/** Sets a value from a flag or variable at its place in the file; text is converted to a number or list only here. */
export function place(values: Section, { path, text, name: source }: Given): void {
  const names = path.split('.')
  const schema = schemaAt(names)
  const last = names.pop()
  if (schema === undefined || last === undefined) throw new ConfigError(`${source}: there is no such setting`)
  let section = values
  for (const name of names) {
    const inner = section[name] ?? {}
    // shapeFaults rejects a section that is no mapping, in the file's own terms.
    if (!isObject(inner)) return
    section[name] = inner
    section = inner
  }
  section[last] = parseText(text, schema)
}

function parseText(text: string, schema: TSchema): unknown {
  if (schema.type === 'integer' && /^-?\d+$/.test(text)) return Number(text)
  // An empty variable counts as absent, so an empty list is written as in the file.
  if (schema.type === 'array') return text.trim() === '[]' ? [] : text.split(',').map((entry) => entry.trim())
  return text
}

/** The value of an option, if it has one. */
export function valueAt(values: Readonly<Record<string, unknown>>, path: string): unknown {
  return path.split('.').reduce<unknown>((at, name) => (isObject(at) ? at[name] : undefined), values)
}
