import { type Static, Type } from '@sinclair/typebox'
import { parseDuration } from '../domain/durations.ts'
import { OAuthError } from '../domain/errors.ts'
import type { Seconds } from '../domain/model.ts'
import { instantOf, isoInstant } from '../system/system.ts'
import type { ClockChange, MovableClock } from './clock.ts'
import { requireBody } from './json-body.ts'
import type { DevPart } from './part.ts'

const ClockRequest = Type.Object(
  {
    reset: Type.Optional(Type.Boolean()),
    set: Type.Optional(Type.Union([Type.String(), Type.Integer()])),
    advance: Type.Optional(Type.Union([Type.String(), Type.Integer()])),
    freeze: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
)

/** The time machine: GET returns the server's time, POST changes it. */
export const clockRoutes: DevPart = async (app, { clock }) => {
  app.get('/clock', async () => describeClock(clock))
  app.post('/clock', async (request) => {
    const before = clock()
    await clock.move(changeOf(requireBody(ClockRequest, request.body), clock))
    const passed = clock() - before
    request.log.info({ now: isoInstant(clock()), moved: passed }, 'the clock was moved')
    const warning = `the clock went back by ${-passed} seconds: what was issued in between comes from the future`
    return { ...describeClock(clock), ...(passed < 0 && { warning }) }
  })
}

/** Returns the requested change of the clock. @throws {OAuthError} `invalid_request` */
export function changeOf(
  { set, advance, ...rest }: Static<typeof ClockRequest>,
  clock: MovableClock,
): ClockChange {
  const change: ClockChange = {
    ...rest,
    ...(set !== undefined && { set: requireInstant(set) }),
    ...(advance !== undefined && { advance: requireDuration('advance', advance) }),
  }
  const machine = clock() - clock.offsetSeconds
  assertRepresentable((change.set ?? (change.reset ? machine : clock())) + (change.advance ?? 0))
  return change
}

/** Describes the time for responses. */
export function describeClock(clock: MovableClock) {
  const now = clock()
  return { now, iso: isoInstant(now), offset_seconds: clock.offsetSeconds, frozen: clock.isFrozen }
}

function requireInstant(value: string | number): Seconds {
  const at = typeof value === 'number' ? value : instantOf(value)
  if (at !== undefined) return at
  throw malformed('set must be an instant, such as 2027-01-01T00:00:00Z, or seconds since the epoch')
}

/**
 * An instant, seconds since the epoch, or a duration from now. @throws {OAuthError} `invalid_request` naming `member`
 */
export function requireMoment(member: string, value: string | number, now: Seconds): Seconds {
  if (typeof value === 'number') return value
  const duration = parseDuration(value)
  const at = duration === undefined ? instantOf(value) : now + duration
  if (at !== undefined) return at
  throw malformed(
    `${member} must be an instant, such as 2027-01-01T00:00:00Z, or a duration from now, such as -2d`,
  )
}

/** A duration, or a number of seconds. @throws {OAuthError} `invalid_request` naming `member` */
export function requireDuration(member: string, value: string | number): Seconds {
  const seconds = typeof value === 'number' ? value : parseDuration(value)
  if (seconds !== undefined) return seconds
  throw malformed(`${member} must be a duration, such as 90s, 31d or -1h, or a number of seconds`)
}

/** From 1970 to 2090: handles store instants in 32 bits, and every lifetime has to fit behind them. */
const [earliest, latest] = [0, 3_786_912_000]

/** @throws {OAuthError} `invalid_request` for an instant that no token can contain. */
export function assertRepresentable(at: Seconds): void {
  if (at < earliest || at > latest) throw malformed('the time must stay between 1970 and 2090')
}

function malformed(description: string): OAuthError {
  return new OAuthError('invalid_request', description, { rule: 'lychgate-dev-time' })
}
