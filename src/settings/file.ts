import type { TSchema } from '@sinclair/typebox'
import { parseDocument } from 'yaml'
import { ConfigError, readSecret, readText } from '../config/error.ts'
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

/**
 * Takes `secretFile` and its like out of the file's content: the name of a file whose text is the setting `option`.
 * @throws {ConfigError} when it is no name, cannot be read, or the setting is in the content as well.
 */
export function takeReference(values: Section, option: string): Given[] {
  const names = option.split('.')
  const last = names.pop() ?? option
  const section = names.length === 0 ? values : valueAt(values, names.join('.'))
  const name = `${last}File`
  if (!isObject(section) || section[name] === undefined) return []
  const [reference, beside] = [section[name], section[last]]
  Reflect.deleteProperty(section, name)
  if (typeof reference !== 'string') throw new ConfigError(`${option}File: must be the name of a file`)
  if (beside !== undefined) throw new ConfigError(`${option}File: ${option} is set as well; keep one of them`)
  return [{ path: option, text: readSecret(reference, `${option}File`), kind: 'file', name: reference }]
}

/**
 * Gives an option of the file that has the name of an earlier version its present one.
 * @throws {ConfigError} when it has both.
 */
export function takeFormer(values: Section, path: string, former: string): void {
  if (values[former] === undefined) return
  if (values[path] !== undefined) throw new ConfigError(`${former}: ${path} is set as well; keep one of them`)
  values[path] = values[former]
  Reflect.deleteProperty(values, former)
}

/** Sets a value from a flag or variable at its place in the file; text is converted to a number or list only here. */
export function place(values: Section, { path, text, name: source }: Given): void {
  const names = path.split('.')
  const schema = schemaAt(names)
  const last = names.pop()
  if (schema === undefined || last === undefined) throw new ConfigError(`${source}: there is no such option`)
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
  const isNumber = [schema, ...(schema.anyOf ?? [])].some(({ type }) => type === 'integer')
  if (isNumber && /^-?\d+$/.test(text)) return Number(text)
  // An empty variable counts as absent, so an empty list is written as in the file.
  if (schema.type === 'array') return text.trim() === '[]' ? [] : text.split(',').map((entry) => entry.trim())
  return text
}

/** The value of an option, if it has one. */
export function valueAt(values: Readonly<Record<string, unknown>>, path: string): unknown {
  return path.split('.').reduce<unknown>((at, name) => (isObject(at) ? at[name] : undefined), values)
}
