import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Seconds } from '../domain/model.ts'
import { useKey } from '../domain/record.ts'
import { recordKey } from './rows.ts'
import { change, many, type Script } from './script.ts'
import type { WriteName } from './statements.ts'
import type { SweepBounds, SweepResult } from './store.ts'

/** One transaction of the sweep deletes at most this many rows: it shares its commit with requests that wait for it. */
export const rowsPerBatch = 20
/** A sweep makes at most so many transactions for one kind: a flood of one starves no other. */
const batchesPerKind = 8

/**
 * Revocations of single access tokens stay a day longer than their tokens: swept by a clock that ran ahead, they would
 * let tokens live again once it is set right.
 */
export const revocationGraceSeconds: Seconds = 86_400

/** Grants are read in the order of their key, so that the hot table needs no index on its end. */
export const grantsPerSlice = 250
/** The most slices one sweep reads. */
const slicesPerSweep = 16
/** Before the first key. */
const firstKey: Buffer = Buffer.alloc(0)

/** How the sweep runs its scripts. */
interface SweepAccess {
  /** Runs one in a transaction of its own. */
  readonly change: (script: () => Script<number>) => Promise<number>
  /** Runs one that locks nothing. */
  readonly read: <T>(script: Script<T>) => Promise<T>
}

/** A statement with its values. */
type Deletion = readonly [statement: WriteName, values: object]

/** What each batch deletes; everything but grants. */
const deletions: readonly ((bounds: SweepBounds) => Deletion)[] = [
  ({ now }) => ['sweepSessions', { now }],
  ({ now }) => ['sweepRecords', { now }],
  ({ now }) => ['sweepUses', { before: recordKey(useKey(now + 1)) }],
  ({ now }) => ['sweepRevokedAccessTokens', { now: now - revocationGraceSeconds }],
  ({ clientsUnusedSince: since }) => ['sweepUnusedClients', { since }],
  ({ clientsIdleSince: since }) => ['sweepIdleClients', { since }],
  ({ refusalsKept: kept }) => ['sweepRejections', { kept }],
  ({ auditedSince: since }) => ['sweepAuditEvents', { since }],
]

/** The sweep of a store. */
export interface Sweep {
  run(bounds: SweepBounds): Promise<SweepResult>
  /** Grants that are valid, as counted by the last pass through all of them. */
  readonly activeGrants: number | undefined
}

/** Creates a sweep that works in steps so small that requests go between any two of them. */
export function sweepBy({ change: commit, read }: SweepAccess): Sweep {
  // How far the pass through the grants has come, and how many valid ones it has counted.
  let [after, counted] = [firstKey, 0]
  let activeGrants: number | undefined
  let last: Promise<unknown> = Promise.resolve()

  async function sweepAll(bounds: SweepBounds): Promise<SweepResult> {
    let [rows, more] = [0, false]
    for (const deletion of deletions) {
      const deleted = await inBatches(() => {
        const [statement, values] = deletion(bounds)
        return commit(() => change(statement, { ...values, limit: rowsPerBatch }))
      })
      rows += deleted
      more ||= deleted === rowsPerBatch * batchesPerKind
    }
    const deleted = await sweepGrants(bounds)
    return { rows: rows + deleted, more: more || (deleted >= rowsPerBatch && after !== firstKey) }
  }

  async function sweepGrants(bounds: SweepBounds): Promise<number> {
    let deleted = 0
    for (let count = 0; count < slicesPerSweep && deleted < rowsPerBatch * batchesPerKind; count++) {
      await nextTurn()
      const values = { after, limit: grantsPerSlice }
      const slice = await read(many('sliceOfGrants', values, (grant) => grant))
      const { now } = bounds
      const expired = slice.filter(({ expiresAt }) => expiresAt <= now)
      for (let at = 0; at < expired.length; at += rowsPerBatch) {
        await nextTurn()
        const batch = expired.slice(at, at + rowsPerBatch)
        const range = { first: batch.at(0)?.id, last: batch.at(-1)?.id }
        deleted += await commit(() => change('sweepGrants', { ...range, now: bounds.now }))
      }
      counted += slice.filter(({ expiresAt, revokedAt }) => expiresAt > now && revokedAt === null).length
      if (slice.length === grantsPerSlice) {
        after = slice.at(-1)?.id ?? firstKey
        continue
      }
      activeGrants = counted
      after = firstKey
      counted = 0
      break
    }
    return deleted
  }

  return {
    run: (bounds) => {
      // One after the other: two at once would count every grant twice.
      const run = last.then(() => sweepAll(bounds))
      last = run.catch(() => undefined)
      return run
    },
    get activeGrants() {
      return activeGrants
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
