import type { Finding } from '../domain/finding.ts'
import type { Environment } from '../settings/environment.ts'
import type { ResolvedConfig } from '../settings/load.ts'
import { variableOf } from '../settings/options.ts'

/** The settings to examine, and where they come from. */
export interface Setup extends ResolvedConfig {
  readonly environment: Environment
  /** Whether this process runs in a container: no other machine reaches its loopback address. */
  readonly isContainer: boolean
}

type Value = string | number | readonly string[]

/**
 * Each tag reads a finding from a template that is written as `lychgate doctor` prints it: `check: sentence`, and
 * below it a line for `expected`, for `found`, and for each `change`. A list there is several changes.
 */
export const ok = atLevel('ok')
/** It works, but the operator should know about it. */
export const warning = atLevel('warning')
/** It does not work, or is not safe. */
export const problem = atLevel('problem')
/** It cannot be determined. */
export const unchecked = atLevel('not checked')

function atLevel(level: Finding['level']) {
  return (texts: TemplateStringsArray, ...values: readonly Value[]): Finding => {
    // Values are marked by their index until the lines are split: a value may contain line breaks.
    const [head = '', ...lines] = texts.reduce((text, next, at) => `${text}\0${at - 1}\0${next}`).split('\n')
    const linesOf = (text: string) => {
      const value = values[Number(/^\0(\d+)\0$/.exec(text)?.[1])]
      return Array.isArray(value)
        ? value
        : [text.replaceAll(/\0(\d+)\0/g, (_, at) => [values[at]].flat().join(', '))]
    }
    const rows = lines.map((line) => /^ *(expected|found|change) +(.*)$/.exec(line) ?? [])
    const detailsOf = (wanted: string) =>
      rows.flatMap(([, name, text = '']) => (name === wanted ? linesOf(text) : []))
    const [check = '', said = ''] = head.split(/: (.*)/).map((text) => linesOf(text).join(', '))
    const [expected, found, change] = ['expected', 'found', 'change'].map(detailsOf)
    return {
      check,
      level,
      said,
      ...(expected?.length && { expected: expected.join(', ') }),
      ...(found?.length && { found: found.join(', ') }),
      ...(change?.length && { change }),
    }
  }
}

/** Returns the line to change, as a variable and as a line of the file. */
export function setting(path: string, value: string | readonly string[]): readonly string[] {
  // An IPv6 address must be quoted inside brackets.
  const quoted = (text: string) => (text.includes(':') ? `'${text}'` : text)
  const inFile = typeof value === 'string' ? value : `[${value.map(quoted).join(', ')}]`
  const [last = path, ...sections] = path.split('.').reverse()
  const nested = sections.reduce((inner, name) => `${name}: { ${inner} }`, `${last}: ${inFile}`)
  return [`${variableOf(path)}=${value}`, `${nested}   (in the file)`]
}

/** Returns where a proxy finds this server. */
export function upstreamOf({ config: { host, port } }: Pick<Setup, 'config'>): string {
  const isEverywhere = ['0.0.0.0', '::'].includes(host)
  return `http://${isEverywhere ? '127.0.0.1' : host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Returns whether the issuer is this process itself, over http on its port; otherwise a proxy is in between. */
export function isDirect({ config: { issuer, port } }: Pick<Setup, 'config'>): boolean {
  const url = new URL(issuer)
  return url.protocol === 'http:' && Number(url.port || 80) === port
}
