import type { Seconds } from '../domain/model.ts'
import type { Clock } from '../system/system.ts'

/** What can be done to the time of a development server, in this order where several are given. */
export interface ClockChange {
  /** Back to the machine's time, running. */
  readonly reset?: boolean
  /** The instant it is now. */
  readonly set?: Seconds
  /** Forward, or back when negative. */
  readonly advance?: Seconds
  /** Stand still, or run on from where it stands. */
  readonly freeze?: boolean
}

/** The clock of a development server: at the machine's time, ahead of it, behind it, or frozen. */
export interface MovableClock extends Clock {
  /** How far it is from the machine's time. */
  readonly offsetSeconds: Seconds
  readonly isFrozen: boolean
  /** Changes the time; resolves after all periodic work has been done for the new time. */
  move(change: ClockChange): Promise<void>
  /** Calls `catchUp` after every move, until the returned function is called. */
  whenMoved(catchUp: () => Promise<void>): () => void
}

/** A clock that shows the machine's time until it is moved. */
export function movableClock(machine: Clock): MovableClock {
  const followers = new Set<() => Promise<void>>()
  let offset: Seconds = 0
  let frozenAt: Seconds | undefined
  const now = () => frozenAt ?? machine() + offset
  const place = (at: Seconds) => {
    if (frozenAt === undefined) offset = at - machine()
    else frozenAt = at
  }
  const apply = ({ reset, set, advance, freeze }: ClockChange) => {
    if (reset) [offset, frozenAt] = [0, undefined]
    if (set !== undefined) place(set)
    if (advance !== undefined) place(now() + advance)
    if (freeze === true) frozenAt = now()
    if (freeze === false && frozenAt !== undefined) [offset, frozenAt] = [frozenAt - machine(), undefined]
  }
  const clock = Object.assign(() => now(), {
    move: async (change: ClockChange) => {
      apply(change)
      await Promise.all([...followers].map((catchUp) => catchUp()))
    },
    whenMoved: (catchUp: () => Promise<void>) => {
      followers.add(catchUp)
      return () => void followers.delete(catchUp)
    },
  })
  return Object.defineProperties(clock, {
    offsetSeconds: { get: () => now() - machine() },
    isFrozen: { get: () => frozenAt !== undefined },
    // `as`: the two members defined here are what was missing.
  }) as MovableClock
}

/** Whether this is the clock of a development server. */
export function isMovable(clock: Clock): clock is MovableClock {
  return 'move' in clock
}
