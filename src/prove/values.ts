import { systemClock } from '../system/system.ts'
import type { Ended } from './browser.ts'
import { NotApplicable, type Seen } from './observation.ts'
import { membersOf } from './server.ts'

/** Members by name. */
export type Values = Readonly<Record<string, unknown>>

/** What a response has: the step of a check that is data says it. */
export interface Expected {
  /** An expression for the whole status. */
  readonly status?: string
  /** Expressions; null means that there is no such header. */
  readonly headers?: Readonly<Record<string, string | null>>
  /**
   * Of a JSON body, or of the parameters of a redirect to the client: a value; `string`, `number`, `list`, `present`,
   * `absent`, `soon`; `/an expression/`; or a list that the value has to contain.
   */
  readonly members?: Values
  /** No other members are there. */
  readonly only?: readonly string[]
  /** An expression for the body. */
  readonly body?: string
}

/** Puts values in the place of `$name`, in texts at any depth; `$now+60` is a time in seconds, null is left out. */
export function filled<Value>(value: Value, values: Values): Value
export function filled(value: unknown, values: Values): unknown {
  if (Array.isArray(value)) return value.map((one) => filled(one, values))
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, filled(one, values)]))
  if (typeof value !== 'string') return value ?? undefined
  const time = /^\$now([+-]\d+)$/.exec(value)
  if (time !== null) return systemClock() + Number(time[1])
  return value.replaceAll(/\$([a-z_]+)/g, (_whole, name: string) => {
    if (values[name] === undefined) throw new NotApplicable(`the server issues no ${name}`)
    return String(values[name])
  })
}

/** Returns what is not as expected; undefined if all is. */
export function differenceFrom(expected: Expected, came: Ended | Seen, values: Values): string | undefined {
  const seen = 'kind' in came ? came.seen : came
  const { status, headers = {}, members = {}, only, body } = expected
  if (status !== undefined && !whole(status).test(`${seen.status}`))
    return `status ${seen.status} instead of ${status}`
  for (const [name, pattern] of Object.entries(headers)) {
    const value = seen.headers[name]
    const fits = pattern === null ? value === undefined : new RegExp(pattern, 'i').test(String(value ?? ''))
    if (!fits) return `${name} is ${value === undefined ? 'absent' : String(value)}`
  }
  if (body !== undefined && !new RegExp(filled(body, values), 'i').test(seen.body))
    return `the body has no ${filled(body, values)}`
  const isCallback = 'kind' in came && came.kind === 'callback'
  const found: Values = isCallback ? Object.fromEntries(came.params) : (membersOf(seen) ?? {})
  for (const [name, wanted] of Object.entries(members))
    if (!fits(found[name], filled(wanted, values)))
      return `${name} is ${JSON.stringify(found[name]) ?? 'absent'} instead of ${JSON.stringify(filled(wanted, values))}`
  const other = only === undefined ? undefined : Object.keys(found).find((name) => !only.includes(name))
  return other === undefined ? undefined : `there is ${other}, too`
}

function whole(pattern: string): RegExp {
  return new RegExp(`^(?:${pattern})$`)
}

const kinds: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string' && value !== '',
  number: (value) => typeof value === 'number' && value > 0,
  list: (value) => Array.isArray(value) && value.every((one) => typeof one === 'string'),
  present: (value) => value !== undefined,
  absent: (value) => value === undefined,
  /** A time of the next ten minutes. */
  soon: (value) => Number(value) > systemClock() && Number(value) <= systemClock() + 600,
}

function fits(value: unknown, wanted: unknown): boolean {
  if (Array.isArray(wanted)) return Array.isArray(value) && wanted.every((one) => value.includes(one))
  if (typeof wanted !== 'string') return value === wanted
  const pattern = /^\/(.*)\/$/s.exec(wanted)?.[1]
  if (pattern === undefined) return kinds[wanted]?.(value) ?? value === wanted
  return new RegExp(pattern).test(typeof value === 'string' ? value : (JSON.stringify(value) ?? ''))
}
