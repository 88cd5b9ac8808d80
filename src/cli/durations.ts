import { InvalidArgumentError } from 'commander'
import { parseDuration } from '../domain/durations.ts'
import type { Seconds } from '../domain/model.ts'

/** A span of time on the command line, in seconds; commander shows the rejection of anything else. */
export function parseSpan(text: string): Seconds {
  const seconds = parseDuration(text)
  if (seconds === undefined || seconds < 0)
    throw new InvalidArgumentError('It must be a number and a unit, such as 12h or 1d.')
  return seconds
}
