import { randomUUID } from 'node:crypto'
import { type FastifyReply, type FastifyRequest, LogController } from 'fastify'
import fp from 'fastify-plugin'
import { type Logger, pino } from 'pino'
import type { ErrorDetail, OAuthError } from '../domain/errors.ts'
import { isWorker } from '../system/peers.ts'
import { systemMilliseconds } from '../system/system.ts'
import { toOAuthError } from './errors.ts'

type DetailValue = NonNullable<ErrorDetail['stored']>

declare module 'fastify' {
  interface FastifyInstance {
    /** Adds what happens after each rejected request. */
    afterRejection(act: (request: FastifyRequest, reply: FastifyReply, rejection: OAuthError) => void): void
    /** Logs a response to a request that was not routed. */
    logResponse(described: Described): void
  }
}

/** Where lines are written. */
export interface Lines {
  write(line: string): void
}

/**
 * Logs one line per request: method, path, status, and why it was rejected. Never a query, a body or a header,
 * RFC 9700 §4.9.2.
 */
export const requestLog = fp<{ lines: Lines }>(
  async (app, { lines }) => {
    const line = lineWriter(app.log as Logger) // serverOptions makes it with pino
    const acts: Parameters<typeof app.afterRejection>[0][] = []
    app.decorate('afterRejection', (act) => void acts.push(act))
    app.decorate('logResponse', (described) => {
      if (writesInfo.has(app.log.level)) lines.write(line(randomUUID(), described, 'responded'))
    })
    app.addHook('onResponse', function logRequest(request, reply, done) {
      const { rejection } = request
      // A failure of the server may have reached the client as a redirect.
      const failed = reply.statusCode >= 500 || (rejection?.status ?? 0) >= 500
      if (failed) logFailure(request, reply)
      else if (writesInfo.has(request.log.level))
        lines.write(line(request.id, describe(request, reply), rejection ? 'rejected' : 'responded'))
      done()
      if (rejection !== undefined) for (const act of acts) act(request, reply, rejection)
    })
  },
  { name: 'request-log', dependencies: ['error-mapper', 'client-authentication'] },
)

const writesInfo: ReadonlySet<string> = new Set(['trace', 'debug', 'info'])

/** A request and its response, as the log shows them. */
type Described = ReturnType<typeof describe>

/**
 * Returns a function that writes the line of a request as the logger would at `info`, in a tenth of its time. The id is
 * one of serverOptions, the method one that Node accepts: neither needs an escape.
 */
export function lineWriter(log: Logger) {
  // `bindings()` leaves out pid and hostname.
  const bound = (log as { [pino.symbols.chindingsSym]?: string })[pino.symbols.chindingsSym] ?? ''
  const [begin, middle] = [`{"level":${log.levels.values['info']},"time":`, `${bound},"reqId":"`]
  return (
    id: string,
    { method, path, status, client, ms, ...reason }: Described,
    message: string,
  ): string => {
    const from = client === undefined ? '' : `,"client":${quoted(client)}`
    const members = message === 'rejected' ? membersOf(reason) : ''
    return `${begin}${systemMilliseconds()}${middle}${id}","method":"${method}","path":${quoted(path)},"status":${status}${from},"ms":${ms}${members},"msg":"${message}"}\n`
  }
}

function membersOf(reason: object): string {
  const text = JSON.stringify(reason).slice(1, -1)
  return text && `,${text}`
}

function quoted(text: string): string {
  return isPlain(text) ? `"${text}"` : JSON.stringify(text)
}

/**
 * What Fastify itself logs: only responses that fail after their beginning was sent, for which no `onResponse` hook
 * runs. That a receiver left is no failure.
 */
export function frameworkLog(): LogController {
  const controller = new LogController({ disableRequestLogging: true })
  controller.streamError = (error, request, reply) => {
    if ('code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE') return
    request.rejection ??= toOAuthError(error, request)
    logFailure(request, reply)
  }
  return controller
}

function logFailure(request: FastifyRequest, reply: FastifyReply): void {
  request.log.error({ ...describe(request, reply), cause: causeOf(request) }, 'failed')
}

function describe(request: FastifyRequest, reply: FastifyReply) {
  return {
    ...exchangeOf(request, reply),
    ms: tenths(reply.elapsedTime),
    ...(request.rejection && reasonOf(request.rejection)),
  }
}

