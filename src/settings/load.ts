import { Value } from '@sinclair/typebox/value'
import { ConfigError } from '../config/error.ts'
import type { Config } from '../config/schema.ts'
import type { Origin, Origins } from '../config/setting.ts'
import { isObject } from '../domain/is-object.ts'
import { shippedScope } from '../domain/scope-catalogue.ts'
import { inconsistencies } from './checks.ts'
import {
  type Environment,
  fileVariable,
  fromSecretFile,
  fromVariables,
  type Given,
  separateServiceLinks,
  unknownVariables,
} from './environment.ts'
import { place, readSections, type Section, takeFormer, takeReference, valueAt } from './file.ts'
import { ConfigSchema, confidentialPaths, configOptions, formerPaths } from './options.ts'
import { shapeFaults } from './shape.ts'

export { ConfigError } from '../config/error.ts'

/** Where settings come from, the strongest first: flags, environment, file; the rest are defaults. */
export interface ConfigSources {
  readonly mode: Config['mode']
  /** By option path: `{ port: '9500' }`. */
  readonly flags?: Readonly<Record<string, string | undefined>>
  readonly environment?: Environment
  /** The content of a file, given by a program instead of one. */
  readonly values?: Readonly<Record<string, unknown>>
  /** The YAML file; absent: the one LYCHGATE_CONFIG names, if any. */
  readonly file?: string | undefined
}

/** A configuration and the source of each value. */
export interface ResolvedConfig {
  readonly config: Config
  readonly file: string | undefined
  readonly origins: Origins
}

/**
 * Returns the configuration of this process: complete, valid and consistent.
 * @throws {ConfigError} a line for every fault: the setting and what to write instead.
 */
export function loadConfig(sources: ConfigSources): Config {
  return resolveConfig(sources).config
}

/**
 * Returns the same, with the origin of every value.
 * @throws {ConfigError} a line for every fault: the setting and what to write instead.
 */
export function resolveConfig({
  mode,
  flags = {},
  environment = {},
  values: content = {},
  file,
}: ConfigSources): ResolvedConfig {
  const { own } = separateServiceLinks(environment)
  const unknown = [...unknownVariables(own)]
  const faults: string[] = []
  const collect = <T>(read: () => T): T | undefined => {
    try {
      return read()
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      faults.push(...error.faults)
      return undefined
    }
  }
  const path = file ?? (own[fileVariable] || undefined)
  const values: Section =
    (path !== undefined && collect(() => readSections(path))) || structuredClone({ ...content })
  if (Array.isArray(values.scopes)) values.scopes = values.scopes.map(withShippedWords)
  for (const [option, former] of Object.entries(formerPaths))
    collect(() => takeFormer(values, option, former))
  const references = confidentialPaths.flatMap((option) => collect(() => takeReference(values, option)) ?? [])
  const fromFiles = confidentialPaths.flatMap((option) => collect(() => fromSecretFile(option, own)) ?? [])
  const overrides = [...references, ...fromVariables(own), ...fromFiles, ...fromFlags(flags)]
  const origins = originsOf(values, path, overrides)
  for (const one of overrides) place(values, one)
  faults.push(...shapeFaults(values, overrides, path))
  // A development server on another port is another issuer; production must set its issuer.
  const portOrigin = origins.get('port')
  if (mode === 'dev' && faults.length === 0 && values.issuer === undefined && portOrigin) {
    values.issuer = new URL(`http://localhost:${values.port}`).origin
    origins.set('issuer', portOrigin)
  }
  // `as`: shapeFaults has checked it against this very schema, or it is not used.
  const config = { ...(Value.Default(ConfigSchema, values) as Omit<Config, 'mode'>), mode }
  if (faults.length === 0) faults.push(...inconsistencies(config))
  if (unknown.length + faults.length > 0) throw new ConfigError([...unknown, ...faults])
  return { config, file: path, origins }
}

/** Completes an entry of the scope catalogue that leaves its words to the shipped scope of its name. */
function withShippedWords(entry: unknown): unknown {
  return isObject(entry) && entry.description === undefined
    ? { ...shippedScope(entry.name), ...entry }
    : entry
}

/** Returns the address of the store: `store` if it is set, else lychgate.db in the data folder. */
export function storeUrl(config: Pick<Config, 'store' | 'data'>): string {
  return config.store ?? `sqlite:${config.data}/lychgate.db`
}

function fromFlags(flags: Readonly<Record<string, string | undefined>>): Given[] {
  return Object.entries(flags).flatMap(([path, text]): Given[] => {
    const flag = path.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
    return text === undefined ? [] : [{ path, text, kind: 'flag', name: `--${flag}` }]
  })
}

/** Returns where each setting comes from, before the sources are merged. */
function originsOf(file: Section, name: string | undefined, values: readonly Given[]): Map<string, Origin> {
  const origins = new Map<string, Origin>()
  for (const { path } of configOptions()) {
    if (name !== undefined && valueAt(file, path) !== undefined) origins.set(path, { kind: 'file', name })
  }
  for (const { path, kind, name } of values) origins.set(path, { kind, name })
  return origins
}
