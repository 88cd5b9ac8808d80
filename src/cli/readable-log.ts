import { isoInstant } from '../system/system.ts'
import { visible, visibleLines } from './print.ts'

/** The members of a log line that are shown. */
interface Line {
  readonly level: number
  readonly time: number
  readonly msg: string
  readonly reqId?: string
  readonly method?: string
  readonly path?: string
  readonly status?: number
  readonly ms?: number
  readonly error?: string
  readonly why?: string
  readonly rule?: string
  readonly stored?: unknown
  readonly received?: unknown
  readonly client?: string
  /** Scopes that a registration asked for and did not get. */
  readonly dropped?: readonly string[]
  readonly err?: { readonly stack?: string }
  readonly cause?: { readonly stack?: string }
}

const warning = 40
let timeOfDay: Intl.DateTimeFormat | undefined

/**
 * Formats the log for reading: one line per request, and for a rejected one the stored and received values. With the
 * issuer of a development server it has the address of the trace, too, and leaves out what the banner shows; without
 * one it has dates, request ids for `lychgate explain`, and every line.
 */
export function readableLog(
  output: { write(text: string): unknown },
  issuer?: string,
): { write(line: string): void } {
  return {
    write(line) {
      // `as`: pino writes these lines.
      const text = describe(JSON.parse(line) as Line, issuer)
      if (text !== undefined) output.write(`${visibleLines(text)}\n`)
    },
  }
}

function describe(line: Line, issuer: string | undefined): string | undefined {
  const { level, time, msg, method, path = '', status, ms } = line
  const at = issuer === undefined ? isoInstant(time / 1000) : clock(time)
  if (method !== undefined) {
    if (issuer !== undefined && isLook(line)) return undefined
    return [`${at} ${status} ${method} ${visible(path)} ${ms} ms`, ...rejection(line, issuer)].join('\n')
  }
  if (line.dropped !== undefined) {
    return `${clock(time)} ${line.client}: unknown scopes were left out (the option scopes): ${show(line.dropped)}`
  }
  // The banner shows where the server listens.
  if (issuer !== undefined && level < warning) return undefined
  // A separate line would look like one of the log.
  const text = [msg, ...(issuer === undefined ? facts(line) : [])].join(' ').replaceAll('\n', '\n         ')
  return [`${at} ${text}`, ...indented(line.err?.stack)].join('\n')
}

/** What a line says apart from its text: `requests=3 ms=20`. */
function facts({ level: _, time: __, msg: ___, err: ____, ...rest }: Line): readonly string[] {
  return Object.entries(rest)
    .filter(([name]) => name !== 'pid' && name !== 'hostname')
    .map(([name, value]) => `${name}=${visible(typeof value === 'string' ? value : JSON.stringify(value))}`)
}

/** Requests for pages of the development server and for assets do not come from a client. */
function isLook({ error, path = '' }: Line): boolean {
  return error === undefined && /^(?:\/.*)?\/(?:_dev\/(?:flows|try|assets)|assets)\b/.test(path)
}

function rejection(
  { error, why, rule, stored, received, cause, reqId, path = '' }: Line,
  issuer: string | undefined,
): readonly string[] {
  if (error === undefined) return []
  return [
    `         ${error}: ${visible(why ?? '')}${rule === undefined ? '' : `  [${rule}]`}`,
    ...(stored === undefined ? [] : [`         stored    ${show(stored)}`]),
    ...(received === undefined ? [] : [`         received  ${show(received)}`]),
    ...(issuer === undefined
      ? [`         request   ${reqId}`]
      : traceOf(path, issuer).map((trace) => `         trace     ${trace}/requests/${reqId}`)),
    ...(cause === undefined ? [] : indented(cause.stack)),
  ]
}

/** Returns the address of the traces. An issuer below /_dev has its own; other requests below /_dev have none. */
function traceOf(path: string, issuer: string): readonly string[] {
  const [, prefix = '', below, name] = /^(.*)\/_dev\/([a-z]+)\/?([\w.-]*)/.exec(path) ?? []
  if (below === undefined) return [`${issuer}/_dev/flows`]
  const { origin } = new URL(issuer)
  return ['issuers', 'forks'].includes(below) ? [`${origin}${prefix}/_dev/${below}/${name}/_dev/flows`] : []
}

function show(value: unknown): string {
  // On one line: received text must not look like a log line.
  return visible(Array.isArray(value) ? value.join(' ') : String(value))
}

function indented(stack: string | undefined): readonly string[] {
  return stack?.split('\n').map((line) => `         ${line}`) ?? []
}

/** Local time of day: log lines are read while they are written. */
function clock(milliseconds: number): string {
  // Created late: loading it takes a tenth of the start.
  timeOfDay ??= new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })
  return timeOfDay.format(milliseconds)
}
