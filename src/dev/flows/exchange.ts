import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../../config/schema.ts'
import type { PassedCheck } from '../../domain/check.ts'
import type { Write } from '../../domain/decision.ts'
import type { ErrorDetail, OAuthError } from '../../domain/errors.ts'
import type { Seconds } from '../../domain/model.ts'
import type { Deps } from '../../feature/deps.ts'
// Brings `request.access`, `request.client` and `request.rejection`.
import type {} from '../../guard/guard.ts'
import type {} from '../../http/client-authentication.ts'
import { cookieName } from '../../http/cookies.ts'
import type {} from '../../http/errors.ts'
import type { Outgoing } from '../../http/outgoing.ts'
import { clauseOf } from '../../observability/clause-of-rule.ts'
import { throttleKind } from '../../users/rules/throttle.ts'
import { basicClientId } from '../part.ts'
import type { Judgement, RejectedCheck } from './flow.ts'
import type { Belonging, KeptExchange } from './flow-book.ts'
import { requestHeaders, responseHeaders, showBody } from './message.ts'
import { fingerprint, redactText, redactUrl } from './redact.ts'
import { stepOf } from './steps.ts'
import { tokensIn } from './token-sights.ts'

/** Longer names are cut, because clients may send any. */
const longestName = 200

/** What is recorded while a request is handled. */
export interface Recording {
  /** The server's time when the request arrived. */
  readonly at: Seconds
  readonly startedMs: number
  readonly passed: PassedCheck[]
  readonly writes: Write[]
  readonly notes: string[]
  readonly requestBody: Buffer[]
  answerBody: string
  finished: boolean
}

/** A request whose response was sent or aborted, and its recording. */
export interface Seen {
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly recorded: Recording
  readonly broken: boolean
}

/** Makes an exchange with its secrets marked; undefined if the request belongs to no flow. */
export function exchangeFrom(
  { request, reply, recorded, broken }: Seen,
  { config, keys }: Pick<Deps, 'config' | 'keys'>,
): KeptExchange | undefined {
  const [path = ''] = request.url.split('?', 1)
  const step = stepOf(path, prefixOf(config), request.server, parameter(request, 'grant_type'))
  if (step === undefined || request.method === 'OPTIONS') return undefined
  const headers = reply.getHeaders()
  const location = text(headers['location'])
  const body = Buffer.concat(recorded.requestBody).toString()
  const requestBody = showBody(text(request.headers['content-type']) ?? '', body)
  const responseBody = showBody(text(headers['content-type']) ?? '', recorded.answerBody)
  const sent = [request.url, text(request.headers.authorization) ?? '', body]
  return {
    id: request.id,
    step,
    at: recorded.at,
    startedMs: recorded.startedMs,
    tookMs: Math.round((performance.now() - recorded.startedMs) * 10) / 10,
    method: request.method,
    url: redactUrl(request.url),
    status: reply.statusCode,
    broken,
    request: { headers: requestHeaders(request.raw.rawHeaders), ...(requestBody && { body: requestBody }) },
    answer: { headers: responseHeaders(headers), ...(responseBody && { body: responseBody }) },
    ...(location !== undefined && { location: redactUrl(location) }),
    passed: recorded.passed.map(judgementOf),
    ...(request.rejection && { refused: errorOf(request.rejection) }),
    writes: recorded.writes.flatMap(describeWrite),
    presented: tokensIn(keys.handles, ...sent.map(decodedForm)),
    issued: tokensIn(keys.handles, location ?? '', recorded.answerBody),
    notes: recorded.notes,
  }
}

/** Makes an exchange of a request that the server sent to a client, with its secrets marked. */
export function exchangeTo(sent: Outgoing, { keys }: Pick<Deps, 'keys'>): KeptExchange {
  const { id, step, at, startedMs, url, form, status, result } = sent
  const type = 'application/x-www-form-urlencoded'
  const body = showBody(type, form)
  return {
    id,
    step,
    at,
    startedMs,
    tookMs: Math.round((performance.now() - startedMs) * 10) / 10,
    method: 'POST',
    url: redactUrl(url),
    status: status ?? 0,
    broken: status === undefined,
    request: { headers: [['content-type', type]], ...(body && { body }) },
    answer: { headers: [] },
    passed: [],
    writes: [],
    presented: [],
    issued: tokensIn(keys.handles, form),
    notes: [result],
  }
}

/** Collects what identifies the flow of an exchange. */
export function belongingOf(
  { request, reply, recorded }: Seen,
  exchange: KeptExchange,
  config: Pick<Config, 'issuer'>,
): Belonging {
  const location = text(reply.getHeader('location')) ?? ''
  const tokens = [...exchange.presented, ...exchange.issued]
  const written = recorded.writes.flatMap(grantIdOf)
  const interactions = [parameter(request, 'interaction'), /[?&]interaction=([\w-]+)/.exec(location)?.[1]]
  const clientId = clientIdOf(request, recorded, prefixOf(config))
  const userId = recorded.writes.map(userIdOf).find((id) => id !== undefined)
  const cookie = new RegExp(`(?<![\\w-])${cookieName(config.issuer, 'browser')}=([\\w-]+)`)
  const browser = cookie.exec(`${request.headers.cookie} ${reply.getHeader('set-cookie')}`)?.[1]
  return {
    grantIds: [...new Set([...written, ...tokens.flatMap(({ grantId }) => grantId ?? [])])],
    interactionIds: [...interactions, deviceOf(request, recorded)].flatMap(
      (id) => id?.slice(0, longestName) ?? [],
    ),
    ...(clientId !== undefined && { clientId }),
    ...(browser !== undefined && { browser: fingerprint(browser) }),
    ...(userId !== undefined && { userId }),
    peer: `${request.ip} ${request.headers['user-agent']?.slice(0, longestName) ?? ''}`,
  }
}

