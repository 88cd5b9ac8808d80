import { hash } from 'node:crypto'

/** Choices that are the same for the same seed. */
export interface Dice {
  /** An integer from 0 up to, but not including, `limit`. */
  below(limit: number): number
  /** True once in `times`, on average. */
  oneIn(times: number): boolean
  pick<T>(list: readonly [T, ...T[]]): T
  /** One of the list; undefined if it is empty. */
  draw<T>(list: readonly T[]): T | undefined
  /** Some of the list, in order, each with a chance of one half. */
  some<T>(list: readonly T[]): T[]
  /** One of the names, in proportion to their weights. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K
}

/** A generator for this seed: sfc32, seeded from its SHA-256. */
export function createDice(seed: string): Dice {
  const start = hash('sha256', seed, 'buffer')
  let [a, b, c, count] = [0, 4, 8, 12].map((at) => start.readInt32LE(at)) as [number, number, number, number]
  const next = () => {
    const sum = (((a + b) | 0) + count) | 0
    count = (count + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + sum) | 0
    return sum >>> 0
  }
  for (let round = 0; round < 16; round += 1) next()
  const below = (limit: number) => Math.floor((next() / 2 ** 32) * limit)
  const draw = <T>(list: readonly T[]) => list[below(list.length)]
  return {
    below,
    oneIn: (times) => below(times) === 0,
    pick: (list) => draw(list) as (typeof list)[number],
    draw,
    some: (list) => list.filter(() => below(2) === 0),
    weighted: (weights) => {
      const entries = Object.entries<number>(weights) as [keyof typeof weights, number][]
      let left = below(entries.reduce((sum, [, weight]) => sum + weight, 0))
      for (const [name, weight] of entries) {
        if (left < weight) return name
        left -= weight
      }
      throw new Error('no weights')
    },
  }
}
