import { readFileSync } from 'node:fs'
import type { TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { parseDocument } from 'yaml'
import { assertConsistent } from './checks.ts'
import { ConfigError } from './error.ts'
import { confidentialPaths, configOptions, demandOf, nearest, schemaAt, variableOf } from './options.ts'
import { type Config, ConfigSchema } from './schema.ts'

export { ConfigError } from './error.ts'

/** Where settings come from, the strongest first: flags, environment, file; the rest are defaults. */
export interface ConfigSources {
  readonly mode: Config['mode']
  /** By option path: `{ port: '9500' }`. */
  readonly flags?: Readonly<Record<string, string | undefined>>
  readonly environment?: Readonly<Record<string, string | undefined>>
  /** The YAML file; absent: the one LYCHGATE_CONFIG names, if any. */
  readonly file?: string | undefined
}

/** A section of the file while it is being put together. */
interface Section {
  [name: string]: unknown
}

/** A value and what the operator called it: the flag, the variable or the file. */
interface Given {
  readonly path: string
  readonly text: string
  readonly source: string
}

const prefix = 'LYCHGATE_'
const fileVariable = `${prefix}CONFIG`
const secretFileVariables = confidentialPaths.map((path) => `${variableOf(path)}_FILE`)

/**
 * The configuration of this process: complete, valid and consistent.
 * @throws {ConfigError} one line that names the setting and what to write instead.
 */
export function loadConfig({ mode, flags = {}, environment = {}, file }: ConfigSources): Config {
  assertKnownVariables(environment)
  const path = file ?? (environment[fileVariable] || undefined)
  const values = path === undefined ? {} : readFile(path)
  const given = [...fromEnvironment(environment), ...fromFlags(flags)]
  for (const one of given) place(values, one)
  assertShape(values, given, path)
  // A development server on another port is another issuer; production says its issuer itself.
  if (mode === 'dev' && values.issuer === undefined && values.port !== undefined) {
    values.issuer = new URL(`http://localhost:${values.port}`).origin
  }
  // `as`: assertShape has checked it against this very schema.
  const config = { ...(Value.Default(ConfigSchema, values) as Omit<Config, 'mode'>), mode }
  assertConsistent(config)
  return config
}

/** The address of the store: as configured, else lychgate.db in the data folder. */
export function storeUrl(config: Pick<Config, 'store' | 'data'>): string {
  return config.store ?? `sqlite:${config.data}/lychgate.db`
}

function readFile(path: string): Section {
  const document = parseDocument(readText(path, 'config'), { prettyErrors: true })
  const fault = document.errors[0] ?? document.warnings[0]
  if (fault)
    throw new ConfigError(`${path}: not valid YAML: ${fault.message.split('\n')[0]?.replace(/:$/, '')}`)
  const content: unknown = document.toJS() ?? {}
  if (!isSection(content)) throw new ConfigError(`${path}: must be a YAML mapping of options`)
  return content
}

function readText(path: string, setting: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unreadable'
    throw new ConfigError(`${setting}: cannot read ${path} (${reason})`, { cause })
  }
}

function assertKnownVariables(environment: Readonly<Record<string, string | undefined>>): void {
  const options = configOptions().flatMap(({ variable }) => variable ?? [])
  const known = [fileVariable, ...secretFileVariables, ...options]
  for (const name of Object.keys(environment)) {
    if (!name.startsWith(prefix) || known.includes(name)) continue
    const list = configOptions().find(({ path }) => variableOf(path) === name)
    if (list)
      throw new ConfigError(`${name}: ${list.path} is a list that only the configuration file can carry`)
    throw new ConfigError(`${name}: there is no such setting${suggestion(name, known)}`)
  }
}

/** An empty variable is an absent one: compose files and shells cannot leave one out. */
function fromEnvironment(environment: Readonly<Record<string, string | undefined>>): Given[] {
  const plain = configOptions().flatMap(({ path, variable }): Given[] => {
    const text = variable && environment[variable]
    return variable && text ? [{ path, text, source: variable }] : []
  })
  const fromFiles = confidentialPaths.flatMap((path): Given[] => {
    const [variable, source] = [variableOf(path), `${variableOf(path)}_FILE`]
    const name = environment[source]
    if (!name) return []
    if (environment[variable])
      throw new ConfigError(`${source}: ${variable} is set as well; keep one of them`)
    // Editors and `echo` end a file with a line break that is not part of the secret.
    return [{ path, text: readText(name, source).replace(/\r?\n$/, ''), source }]
  })
  return [...plain, ...fromFiles]
}

function fromFlags(flags: Readonly<Record<string, string | undefined>>): Given[] {
  return Object.entries(flags).flatMap(([path, text]) =>
    text === undefined ? [] : [{ path, text, source: `--${path}` }],
  )
}

/** Puts a value from a flag or variable where the file would have it; only here is text turned into a number or list. */
function place(values: Section, { path, text, source }: Given): void {
  const names = path.split('.')
  const schema = schemaAt(names)
  const last = names.pop()
  if (schema === undefined || last === undefined) throw new ConfigError(`${source}: there is no such setting`)
  let section = values
  for (const name of names) {
    const inner = section[name] ?? {}
    // A section that is no mapping is refused by assertShape, in the file's own terms.
    if (!isSection(inner)) return
    section[name] = inner
    section = inner
  }
  section[last] = parseText(text, schema)
}

function parseText(text: string, schema: TSchema): unknown {
  if (schema.type === 'integer' && /^-?\d+$/.test(text)) return Number(text)
  if (schema.type === 'array') return text.split(',').map((entry) => entry.trim())
  return text
}

function assertShape(values: Section, given: readonly Given[], file: string | undefined): void {
  const complete = Value.Default(ConfigSchema, Value.Clone(values))
  const fault = Value.Errors(ConfigSchema, complete).First()
  if (fault === undefined) return
  const names = fault.path.split('/').slice(1).map(unescapePointer)
  const option = names.join('.')
  const source =
    given.findLast(({ path }) => option === path || option.startsWith(`${path}.`))?.source ?? file
  const where = source === undefined ? option : `${option} (${source})`
  const schema = schemaAt(names)
  if (schema === undefined) {
    const siblings = Object.keys(schemaAt(names.slice(0, -1))?.properties ?? {})
    throw new ConfigError(`${where}: there is no such setting${suggestion(names.at(-1) ?? '', siblings)}`)
  }
  if (fault.value === undefined) throw new ConfigError(`${where}: is missing`)
  throw new ConfigError(`${where}: ${demandOf(schema)}${shown(option, fault.value)}`)
}

function shown(option: string, value: unknown): string {
  const isShort = typeof value === 'number' || typeof value === 'boolean' || typeof value === 'string'
  return isShort && !confidentialPaths.includes(option) ? `, not ${JSON.stringify(value).slice(0, 60)}` : ''
}

function suggestion(name: string, candidates: readonly string[]): string {
  const best = nearest(name, candidates)
  return best === undefined ? '' : `; did you mean ${best}?`
}

/** RFC 6901 §4. */
function unescapePointer(token: string): string {
  return token.replaceAll('~1', '/').replaceAll('~0', '~')
}

function isSection(value: unknown): value is Section {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
