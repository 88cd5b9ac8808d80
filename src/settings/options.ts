import { type TSchema, Type } from '@sinclair/typebox'
import { CommonSettings } from '../config/schema.ts'
import { joined } from '../feature/feature.ts'
import { features } from '../features.ts'

/** Every option: the common ones, and a section for each feature that has any. */
export const ConfigSchema = Type.Object(
  { ...CommonSettings.properties, ...joined(features, ({ settings }) => settings) },
  { additionalProperties: false },
)

/** One option for the operator: its path in the file, its variable, and its allowed values. */
export interface ConfigOption {
  /** `lifetimes.codeSeconds`; members of a list entry are written `resources[].identifier`. */
  readonly path: string
  /** Absent for options that only the file can carry. */
  readonly variable?: string
  readonly schema: TSchema
}

/** Settings that may hold a password: each has a variable ending in `_FILE`, and no message shows their value. */
export const confidentialPaths: readonly string[] = ['store', 'secret', 'mail.url', 'backup.secretKey']

/** What options were called in an earlier version: files and variables may still have that name. */
export const formerPaths: Readonly<Record<string, string>> = { rejectionsKept: 'refusalsKept' }

/** Whether the members of this schema are options; a record is one option, whatever it contains. */
export function isSection(schema: TSchema): boolean {
  return schema.type === 'object' && schema.properties !== undefined
}

/** Every option of ConfigSchema in its order, sections and list entries resolved to their members. */
export function configOptions(): readonly ConfigOption[] {
  return optionsOf(ConfigSchema, '')
}

/** The environment variable of an option: `lifetimes.codeSeconds` is LYCHGATE_LIFETIMES_CODE_SECONDS. */
export function variableOf(path: string): string {
  return `LYCHGATE_${path
    .replaceAll('.', '_')
    .replace(/[A-Z]/g, (capital) => `_${capital}`)
    .toUpperCase()}`
}

/** Returns the schema at a path of the file, list positions included; undefined where there is none. */
export function schemaAt(path: readonly string[]): TSchema | undefined {
  let schema: TSchema | undefined = ConfigSchema
  for (const name of path) {
    schema = schema?.type === 'array' ? schema.items : (memberOf(schema, name) ?? recordOf(schema))
  }
  return schema
}

/** Returns what a schema requires, as the end of a sentence: `must be an integer from 1 to 600`. */
export function demandOf(schema: TSchema): string {
  if (schema.anyOf) return `must be ${alternatives(schema.anyOf.map(choiceOf))}`
  if (schema.const !== undefined) return `must be ${schema.const}`
  if (schema.type === 'array') return 'must be a list'
  if (schema.type === 'boolean') return 'must be true or false'
  if (schema.type === 'object') return 'must be a section of named options'
  if (schema.type === 'integer') return `must be an integer${range(schema)}`
  if (schema.pattern) return 'must be text of printable ASCII without spaces, quotes and backslashes'
  if (schema.minLength > 1) return `must be text of at least ${schema.minLength} characters`
  return schema.minLength === 1 ? 'must be text, and not empty' : 'must be text'
}

function optionsOf(section: TSchema, prefix: string): ConfigOption[] {
  const members: [string, TSchema][] = Object.entries(section.properties)
  return members.flatMap(([name, schema]) => {
    const path = prefix + name
    if (isSection(schema)) return optionsOf(schema, `${path}.`)
    if (schema.type === 'object') return [{ path, schema }]
    if (schema.type === 'array' && schema.items.type === 'object') {
      return [{ path, schema }, ...optionsOf(schema.items, `${path}[].`)]
    }
    // A variable cannot name a list entry.
    return [path.includes('[]') ? { path, schema } : { path, schema, variable: variableOf(path) }]
  })
}

/** A member with a language tag has the schema of the one without. */
function memberOf(schema: TSchema | undefined, name: string): TSchema | undefined {
  const [plain = name] = name.split('#')
  return schema?.properties?.[plain]
}

/** Returns the schema of the members of a record. */
function recordOf(schema: TSchema | undefined): TSchema | undefined {
  const [member]: TSchema[] = Object.values(schema?.patternProperties ?? {})
  return member
}

function choiceOf(schema: TSchema): string {
  return schema.type === 'integer' ? demandOf(schema).replace('must be ', '') : String(schema.const)
}

function range({ minimum, maximum }: TSchema): string {
  if (minimum !== undefined && maximum !== undefined) return ` from ${minimum} to ${maximum}`
  return minimum === undefined ? '' : ` of at least ${minimum}`
}

function alternatives(names: readonly string[]): string {
  const last = names.at(-1) ?? ''
  return names.length < 2 ? last : `${names.slice(0, -1).join(', ')} or ${last}`
}
