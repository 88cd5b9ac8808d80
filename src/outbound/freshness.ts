import type { IncomingHttpHeaders } from 'node:http'
import type { Seconds } from '../domain/model.ts'
import { httpInstant } from '../system/system.ts'

/**
 * Returns how much longer a response is fresh, RFC 9111 §4.2: its `max-age`, else `Expires`, minus its age. 0 for one
 * that must not be reused without asking (RFC 9111 §5.2.2.4, RFC 9111 §5.2.2.5), and for one that says nothing.
 */
export function freshSeconds(headers: IncomingHttpHeaders, now: Seconds): Seconds {
  const directives = (headers['cache-control'] ?? '').toLowerCase().split(',')
  const named = directives.map((directive) => directive.trim().split('=', 2))
  if (named.some(([name]) => name === 'no-store' || name === 'no-cache')) return 0
  const sentAt = httpInstant(headers.date ?? '') ?? now
  const [, maxAge] = named.find(([name]) => name === 'max-age') ?? []
  const lifetime = maxAge === undefined ? expiresIn(headers.expires, sentAt) : secondsOf(maxAge)
  const age = Math.max(secondsOf(headers.age), now - sentAt)
  return Math.max(0, lifetime - age)
}

/** RFC 9111 §5.3: what is not a date has expired. */
function expiresIn(expires: string | undefined, sentAt: Seconds): Seconds {
  const at = expires === undefined ? undefined : httpInstant(expires)
  return at === undefined ? 0 : at - sentAt
}

/** RFC 9111 §1.2.2: a number, also in quotes; anything else counts as 0. */
function secondsOf(text = ''): Seconds {
  const digits = /^"?(\d{1,10})"?$/.exec(text.trim())?.[1]
  return digits === undefined ? 0 : Number(digits)
}
