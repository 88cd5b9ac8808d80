import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Seconds } from '../domain/model.ts'
import type { SweepBounds, Swept } from './store.ts'

/** One transaction of the sweep deletes at most this many rows: it shares its commit with requests that wait for it. */
export const rowsPerBatch = 20
/** A sweep makes at most so many transactions for one kind: a flood of one starves no other. */
const batchesPerKind = 8

/**
 * Revocations of single access tokens stay a day longer than their tokens: swept by a clock that ran ahead, they would
 * let tokens live again once it is set right.
 */
export const revocationGraceSeconds: Seconds = 86_400

/** Grants are walked in the order of their key, so that the hot table needs no index on its end. */
export const grantsPerSlice = 250
/** The most a sweep walks before it rests. */
const slicesPerSweep = 16
/** Before the first key. */
const walkStart: Buffer = Buffer.alloc(0)

/** A grant as the walk meets it. */
export interface WalkedGrant {
  readonly id: Buffer
  readonly expiresAt: Seconds
  readonly revokedAt: Seconds | null
}

/** What an adapter deletes, a transaction a call; each says how many rows went. */
export interface SweepSteps {
  /** Each deletes one kind of record that is due, at most `rowsPerBatch` of them. */
  readonly kinds: readonly ((bounds: SweepBounds) => Promise<number>)[]
  /** The next `grantsPerSlice` grants in the order of their key; it locks nothing. */
  readonly slice: (after: Buffer) => Promise<readonly WalkedGrant[]>
  /** Deletes those of these that have ended. */
  readonly grants: (ids: readonly Buffer[], now: Seconds) => Promise<number>
}

/** The sweep of a store. */
export interface Sweep {
  run(bounds: SweepBounds): Promise<Swept>
  /** Grants that live, met by the last walk that came to the end. */
  readonly livingGrants: number | undefined
}

/** A sweep in steps so small that requests go between any two of them. */
export function sweepBy(steps: SweepSteps): Sweep {
  const walk = beginWalk()
  let last: Promise<unknown> = Promise.resolve()

  async function sweepAll(bounds: SweepBounds): Promise<Swept> {
    let [rows, more] = [0, false]
    for (const kind of steps.kinds) {
      const deleted = await inBatches(() => kind(bounds))
      rows += deleted
      more ||= deleted === rowsPerBatch * batchesPerKind
    }
    const deleted = await sweepGrants(bounds)
    return { rows: rows + deleted, more: more || (deleted >= rowsPerBatch && !walk.isAtStart) }
  }

  async function sweepGrants(bounds: SweepBounds): Promise<number> {
    let deleted = 0
    for (let count = 0; count < slicesPerSweep && deleted < rowsPerBatch * batchesPerKind; count++) {
      await nextTurn()
      const slice = await steps.slice(walk.after)
      const { now } = bounds
      const expired = slice.filter(({ expiresAt }) => expiresAt <= now).map(({ id }) => id)
      for (let at = 0; at < expired.length; at += rowsPerBatch) {
        await nextTurn()
        deleted += await steps.grants(expired.slice(at, at + rowsPerBatch), bounds.now)
      }
      walk.pass(slice, now)
      if (walk.isAtStart) break
    }
    return deleted
  }

  return {
    run: (bounds) => {
      // One after the other: two that walk at once would count every grant twice.
      const run = last.then(() => sweepAll(bounds))
      last = run.catch(() => undefined)
      return run
    },
    get livingGrants() {
      return walk.living
    },
  }
}

async function inBatches(deleteSome: () => Promise<number>): Promise<number> {
  let rows = 0
  for (let batch = 0; batch < batchesPerKind; batch++) {
    await nextTurn()
    const deleted = await deleteSome()
    rows += deleted
    if (deleted < rowsPerBatch) break
  }
  return rows
}

/** How far the walk through the grants has come, and how many living ones it met; it begins again at the end. */
function beginWalk() {
  let [after, met] = [walkStart, 0]
  let living: number | undefined
  return {
    get after() {
      return after
    },
    get isAtStart() {
      return after === walkStart
    },
    get living() {
      return living
    },
    pass: (slice: readonly WalkedGrant[], now: Seconds) => {
      met += slice.filter(({ expiresAt, revokedAt }) => expiresAt > now && revokedAt === null).length
      after = slice.length < grantsPerSlice ? walkStart : (slice.at(-1)?.id ?? walkStart)
      if (after !== walkStart) return
      living = met
      met = 0
    },
  }
}
