import { variableOf } from '../../settings/options.ts'

/** What the doctor says of one thing. */
export interface Finding {
  /** What was looked at, a few words. */
  readonly check: string
  readonly level: 'ok' | 'warning' | 'problem' | 'not checked'
  /** One sentence. */
  readonly said: string
  readonly expected?: string
  readonly found?: string
  /** What to change: lines of the configuration, of the proxy's, or a command. */
  readonly change?: readonly string[]
}

type Detail = Pick<Finding, 'expected' | 'found' | 'change'>

/** Nothing is wrong. */
export function ok(check: string, said: string): Finding {
  return { check, level: 'ok', said }
}

/** It works, but the operator should know about it. */
export function warning(check: string, said: string, detail: Detail): Finding {
  return { check, level: 'warning', said, ...detail }
}

/** It does not work, or is not safe. */
export function problem(check: string, said: string, detail: Detail): Finding {
  return { check, level: 'problem', said, ...detail }
}

/** It cannot be determined. */
export function unchecked(check: string, said: string): Finding {
  return { check, level: 'not checked', said }
}

/** The line to change, as a variable and as the file has it. */
export function setting(path: string, value: string | readonly string[]): readonly string[] {
  const text = typeof value === 'string' ? value : value.join(',')
  const inFile = typeof value === 'string' ? value : `[${value.map(quoted).join(', ')}]`
  const [last = path, ...sections] = path.split('.').reverse()
  const nested = sections.reduce((inner, name) => `${name}: { ${inner} }`, `${last}: ${inFile}`)
  return [`${variableOf(path)}=${text}`, `${nested}   (in the file)`]
}

/** An IPv6 address is no plain YAML text inside brackets. */
function quoted(text: string): string {
  return text.includes(':') ? `'${text}'` : text
}
