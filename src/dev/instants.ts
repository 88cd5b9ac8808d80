import { parseDuration } from '../domain/durations.ts'
import { OAuthError } from '../domain/errors.ts'
import type { Seconds } from '../domain/model.ts'
import { instantOf } from '../system.ts'

/** When something begins, and how long it lives. */
export interface Span {
  readonly issuedAt: Seconds
  readonly seconds: Seconds
}

/**
 * The life of a token that was asked for: as usual, shorter, longer, over already, or not begun.
 * @throws {OAuthError} `invalid_request`
 */
export function requireSpan(
  order: { readonly expires_in?: string | number; readonly issued_at?: string | number },
  usual: Seconds,
  now: Seconds,
): Span {
  const given = order.issued_at === undefined ? undefined : requireMoment('issued_at', order.issued_at, now)
  const left = order.expires_in === undefined ? undefined : requireDuration('expires_in', order.expires_in)
  if (left === undefined) return withinReach({ issuedAt: given ?? now, seconds: usual })
  if (left > 0) return withinReach({ issuedAt: given ?? now, seconds: left })
  // It has ended, and lived as long as others do.
  return withinReach({ issuedAt: (given ?? now) + left - usual, seconds: usual })
}

/** An instant, seconds since the epoch, or a duration from now. @throws {OAuthError} `invalid_request` naming `member` */
export function requireMoment(member: string, said: string | number, now: Seconds): Seconds {
  if (typeof said === 'number') return said
  const duration = parseDuration(said)
  const at = duration === undefined ? instantOf(said) : now + duration
  if (at !== undefined) return at
  throw malformed(
    `${member} must be an instant, such as 2027-01-01T00:00:00Z, or a duration from now, such as -2d`,
  )
}

/** A duration, or a number of seconds. @throws {OAuthError} `invalid_request` naming `member` */
export function requireDuration(member: string, said: string | number): Seconds {
  const seconds = typeof said === 'number' ? said : parseDuration(said)
  if (seconds !== undefined) return seconds
  throw malformed(`${member} must be a duration, such as 90s, 31d or -1h, or a number of seconds`)
}

/** Handles carry instants as 32 bits, and every lifetime has to fit behind them: 1970 to 2090. */
const [earliest, latest] = [0, 3_786_912_000]

/** @throws {OAuthError} `invalid_request` for an instant that no token could carry. */
export function assertRepresentable(at: Seconds): void {
  if (at < earliest || at > latest) throw malformed('the time must stay between 1970 and 2090')
}

function withinReach(span: Span): Span {
  assertRepresentable(span.issuedAt)
  assertRepresentable(span.issuedAt + span.seconds)
  return span
}

function malformed(description: string): OAuthError {
  return new OAuthError('invalid_request', description, { rule: 'lychgate-dev-time' })
}
