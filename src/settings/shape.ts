import { Value, type ValueError } from '@sinclair/typebox/value'
import { suggestion } from '../config/error.ts'
import type { Given } from './environment.ts'
import type { Section } from './file.ts'
import { ConfigSchema, confidentialPaths, configOptions, demandOf, schemaAt } from './options.ts'

/** Yields a line for each setting that the schema rejects, with the name of its flag, variable or file. */
export function* shapeFaults(
  values: Section,
  overrides: readonly Given[],
  file: string | undefined,
): Generator<string> {
  const complete = Value.Default(ConfigSchema, Value.Clone(values))
  const seen = new Set<string>()
  for (const fault of Value.Errors(ConfigSchema, complete)) {
    // One is enough: a missing member is also a member of the wrong type.
    if (seen.has(fault.path)) continue
    seen.add(fault.path)
    yield faultLine(fault, overrides, file)
  }
}

function faultLine({ path, value }: ValueError, values: readonly Given[], file: string | undefined): string {
  const names = path.split('/').slice(1).map(unescapePointer)
  const option = names.join('.')
  const source =
    values.findLast((one) => option === one.path || option.startsWith(`${one.path}.`))?.name ?? file
  const where = source === undefined ? option : `${option} (${source})`
  const schema = schemaAt(names)
  if (schema === undefined) {
    const siblings = Object.keys(schemaAt(names.slice(0, -1))?.properties ?? {})
    const name = names.at(-1) ?? ''
    return `${where}: there is no such option${suggestion(name, siblings) || elsewhere(name)}`
  }
  if (value === undefined) return `${where}: is missing`
  // YAML reads an unquoted #rrggbb as a comment.
  if (value === null && schema.type === 'string')
    return `${where}: has no value; put what begins with # in quotes`
  return `${where}: ${demandOf(schema)}${shown(option, value)}`
}

/** A setting that was written without its section, or in another one. */
function elsewhere(name: string): string {
  const option = configOptions().find(({ path }) => path.endsWith(`.${name}`))
  return option === undefined ? '' : `; did you mean ${option.path}?`
}

function shown(option: string, value: unknown): string {
  const isShort = typeof value === 'number' || typeof value === 'boolean' || typeof value === 'string'
  return isShort && !confidentialPaths.includes(option) ? `, not ${JSON.stringify(value).slice(0, 60)}` : ''
}

/** RFC 6901 §4. */
function unescapePointer(token: string): string {
  return token.replaceAll('~1', '/').replaceAll('~0', '~')
}
