import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, extname, join, resolve } from 'node:path'
import AjvCompiler from '@fastify/ajv-compiler'
import { type Document, LineCounter, parseDocument } from 'yaml'
import { ConfigError, readSecret, suggestion } from '../../config/error.ts'
import { isObject } from '../../domain/is-object.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { declared } from '../../features.ts'
import { strictSchemas } from '../../http/strict-schema.ts'
import { CommandFailed } from '../failure.ts'
import { type Entries, filesSchema, type Kind, kinds } from './schema.ts'

export type { Kind } from './schema.ts'

/** An entry of a file, and where it is. */
export interface Placed<T> {
  readonly entry: T
  /** `users.yaml:12`, for messages. */
  readonly where: string
  /** The name of the file, for the audit log. */
  readonly file: string
  /** Files that the entry names are relative to this folder. */
  readonly folder: string
}

/** The entries of all files. A kind that no file has is absent: it may have none, which is another thing. */
export type Wanted = { readonly [K in Kind]?: readonly Placed<Entries[K]>[] } & {
  /** The names of the files that have a kind. */
  readonly files: { readonly [K in Kind]?: readonly string[] }
}

/** What names an entry of a kind. */
const keys: Readonly<Record<Kind, readonly string[]>> = {
  groups: ['name', 'id'],
  users: ['username', 'sub'],
  clients: ['client_id'],
  upstreams: ['upstream_id', 'issuer'],
}

/**
 * Reads the files, and those of the folders, with these names.
 * @throws {ConfigError} with every fault, each with its file and line.
 */
export function readFiles(paths: readonly string[]): Wanted {
  const files = paths.flatMap(filesOf)
  const validate = compile()
  const faults: string[] = []
  const byKind: { [K in Kind]?: Placed<Entries[K]>[] } = {}
  const names: { [K in Kind]?: string[] } = {}
  for (const path of files) {
    const { content, faults: own } = readFile(path, validate)
    faults.push(...own)
    for (const kind of kinds) {
      const entries = content[kind]
      // `as`: the schema says what the entries of each kind are.
      if (entries === undefined) continue
      byKind[kind] = [...(byKind[kind] ?? []), ...entries] as never
      names[kind] = [...(names[kind] ?? []), basename(path)]
    }
  }
  faults.push(...kinds.flatMap((kind) => keys[kind].flatMap((key) => repeated(byKind[kind] ?? [], key))))
  if (faults.length > 0) throw new ConfigError(faults)
  return { ...byKind, files: names }
}

function filesOf(path: string): readonly string[] {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) throw new ConfigError(`${path}: there is no such file or folder`)
  if (!found.isDirectory()) return [path]
  const files = readdirSync(path)
    .filter((name) => !name.startsWith('.') && ['.yaml', '.yml'].includes(extname(name)))
    .sort()
    .map((name) => join(path, name))
    .filter((file) => statSync(file).isFile())
  if (files.length === 0) throw new ConfigError(`${path}: has no .yaml file`)
  return files
}

interface SchemaFault {
  readonly instancePath: string
  readonly keyword: string
  readonly message?: string
  readonly params: Readonly<Record<string, unknown>>
}

interface Validate {
  (value: unknown): boolean
  errors?: readonly SchemaFault[] | null
}

function compile(): Validate {
  const compileSchema = AjvCompiler()({}, { customOptions: { ...strictSchemas, allErrors: true } })
  // `as`: what Ajv compiles, which Fastify types as any function.
  return compileSchema({ schema: filesSchema(declared), method: '', url: '' }) as Validate
}

type FileContent = { readonly [K in Kind]?: readonly Placed<unknown>[] }

function readFile(
  path: string,
  validate: Validate,
): { readonly content: FileContent; readonly faults: readonly string[] } {
  const lines = new LineCounter()
  const text = readText(path)
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: true })
  const [fault] = [...document.errors, ...document.warnings]
  if (fault !== undefined) {
    const [line = ''] = fault.message.split('\n')
    const message = line.replace(/ at line \d+, column \d+:?$/, '').replace(/:$/, '')
    const at = `${path}:${lines.linePos(fault.pos[0]).line}`
    return { content: {}, faults: [`${at}: not valid YAML: ${message}`] }
  }
  const value = contentOf(document, path)
  const lineAt = (names: readonly (string | number)[]) => `${path}:${lineOf(document, lines, names)}`
  if (!validate(value)) return { content: {}, faults: faultLines(validate.errors ?? [], value, lineAt) }
  const place = (kind: Kind) => (entry: unknown, index: number) => ({
    entry,
    where: lineAt([kind, index]),
    file: basename(path),
    folder: dirname(path),
  })
  // `as`: the schema says that each is a list.
  const lists = Object.entries(value).map(([kind, entries]) => [
    kind,
    (entries as unknown[]).map(place(kind as Kind)),
  ])
  return { content: Object.fromEntries(lists), faults: [] }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw new ConfigError(`${path}: cannot be read`, { cause })
  }
}

/** Returns the content of a file. An empty one is a file without entries. */
function contentOf(document: Document, path: string): Readonly<Record<string, unknown>> {
  let value: unknown
  try {
    value = document.toJS({ maxAliasCount: 100 }) ?? {}
  } catch (cause) {
    throw new ConfigError(`${path}: not valid YAML: ${cause instanceof Error ? cause.message : cause}`, {
      cause,
    })
  }
  if (!isObject(value)) throw new ConfigError(`${path}:1: must be a mapping of ${kinds.join(', ')}`)
  return value
}

