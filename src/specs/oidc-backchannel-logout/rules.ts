import { type JsonObject, readUri, rejection } from '../../clients/members.ts'
import { auditEvent } from '../../domain/audit.ts'
import { accept, type Decision, put, remove, type Write } from '../../domain/decision.ts'
import { hmacText } from '../../domain/hmac.ts'
import {
  type FinishedDelivery,
  finishedDeliveryKind,
  type LogoutDelivery,
  logoutDeliveryKind,
} from '../../domain/logout-delivery.ts'
import type { Client, Grant, Hash, Seconds, Session } from '../../domain/model.ts'
import { isLoopbackUri } from '../../domain/redirect-uri.ts'
import { offlineAccess } from '../../domain/scope-catalogue.ts'
import type { AtSessionEnd } from '../../domain/session-end.ts'

/**
 * Reads `backchannel_logout_uri`, OpenID Connect Back-Channel Logout §2.2: absolute, https and without a fragment. A
 * loopback URI may be http: only a development server sends anything there.
 * @throws {OAuthError} `invalid_client_metadata`
 */
export function readLogoutUri(members: JsonObject, name: string): string | undefined {
  const uri = readUri(members, name)
  if (uri === undefined) return undefined
  if (uri.includes('#'))
    throw rejection(`${name} must not have a fragment`, {
      rule: 'oidc-bcl-2.2-uri-no-fragment',
      received: uri,
    })
  if (new URL(uri).protocol !== 'https:' && !isLoopbackUri(uri))
    throw rejection(`${name} must be https, or http on a loopback address`, {
      rule: 'oidc-bcl-2.2-uri-https',
      received: uri,
    })
  return uri
}

/** Where the client wants its logout tokens; undefined if it wants none. */
export function logoutUriOf({ extra }: Client): string | undefined {
  const uri = extra?.['backchannel_logout_uri']
  return typeof uri === 'string' ? uri : undefined
}

/**
 * Returns a new `sid`: a pseudonym of the session for one client that gets its logout token (OpenID Connect
 * Back-Channel Logout §2.1). The id of a session is a hash that never leaves the store, so two clients cannot find
 * out that they have the same session.
 */
export function mintSid(sessionId: Hash, clientId: string): string {
  return hmacText(sessionId, clientId, 16)
}

/** Returns the `sid` that a grant has stored, or that of the session with which it ends. */
export function sidOf({ extra }: Pick<Grant, 'extra'>): string | undefined {
  const sid = extra?.['sid'] ?? extra?.['session']
  return typeof sid === 'string' ? sid : undefined
}

/** Whether a grant ends with its session: the operator wants it, and offline_access was not granted (§2.7). */
export function endsWithSession({ scope }: Pick<Grant, 'scope'>, { extra }: Client): boolean {
  return extra?.['refresh_tokens'] === 'session' && !scope.includes(offlineAccess.name)
}

/**
 * Returns what is to be done for the client when the session ends, OpenID Connect Back-Channel Logout §2.3; undefined
 * for a client that need not know.
 * @param before What is to be done already, by an earlier grant of this client in the session.
 */
export function dueAtSessionEnd(
  grant: Grant,
  client: Client,
  session: Session,
  before: AtSessionEnd | undefined,
): AtSessionEnd | undefined {
  const isNotified = logoutUriOf(client) !== undefined && grant.scope.includes('openid')
  const isBound = endsWithSession(grant, client)
  if (!isNotified && !isBound) return undefined
  return {
    sid: before?.sid ?? mintSid(session.id, client.id),
    sessionId: session.id,
    userId: session.userId,
    clientId: client.id,
    expiresAt: session.expiresAt,
    ...((isNotified || before?.inserts) && { inserts: logoutDeliveryKind.name }),
    ...((isBound || before?.revokes) && { revokes: 'oidc-bcl-2.7-refresh-tokens' }),
  }
}

/** How long a logout token is valid, OpenID Connect Back-Channel Logout §4. */
const tokenSeconds: Seconds = 120

