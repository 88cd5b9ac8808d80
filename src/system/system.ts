import { randomBytes } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { Seconds } from '../domain/model.ts'

/** The current time in whole seconds since the epoch. */
export type Clock = () => Seconds

/** `size` fresh random bytes from a cryptographic source. */
export type RandomSource = (size: number) => Buffer

/** The machine's clock. */
export const systemClock: Clock = () => Math.floor(Date.now() / 1000)

/** Milliseconds since the epoch, as lines of the log have them. */
export const systemMilliseconds = () => Date.now()

/** When cookies that are cleared expired. */
export const epoch = new Date(0)

/** The instant of a `Date` header, RFC 9110 §5.6.7; undefined if it is not one. */
export function httpInstant(text: string): Seconds | undefined {
  const milliseconds = Date.parse(text)
  return Number.isNaN(milliseconds) ? undefined : Math.floor(milliseconds / 1000)
}

/** The instant of an ISO 8601 date and time with its offset, `2027-01-01T00:00:00Z`; undefined if it is not one. */
export function instantOf(text: string): Seconds | undefined {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[-+]\d\d:\d\d)$/.test(text)) return undefined
  return httpInstant(text)
}

/** An instant as `2027-01-01T00:00:00Z`. */
export function isoInstant(at: Seconds): string {
  return new Date(at * 1000).toISOString().replace('.000', '')
}

/** Waits until work has ended, but no longer than this. */
export async function endWithin(milliseconds: number, work: Promise<unknown>): Promise<void> {
  const timer = new AbortController()
  const overdue = wait(Math.max(0, milliseconds), undefined, { signal: timer.signal }).catch(() => {})
  try {
    await Promise.race([work, overdue])
  } finally {
    timer.abort()
  }
}

const poolBytes = 4096
let pool = randomBytes(poolBytes)
let used = 0

/** The randomness of the operating system, read in pages: one system call serves many secrets. */
export const systemRandom: RandomSource = (size) => {
  if (size > poolBytes / 8) return randomBytes(size)
  if (used + size > poolBytes) {
    pool = randomBytes(poolBytes)
    used = 0
  }
  // Copied as a whole: `Buffer.from` would look at what it was given first, which takes longer.
  const bytes = Buffer.allocUnsafe(size)
  pool.copy(bytes, 0, used, used + size)
  pool.fill(0, used, used + size)
  used += size
  return bytes
}