function lineOf(document: Document, lines: LineCounter, names: readonly (string | number)[]): number {
  for (let length = names.length; length > 0; length -= 1) {
    const node: unknown = document.getIn(names.slice(0, length), true)
    const range = isObject(node) ? node['range'] : undefined
    if (Array.isArray(range)) return lines.linePos(Number(range[0])).line
  }
  return 1
}

/** Returns one line for each place that the schema rejects. */
function faultLines(
  faults: readonly SchemaFault[],
  value: unknown,
  lineAt: (names: readonly (string | number)[]) => string,
): readonly string[] {
  const seen = new Set<string>()
  return faults.flatMap((fault) => {
    const names = fault.instancePath.split('/').slice(1).map(unescapePointer)
    const { additionalProperty: unknown, missingProperty: missing, allowedValues, pattern } = fault.params
    const place = [...names, ...(typeof unknown === 'string' ? [unknown] : [])]
    const member = [...names, unknown ?? missing ?? []].flat().join('.')
    // One is enough: a value of the wrong type has the wrong form, too, and what a condition demands has its own fault.
    if (seen.has(member) || fault.keyword === 'if') return []
    seen.add(member)
    const at = lineAt(place.map((name) => (/^\d+$/.test(name) ? Number(name) : name)))
    if (typeof unknown === 'string') {
      const known = Object.keys(schemaAt(names)?.['properties'] ?? {})
      return `${at}: ${member}: there is no such member${suggestion(unknown, known)}`
    }
    if (missing !== undefined) return `${at}: ${member}: is missing`
    if (Array.isArray(allowedValues)) return `${at}: ${member}: must be one of: ${allowedValues.join(', ')}`
    if (pattern !== undefined) return `${at}: ${member}: ${formOf(names.at(-1), String(pattern))}`
    return `${at}: ${member}: ${fault.message ?? 'is wrong'}${hint(valueAt(value, names), fault)}`
  })
}

/** Explains a text that has the wrong form. A secret must not be repeated. */
function formOf(name: string | undefined, pattern: string): string {
  if (name === 'secret')
    return 'must be env: and the name of a variable; a secret itself has no place in a file that you share'
  return `must have the form ${pattern}`
}

function hint(value: unknown, { params: { type } }: SchemaFault): string {
  return type === 'string' && ['number', 'boolean'].includes(typeof value) ? '; put it in quotes' : ''
}

function schemaAt(names: readonly string[]): Readonly<Record<string, unknown>> | undefined {
  let schema: unknown = filesSchema(declared)
  for (const name of names) {
    if (!isObject(schema)) return undefined
    const { items, properties } = schema
    schema = items ?? (isObject(properties) ? properties[name] : undefined)
  }
  return isObject(schema) ? schema : undefined
}

function valueAt(value: unknown, names: readonly string[]): unknown {
  // `as`: lists have their positions as members.
  return names.reduce<unknown>(
    (at, name) => (typeof at === 'object' && at !== null ? (at as Record<string, unknown>)[name] : undefined),
    value,
  )
}

/** RFC 6901 §4. */
function unescapePointer(token: string): string {
  return token.replaceAll('~1', '/').replaceAll('~0', '~')
}

function repeated(entries: readonly Placed<unknown>[], key: string): readonly string[] {
  const first = new Map<unknown, string>()
  return entries.flatMap(({ entry, where }) => {
    const name = valueAt(entry, [key])
    if (name === undefined) return []
    const canonical = String(name).normalize('NFKC').trim().toLowerCase()
    const folded = key === 'client_id' ? name : canonical
    const before = first.get(folded)
    first.set(folded, before ?? where)
    return before === undefined ? [] : `${where}: ${key}: is the same as at ${before}`
  })
}

/** Where an entry says that a secret is. */
type NamesSecret = Placed<{
  readonly secret?: string | undefined
  readonly secretFile?: string | undefined
  readonly newSecretFile?: string | undefined
}>

/** The secret that an entry of a client or an upstream names. */
export interface Secret {
  /** Absent: the file is missing. */
  readonly text?: string
  /** Where it is, for the operator. */
  readonly from: string
  /** The file to write a new one into. */
  readonly target?: string
}

/** Returns the secret that an entry names, if it names one. @throws {CommandFailed} if it cannot be read. */
export function secretOf({ entry, folder }: NamesSecret): Secret | undefined {
  const { secret, secretFile, newSecretFile } = entry
  const named = Object.keys(omitUndefined({ secret, secretFile, newSecretFile }))
  if (named.length > 1) throw new CommandFailed(`${named.join(' and ')} exclude each other`)
  if (secret !== undefined) {
    const name = secret.replace(/^env:/, '')
    const text = process.env[name]
    if (text === undefined || text === '') throw new CommandFailed(`secret: the variable ${name} is not set`)
    return { text, from: secret }
  }
  const from = secretFile ?? newSecretFile
  if (from === undefined) return undefined
  const path = resolve(folder, from)
  if (newSecretFile !== undefined && !existsSync(path)) return { from, target: path }
  try {
    return { text: readSecret(path, named[0] ?? ''), from }
  } catch (error) {
    throw error instanceof ConfigError ? new CommandFailed(error.message) : error
  }
}