/** Rounds milliseconds, as the log shows them. */
export function tenths(milliseconds: number): number {
  return Math.round(milliseconds * 10) / 10
}

/** A request and the status of its response, as the log shows them: a few hundred bytes, whatever was sent. */
export function exchangeOf(request: FastifyRequest, reply: FastifyReply) {
  const client = request.client?.id ?? request.namedClient
  return {
    method: request.method,
    path: boundedText(withoutSecrets(request.url.split('?', 1)[0] ?? '')),
    status: reply.statusCode,
    ...(client !== undefined && { client: boundedText(client) }),
  }
}

/** Why a request was rejected, as the log shows it: without secrets, and bounded in bytes. */
export function reasonOf({ code, message, detail }: OAuthError) {
  const { rule, stored, received } = detail
  return {
    error: code,
    why: boundedText(message),
    rule,
    ...(stored !== undefined && { stored: redacted(stored) }),
    ...(received !== undefined && { received: redacted(received) }),
  }
}

function causeOf(request: FastifyRequest) {
  const cause = request.rejection?.detail.cause
  if (!(cause instanceof Error)) return cause === undefined ? undefined : boundedText(String(cause))
  // A driver or a mail server may repeat what a client sent.
  const { message, stack = '', cause: from = '' } = cause
  return {
    message: boundedText(message),
    stack: boundedText(stack, longestStack),
    from: boundedText(String(from)),
  }
}

const longestStack = 4096

function redacted(value: DetailValue): DetailValue {
  if (typeof value === 'string') return boundedText(withoutSecrets(value))
  return typeof value === 'number' ? value : boundedList(value, withoutSecrets)
}

/** Cuts secrets and JWTs to their prefix, which names their kind, and a query to its question mark. */
function withoutSecrets(text: string): string {
  if (!/\?|lyc_|eyJ/.test(text)) return text
  return text.replace(/\?.*$/s, '?…').replaceAll(/(lyc_[a-z]+_|\beyJ)[\w.-]+/g, '$1…')
}

/** Bytes of one text in a log line or in a record of a rejected request. */
export const longestText = 256
/** Bytes of all items of a list together. */
export const longestList = 512

/**
 * Cuts a text to what may be logged or stored, counted as JSON writes it: a client chooses its characters, and a
 * control character takes six bytes there.
 */
export function boundedText(text: string, most = longestText): string {
  // Most texts need no counting.
  if (text.length <= most && isPlain(text)) return text
  let [bytes, end] = [0, 0]
  for (const character of text) {
    bytes += jsonBytes(character)
    if (bytes > most) return `${text.slice(0, end)}…`
    end += character.length
  }
  return text
}

/** Cuts each item of a list, and the list; its last item then counts the omitted ones. */
export function boundedList(list: readonly string[], read: (item: string) => string): readonly string[] {
  const bounded: string[] = []
  let left = longestList
  for (const item of list) {
    const text = boundedText(read(item))
    // Two quotation marks and a comma.
    left -= jsonBytes(text) + 3
    if (left < 0) return [...bounded, `… and ${list.length - bounded.length} more`]
    bounded.push(text)
  }
  return bounded
}

/** Whether JSON writes each character of a text as it is, in one byte. */
function isPlain(text: string): boolean {
  return /^[ !#-[\]-~]*$/.test(text)
}

function jsonBytes(text: string): number {
  return Buffer.byteLength(JSON.stringify(text)) - 2
}

/**
 * Standard output for the log: the lines of one turn of the event loop share a write, even those of an exiting
 * process.
 */
export function logLines(): Lines {
  output ??= gatheringOutput()
  return output
}

/** A pipe takes so much in one piece. More could get lines of another worker in between. */
const pipeBytes = 4096

// There is one standard output for all servers of a process.
let output: Lines | undefined

function gatheringOutput(): Lines {
  const destination = pino.destination({ dest: 1, sync: true })
  let gathered = ''
  const flush = () => {
    let lines = gathered
    gathered = ''
    while (isWorker && lines.length > pipeBytes) {
      const end = lines.lastIndexOf('\n', pipeBytes - 1) + 1 || lines.indexOf('\n') + 1
      destination.write(lines.slice(0, end))
      lines = lines.slice(end)
    }
    if (lines !== '') destination.write(lines)
  }
  process.on('exit', () => {
    flush()
    destination.flushSync()
  })
  return {
    write: (line) => {
      if (gathered === '') setImmediate(flush)
      gathered += line
    },
  }
}