/** Returns the claims of a logout token, OpenID Connect Back-Channel Logout §2.4. It never has a nonce. */
export function logoutTokenClaims(
  { userId, sid, clientId }: LogoutDelivery,
  issuer: string,
  jti: string,
  now: Seconds,
): Readonly<Record<string, unknown>> {
  return {
    iss: issuer,
    sub: userId,
    aud: clientId,
    iat: now,
    exp: now + tokenSeconds,
    jti,
    events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
    sid,
  }
}

/** Longer than a try takes: then the node that began it has stopped. */
const leaseSeconds: Seconds = 15
/** After each failed try but the last. */
const backoffSeconds: readonly Seconds[] = [10, 60]

/** Takes a delivery for one node, if it is due and no other node has it. */
export function leaseDelivery(
  delivery: LogoutDelivery | undefined,
  now: Seconds,
): Decision<LogoutDelivery | undefined> {
  if (delivery === undefined) return accept(undefined)
  const { endedAt, dueAt = endedAt, leasedUntil = dueAt } = delivery
  if (now < leasedUntil) return accept(undefined)
  const leased = { ...delivery, leasedUntil: now + leaseSeconds }
  return accept(leased, put(logoutDeliveryKind, leased))
}

/** The result of one try. */
export type Try =
  | { readonly result: 'delivered' }
  /** `silent`: no response came. `last`: it is not tried again. */
  | { readonly result: 'failed'; readonly error: string; readonly silent?: true; readonly last?: true }
  /** It was not sent, because too much was sent to that origin. */
  | { readonly result: 'postponed' }
  /** The client has no URI any more. */
  | { readonly result: 'dropped' }

/** What became of a delivery. */
export type Settled = Try['result'] | 'retried'

/**
 * Notes the result of a try: three tries in all, with pauses between them. Returns undefined, and writes nothing, if
 * the lease has passed to another node.
 * @param keepSeconds How long a finished delivery stays in the list.
 */
export function settleDelivery(
  current: LogoutDelivery | undefined,
  leased: LogoutDelivery,
  attempt: Try,
  keepSeconds: Seconds,
  now: Seconds,
): Decision<Settled | undefined> {
  if (current === undefined || current.leasedUntil !== leased.leasedUntil) return accept(undefined)
  const { leasedUntil: _, ...rest } = current
  if (attempt.result === 'dropped') return accept('dropped', remove(logoutDeliveryKind, rest.sid))
  if (attempt.result === 'postponed') return later('postponed', { ...rest, dueAt: now + leaseSeconds })
  const tries = (current.tries ?? 0) + ('last' in attempt ? 0 : 1)
  if (attempt.result === 'delivered') return finish(rest, { outcome: 'delivered', tries }, keepSeconds, now)
  const { error } = attempt
  const pause = attempt.last === true ? undefined : backoffSeconds[tries - 1]
  if (pause === undefined) return finish(rest, { outcome: 'failed', tries, error }, keepSeconds, now)
  return later('retried', { ...rest, tries, error, dueAt: now + pause })
}

function later(settled: Settled, delivery: LogoutDelivery): Decision<Settled> {
  return accept(settled, put(logoutDeliveryKind, delivery))
}

function finish(
  { sid, userId, clientId, endedAt }: LogoutDelivery,
  end: Pick<FinishedDelivery, 'outcome' | 'tries' | 'error'>,
  keepSeconds: Seconds,
  now: Seconds,
): Decision<Settled> {
  const finished = { sid, userId, clientId, endedAt, ...end, finishedAt: now, expiresAt: now + keepSeconds }
  const { outcome, tries, error } = end
  // Not an event of the user, who cannot do anything about it: their page of activity does not list it.
  const facts = { clientId, user: userId, sid, tries, ...(error !== undefined && { error }) }
  const writes: readonly Write[] = [
    remove(logoutDeliveryKind, sid),
    put(finishedDeliveryKind, finished),
    auditEvent(`client-logout-${outcome}`, { by: 'server', at: now }, facts),
  ]
  return accept(outcome, ...writes)
}