function clientIdOf(request: FastifyRequest, { writes }: Recording, prefix: string): string | undefined {
  const registration = `${prefix}${request.server.endpoints.get('registration')}/`
  const registered = request.url.startsWith(registration)
    ? /^[^/?]+/.exec(request.url.slice(registration.length))?.[0]
    : undefined
  const [inserted] = writes.flatMap((write) =>
    write.op === 'insert' && write.kind === 'client' ? write.record.id : [],
  )
  const id =
    (request.access?.clientId || undefined) ??
    request.client?.id ??
    inserted ??
    registered ??
    parameter(request, 'client_id') ??
    basicClientId(request.headers.authorization ?? '')
  return id?.slice(0, longestName)
}

function judgementOf({ rule, found, stored, received }: PassedCheck): Judgement {
  return { rule, clause: clauseOf(rule), found, ...compared(stored, received) }
}

function errorOf({ code, message, detail }: OAuthError): RejectedCheck {
  const { rule, stored, received, isRoutine } = detail
  return {
    error: code,
    rule,
    clause: clauseOf(rule),
    found: message,
    ...compared(stored, received),
    ...(isRoutine && { isRoutine }),
  }
}

function compared(stored: ErrorDetail['stored'], received: ErrorDetail['received']) {
  return {
    ...(stored !== undefined && { stored: shown(stored) }),
    ...(received !== undefined && { received: shown(received) }),
  }
}

function shown(value: NonNullable<ErrorDetail['stored']>): string {
  return redactText([value].flat().join(' ')).slice(0, 2000)
}

/** Describes a write in a few words, without values. */
function describeWrite(write: Write): readonly string[] {
  switch (write.op) {
    case 'insertGrant':
      return [`grant ${write.grant.id}: approved, scope ${write.grant.scope.join(' ')}`]
    case 'redeemGrant':
      return [`grant ${write.grantId}: code redeemed, now at number 1`]
    case 'rotateGrant':
      return [`grant ${write.grantId}: rotated from number ${write.fromSeq} to ${write.fromSeq + 1}`]
    case 'extendGrant':
      return [`grant ${write.grantId}: refresh token number ${write.seq} stays the current one`]
    case 'revokeGrant':
      return [`grant ${write.grantId}: revoked by ${write.rule}`]
    case 'revokeAccessToken':
      return [`grant ${write.grantId}: one access token revoked`]
    case 'learnPkce':
      return [`client ${write.clientId}: PKCE is required from now on`]
    case 'touchClient':
    case 'extendSession':
      return []
    case 'insert':
    case 'update':
    case 'put':
      return describeRow(write)
    case 'delete':
    case 'deleteRecord':
    case 'deleteRecords':
      return write.kind === throttleKind.name ? [] : [`delete ${inWords(write.kind)}`]
    default:
      return [inWords(write.op)]
  }
}

function describeRow({
  op,
  ...write
}: Extract<Write, { op: 'insert' | 'update' | 'put' }>): readonly string[] {
  switch (write.kind) {
    case 'client':
      if (op === 'insert') return [`client ${write.record.id}: registered`]
      break
    case 'auditEvent':
      return [`audit log: ${write.record.name}`]
    case 'rejection':
      return []
    case 'record':
      return write.record.kind === throttleKind.name ? [] : [`${op} ${inWords(write.record.kind)}`]
  }
  return [`${op} ${inWords(write.kind)}`]
}

/** `secondFactor` as `second factor`. */
function inWords(name: string): string {
  return name.replaceAll(/[A-Z]/g, (capital) => ` ${capital.toLowerCase()}`)
}

function grantIdOf(write: Write): readonly string[] {
  if (write.op === 'insertGrant') return [write.grant.id]
  return 'grantId' in write ? [write.grantId] : []
}

function userIdOf(write: Write): string | undefined {
  if (write.op === 'insertGrant') return write.grant.userId
  return write.op === 'insert' && write.kind === 'session' ? write.record.userId : undefined
}

/** A parameter of the body or the query that was sent once. */
/** Returns the user code of a device, which its device code begins with: both belong to one flow, RFC 8628 §3. */
function deviceOf(
  request: FastifyRequest,
  { answerBody: responseBody }: Seen['recorded'],
): string | undefined {
  const [, issued] = /"user_code":"([\w-]+)"/.exec(responseBody) ?? []
  const [, polled] = /^lyc_device_([A-Z]{8})/.exec(parameter(request, 'device_code') ?? '') ?? []
  return (issued ?? polled ?? parameter(request, 'user_code'))?.replaceAll('-', '').toUpperCase()
}

function parameter({ query, body }: FastifyRequest, name: string): string | undefined {
  for (const source of [body, query]) {
    if (typeof source !== 'object' || source === null) continue
    const value: unknown = Reflect.get(source, name)
    if (typeof value === 'string' && value !== '') return value
  }
  return undefined
}

function decodedForm(sent: string): string {
  return sent.includes('%')
    ? sent.replaceAll(/%([0-7][\dA-Fa-f])/g, (_all, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
    : sent
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function prefixOf({ issuer }: Pick<Config, 'issuer'>): string {
  const { pathname } = new URL(issuer)
  return pathname === '/' ? '' : pathname
}
