import { type Static, Type } from '@sinclair/typebox'
import { OAuthError } from '../domain/errors.ts'
import type { Seconds } from '../domain/model.ts'
import { instantOf, isoInstant } from '../system.ts'
import type { ClockChange, MovableClock } from './clock.ts'
import { assertRepresentable, requireDuration } from './instants.ts'
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

/** The time machine: GET tells the server's time, POST moves it. */
export const clockRoutes: DevPart = async (app, { clock }) => {
  app.get('/clock', async () => describeClock(clock))
  app.post('/clock', async (request) => {
    const before = clock()
    const change = changeOf(requireBody(ClockRequest, request.body), clock)
    await clock.move(change)
    const passed = clock() - before
    request.log.info({ now: isoInstant(clock()), moved: passed }, 'the clock was moved')
    return { ...describeClock(clock), ...(passed < 0 && { warning: backwards(passed) }) }
  })
}

/** What a request of these members does to the clock. @throws {OAuthError} `invalid_request` */
export function changeOf(
  { reset, set, advance, freeze }: Static<typeof ClockRequest>,
  clock: MovableClock,
): ClockChange {
  const change: ClockChange = {
    ...(reset !== undefined && { reset }),
    ...(set !== undefined && { set: requireInstant(set) }),
    ...(advance !== undefined && { advance: requireDuration('advance', advance) }),
    ...(freeze !== undefined && { freeze }),
  }
  const machine = clock() - clock.offsetSeconds
  assertRepresentable((change.set ?? (reset ? machine : clock())) + (change.advance ?? 0))
  return change
}

/** The time as answers tell it. */
export function describeClock(clock: MovableClock) {
  const now = clock()
  return { now, iso: isoInstant(now), offset_seconds: clock.offsetSeconds, frozen: clock.isFrozen }
}

function requireInstant(said: string | number): Seconds {
  const at = typeof said === 'number' ? said : instantOf(said)
  if (at !== undefined) return at
  throw new OAuthError(
    'invalid_request',
    'set must be an instant, such as 2027-01-01T00:00:00Z, or seconds since the epoch',
    { rule: 'lychgate-dev-time' },
  )
}

function backwards(passed: Seconds): string {
  return `the clock went back by ${-passed} seconds: what was issued in between comes from the future`
}
