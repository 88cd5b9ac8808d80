import { hash } from 'node:crypto'
import type { Clock, RandomSource } from '../../src/system/system.ts'

/** A clock that is paused until a test moves it. */
export interface TestClock extends Clock {
  advance(seconds: number): void
  set(at: number): void
}

/** A clock at `start`, seconds since the epoch. */
export function testClock(start = 1_800_000_000): TestClock {
  let now = start
  return Object.assign(() => now, {
    advance: (seconds: number) => {
      now += seconds
    },
    set: (at: number) => {
      now = at
    },
  })
}

/** Random-looking bytes that never repeat, and are the same for the same seed. */
export function seededRandom(seed = 'lychgate'): RandomSource {
  let block = 0
  return (size) => {
    const blocks: Buffer[] = []
    for (let filled = 0; filled < size; filled += 32) {
      blocks.push(hash('sha256', `${seed} ${block++}`, 'buffer'))
    }
    return Buffer.concat(blocks).subarray(0, size)
  }
}
