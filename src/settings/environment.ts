import { ConfigError, readSecret, suggestion } from '../config/error.ts'
import { confidentialPaths, configOptions, formerPaths, variableOf } from './options.ts'

/** The variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>

/** A value and what the operator called it: a flag or a variable; or the file that refers to another one. */
export interface Given {
  readonly path: string
  readonly text: string
  readonly kind: 'variable' | 'flag' | 'file'
  readonly name: string
}

const prefix = 'LYCHGATE_'
/** Names the YAML file. */
export const fileVariable = `${prefix}CONFIG`
/** Has the token with which commands call a running server. It is no option: a server takes no notice of it. */
export const tokenVariable = `${prefix}TOKEN`

/** Every variable: of options, and of files that hold an option's value. */
export function knownVariables(): readonly string[] {
  const options = configOptions().flatMap(({ variable }) => variable ?? [])
  const former = Object.values(formerPaths).map(variableOf)
  return [fileVariable, ...options, ...former, ...confidentialPaths.map((path) => `${variableOf(path)}_FILE`)]
}

/** What is wrong with the names in an environment, one line per variable. */
export function* unknownVariables(environment: Environment): Generator<string> {
  const variables = knownVariables()
  for (const [path, former] of Object.entries(formerPaths)) {
    if (environment[variableOf(path)] && environment[variableOf(former)])
      yield `${variableOf(former)}: ${variableOf(path)} is set as well; keep one of them`
  }
  for (const name of Object.keys(environment)) {
    if (!name.startsWith(prefix) || variables.includes(name) || name === tokenVariable) continue
    const list = configOptions().find(({ path }) => variableOf(path) === name)
    yield list
      ? `${name}: ${list.path} is for the configuration file only`
      : `${name}: there is no such option${suggestion(name, variables)}`
  }
}

/**
 * Separates the variables that Kubernetes adds to every pod in the namespace of a Service named `lychgate` or
 * `lychgate-…`: addresses under names that are, or could be, settings. `links` are their names; they are ignored.
 */
export function separateServiceLinks(environment: Environment): { own: Environment; links: string[] } {
  const variables = knownVariables()
  const isLink = ([name, value = '']: [string, string | undefined]) =>
    name.startsWith(prefix) &&
    ((name.endsWith('_PORT') && /^(tcp|udp|sctp):\/\//.test(value)) ||
      (!variables.includes(name) &&
        /_SERVICE_(HOST|PORT(_\w+)?)$|_PORT_\d+_(TCP|UDP|SCTP)(_\w+)?$/.test(name)))
  const entries = Object.entries(environment)
  return {
    own: Object.fromEntries(entries.filter((entry) => !isLink(entry))),
    links: entries.filter(isLink).map(([name]) => name),
  }
}

/** The options in variables. An empty one counts as absent, as compose files and shells cannot omit one. */
export function fromVariables(environment: Environment): Given[] {
  return configOptions().flatMap(({ path, variable }): Given[] => {
    const former = formerPaths[path] && variableOf(formerPaths[path])
    const name = former && environment[former] ? former : variable
    const text = name && environment[name]
    return name && text ? [{ path, text, kind: 'variable', name }] : []
  })
}

/**
 * The setting that the file behind its `_FILE` variable carries, if there is one.
 * @throws {ConfigError} when it cannot be read, or the setting has its plain variable as well.
 */
export function fromSecretFile(path: string, environment: Environment): Given[] {
  const [variable, name] = [variableOf(path), `${variableOf(path)}_FILE`]
  const file = environment[name]
  if (!file) return []
  if (environment[variable]) throw new ConfigError(`${name}: ${variable} is set as well; keep one of them`)
  return [{ path, text: readSecret(file, name), kind: 'variable', name }]
}
