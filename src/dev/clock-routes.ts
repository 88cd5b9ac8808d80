import { type Static, Type } from '@sinclair/typebox'
import { parseDuration } from '../domain/durations.ts'
import { OAuthError } from '../domain/errors.ts'
import type { Seconds } from '../domain/model.ts'
import { instantOf, isoInstant } from '../system.ts'
import type { ClockChange, MovableClock } from './clock.ts'
import { requireBody } from './json-body.ts'
import type { DevPart } from './plugin.ts'

const ClockRequest = Type.Object(
  {
    reset: Type.Optional(Type.Boolean()),
    set: Type.Optional(Type.Union([Type.String(), Type.Integer()])),
    advance: Type.Optional(Type.Union([Type.String(), Type.Integer()])),
    freeze: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
)

/** Handles carry instants as 32 bits, and every lifetime has to fit behind them: 1970 to 2090. */
const [earliest, latest] = [0, 3_786_912_000]

/** The time machine: GET tells the server's time, POST moves it. */
export const clockRoutes: DevPart = async (app, { clock }) => {
  app.get('/clock', async () => describe(clock))
  app.post('/clock', async (request) => {
    const before = clock()
    const change = changeOf(requireBody(ClockRequest, request.body), clock)
    await clock.move(change)
    const passed = clock() - before
    request.log.info({ now: isoInstant(clock()), moved: passed }, 'the clock was moved')
    return { ...describe(clock), ...(passed < 0 && { warning: backwards(passed) }) }
  })
}

/** What a request of these members does to the clock. @throws {OAuthError} `invalid_request` */
export function changeOf(
  { reset, set, advance, freeze }: Static<typeof ClockRequest>,
  clock: MovableClock,
): ClockChange {
  const change = {
    ...(reset !== undefined && { reset }),
    ...(set !== undefined && { set: requireInstant(set) }),
    ...(advance !== undefined && { advance: requireDuration(advance) }),
    ...(freeze !== undefined && { freeze }),
  }
  assertRepresentable(clock, change)
  return change
}

function describe(clock: MovableClock) {
  const now = clock()
  return { now, iso: isoInstant(now), offset_seconds: clock.offsetSeconds, frozen: clock.isFrozen }
}

function requireInstant(text: string | number): Seconds {
  const at = typeof text === 'number' ? text : instantOf(text)
  if (at !== undefined) return at
  throw malformed('set must be an instant, such as 2027-01-01T00:00:00Z, or seconds since the epoch')
}

function requireDuration(text: string | number): Seconds {
  const seconds = typeof text === 'number' ? text : parseDuration(text)
  if (seconds !== undefined) return seconds
  throw malformed('advance must be a duration, such as 90s, 31d or -1h, or a number of seconds')
}

function assertRepresentable(clock: MovableClock, { reset, set, advance = 0 }: ClockChange): void {
  const from = reset ? clock() - clock.offsetSeconds : clock()
  const then = (set ?? from) + advance
  if (then < earliest || then > latest) throw malformed('the time must stay between 1970 and 2090')
}

function malformed(description: string): OAuthError {
  return new OAuthError('invalid_request', description, { rule: 'lychgate-dev-clock' })
}

function backwards(passed: Seconds): string {
  return `the clock went back by ${-passed} seconds: what was issued in between comes from the future`
}
