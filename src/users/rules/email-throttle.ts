import { accept, type Decision, put } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { Seconds, Throttle } from '../../domain/model.ts'
import { throttleKind } from './sign-in-throttle.ts'

const windowSeconds = 3600
/** Emails to one user in an hour. */
const lettersPerPerson = 5
/** A household or an office behind one address prefix. */
const requestsPerPrefix = 20

/**
 * Counts an email to a user; false if the limit is reached.
 * @param userId Of the user, or the login that was typed: unknown ones count as well.
 */
export function countEmail(throttle: Throttle | undefined, userId: string, now: Seconds): Decision<boolean> {
  return count(throttle, emailBucket(userId), lettersPerPerson, now)
}

/**
 * Counts a request for emails from one address prefix.
 * @throws {OAuthError} `temporarily_unavailable` with status 429 after too many.
 */
export function countRequest(throttle: Throttle | undefined, prefix: string, now: Seconds): Decision<void> {
  const decision = count(throttle, requestBucket(prefix), requestsPerPrefix, now)
  if ('result' in decision && decision.result) return { ...decision, result: undefined }
  throw tooManyEmails(Math.max(1, (throttle?.expiresAt ?? now) - now))
}

/** Returns the error of an email beyond the limit. */
export function tooManyEmails(retryAfterSeconds: Seconds): OAuthError {
  return new OAuthError('temporarily_unavailable', 'too many letters were asked for; try again later', {
    rule: 'lychgate-letter-throttle',
    status: 429,
    headers: { 'retry-after': String(retryAfterSeconds) },
  })
}

/** The key of the throttle that counts a user's emails. */
export function emailBucket(userId: string): string {
  return `letters ${userId}`
}

/** The key of the throttle that counts requests for emails from one network. */
export function requestBucket(prefix: string): string {
  return `letters from ${prefix}`
}

function count(throttle: Throttle | undefined, key: string, most: number, now: Seconds): Decision<boolean> {
  // A window that ends later than one beginning now was opened by a clock that was ahead.
  const isOpen =
    throttle !== undefined && now < throttle.expiresAt && throttle.expiresAt <= now + windowSeconds
  const failures = isOpen ? throttle.failures : 0
  if (failures >= most) return accept(false)
  const expiresAt = isOpen ? throttle.expiresAt : now + windowSeconds
  return accept(true, put(throttleKind, { key, failures: failures + 1, expiresAt }))
}
