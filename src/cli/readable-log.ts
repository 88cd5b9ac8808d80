import { visible, visibleLines } from './print.ts'

/** What a developer wants of a log line. */
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
  readonly err?: { readonly stack?: string }
  readonly cause?: { readonly stack?: string }
}

const warning = 40
let timeOfDay: Intl.DateTimeFormat | undefined

/**
 * Writes the server's log lines for people: one line a request, and below a rejection what was stored and what was
 * received, and where the trace shows the rest. Made for `lychgate dev`; a production server writes JSON.
 */
export function readableLog(
  output: { write(text: string): unknown },
  issuer: string,
): { write(line: string): void } {
  return {
    write(line) {
      // `as`: pino writes these lines.
      const text = describe(JSON.parse(line) as Line, issuer)
      if (text !== undefined) output.write(`${visibleLines(text)}\n`)
    },
  }
}

function describe(line: Line, issuer: string): string | undefined {
  const { level, time, msg, method, path = '', status, ms } = line
  if (method !== undefined) {
    if (isLook(line)) return undefined
    return [`${clock(time)} ${status} ${method} ${visible(path)} ${ms} ms`, ...rejection(line, issuer)].join(
      '\n',
    )
  }
  // Where it listens is in the banner.
  if (level < warning) return undefined
  return [`${clock(time)} ${msg}`, ...indented(line.err?.stack)].join('\n')
}

/** What the developer looks at, and what pages are made of, is not what a client did. */
function isLook({ error, path = '' }: Line): boolean {
  return error === undefined && /^(?:\/.*)?\/(?:_dev\/(?:flows|try|assets)|assets)\b/.test(path)
}

function rejection(
  { error, why, rule, stored, received, cause, reqId, path = '' }: Line,
  issuer: string,
): readonly string[] {
  if (error === undefined) return []
  return [
    `         ${error}: ${why}${rule === undefined ? '' : `  [${rule}]`}`,
    ...(stored === undefined ? [] : [`         stored    ${show(stored)}`]),
    ...(received === undefined ? [] : [`         received  ${show(received)}`]),
    ...traceOf(path, issuer).map((trace) => `         trace     ${trace}/requests/${reqId}`),
    ...(cause === undefined ? [] : indented(cause.stack)),
  ]
}

/** An issuer within this one has a trace of its own; what developers send below /_dev has none. */
function traceOf(path: string, issuer: string): readonly string[] {
  const [, prefix = '', below, name] = /^(.*)\/_dev\/([a-z]+)\/?([\w.-]*)/.exec(path) ?? []
  if (below === undefined) return [`${issuer}/_dev/flows`]
  const { origin } = new URL(issuer)
  return ['issuers', 'forks'].includes(below) ? [`${origin}${prefix}/_dev/${below}/${name}/_dev/flows`] : []
}

function show(value: unknown): string {
  // On one line: what was sent must not look like a line of ours.
  return visible(Array.isArray(value) ? value.join(' ') : String(value))
}

function indented(stack: string | undefined): readonly string[] {
  return stack?.split('\n').map((line) => `         ${line}`) ?? []
}

/** Local time of day: log lines are read while they are written. */
function clock(milliseconds: number): string {
  // Made for the first line: loading it takes a tenth of the start.
  timeOfDay ??= new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })
  return timeOfDay.format(milliseconds)
}
