import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Seconds } from '../domain/model.ts'
import { useKey } from '../domain/record.ts'
import { recordKey } from './rows.ts'
import { change, many, type Script } from './script.ts'
import type { WriteName } from './statements.ts'
import type { SweepBounds, SweepResult } from './store.ts'

/** A sweep deletes at most so many rows of one kind: a flood of one starves no other. */
export const rowsPerSweep = 200
/** On SQLite one transaction deletes at most this many: it shares its commit with requests that wait for it. */
export const rowsPerBatch = 20

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

/** The sizes of unused clients are added up in slices, from the newest to the oldest. */
const clientsPerSlice = 1000
/** After every client that may be older than an instant, and before the newest of all. */
const lastSeq = Number.MAX_SAFE_INTEGER
const newest: Age = { issuedAt: lastSeq, seq: lastSeq }

/** When a client was added; those of one second in their order. */
interface Age {
  readonly issuedAt: Seconds
  readonly seq: number
}

/** How the sweep runs its scripts. */
interface SweepRunner {
  /** Runs one in a transaction of its own. */
  readonly change: (script: () => Script<number>) => Promise<number>
  /** The same for a single statement. */
  readonly changeAtOnce: (script: () => Script<number>) => Promise<number>
  /** Runs one that locks nothing. */
  readonly read: <T>(script: Script<T>) => Promise<T>
  /** How many rows one transaction deletes at most. */
  readonly rowsPerCommit: number
  readonly sweepPartitions: PartitionSweeper | undefined
}

/** Adds and drops partitions. @returns How many rows were dropped; undefined if the audit log has no partitions. */
export type PartitionSweeper = (bounds: SweepBounds) => Promise<{ readonly rows: number } | undefined>

/** Of a log with partitions, an event is deleted alone when it is so much older than events are kept: an eighth. */
const latePart = 8

/** A statement with its values. */
type Deletion = readonly [statement: WriteName, values: object]

/** What each batch deletes; everything but clients, grants and audit events. */
const deletions: readonly ((bounds: SweepBounds) => Deletion)[] = [
  ({ now }) => ['sweepSessions', { now }],
  ({ now }) => ['sweepRecords', { now }],
  ({ now }) => ['sweepUses', { before: recordKey(useKey(now + 1)) }],
  ({ now }) => ['sweepRevokedAccessTokens', { now: now - revocationGraceSeconds }],
  ({ rejectionsKept: kept }) => ['sweepRejections', { kept }],
]

/** The sweep of a store. */
export interface Sweep {
  run(bounds: SweepBounds): Promise<SweepResult>
  /** Grants that are valid, as counted by the last pass through all of them. */
  readonly activeGrants: number | undefined
}

/** Creates a sweep that works in steps so small that requests go between any two of them. */
export function sweepBy({
  change: commit,
  changeAtOnce,
  read,
  rowsPerCommit,
  sweepPartitions,
}: SweepRunner): Sweep {
  // How far the pass through the grants has come, and how many valid ones it has counted.
  let [after, counted] = [firstKey, 0]
  let activeGrants: number | undefined
  // How far the pass through the unused clients has come, and how many bytes it has counted.
  let [before, bytes] = [newest, 0]
  let last: Promise<unknown> = Promise.resolve()

  async function sweepAll(bounds: SweepBounds): Promise<SweepResult> {
    let [rows, more] = [0, false]
    const deleteBy = async (deleteSome: (limit: number) => Promise<number>) => {
      const deleted = await inBatches(rowsPerCommit, deleteSome)
      rows += deleted
      const isFull = deleted === rowsPerSweep
      more ||= isFull
      return isFull
    }
    for (const deletion of deletions)
      await deleteBy((limit) => {
        const [statement, values] = deletion(bounds)
        return changeAtOnce(() => change(statement, { ...values, limit }))
      })
    const deleteClientsBy = (statement: 'unusedClientsUntil' | 'idleClients', valuesOf: () => object) =>
      deleteBy((limit) => commit(() => deleteClients(statement, { ...valuesOf(), limit })))
    await deleteClientsBy('unusedClientsUntil', () => ({
      issuedAt: bounds.clientsUnusedSince - 1,
      seq: lastSeq,
    }))
    await deleteClientsBy('idleClients', () => ({ since: bounds.clientsIdleSince }))
    const over = await unusedBeyond(bounds.unusedClientBytes)
    // The pass begins again when all that is over is deleted.
    if (over !== undefined && !(await deleteClientsBy('unusedClientsUntil', () => over))) before = newest
    const deleted = await sweepGrants(bounds)
    const dropped = await sweepPartitions?.(bounds)
    await deleteBy((limit) => {
      const { now, auditedSince } = bounds
      const late = dropped === undefined ? 0 : Math.ceil((now - auditedSince) / latePart)
      return changeAtOnce(() => change('sweepAuditEvents', { since: auditedSince - late, limit }))
    })
    return {
      rows: rows + deleted + (dropped?.rows ?? 0),
      more: more || (deleted >= rowsPerBatch && after !== firstKey),
    }
  }

  /** Returns the newest unused client beyond a number of bytes, if the pass through them has come to it. */
  async function unusedBeyond(most: number): Promise<Age | undefined> {
    if (before === newest) bytes = 0
    for (let count = 0; count < slicesPerSweep; count++) {
      await nextTurn()
      const values = { ...before, limit: clientsPerSlice }
      const slice = await read(many('sliceOfUnusedClients', values, (client) => client))
      for (const { issuedAt, seq, bytes: size } of slice) {
        if (bytes + size > most) return { issuedAt, seq }
        bytes += size
        before = { issuedAt, seq }
      }
      if (slice.length === clientsPerSlice) continue
      before = newest
      break
    }
    return undefined
  }

  async function sweepGrants(bounds: SweepBounds): Promise<number> {
    let deleted = 0
    for (let count = 0; count < slicesPerSweep && deleted < rowsPerSweep; count++) {
      await nextTurn()
      const values = { after, limit: grantsPerSlice }
      const slice = await read(many('sliceOfGrants', values, (grant) => grant))
      const { now } = bounds
      const expired = slice.filter(({ expiresAt }) => expiresAt <= now)
      for (let at = 0; at < expired.length; at += rowsPerCommit) {
        await nextTurn()
        const batch = expired.slice(at, at + rowsPerCommit)
        const range = { first: batch.at(0)?.id, last: batch.at(-1)?.id }
        deleted += await changeAtOnce(() => change('sweepGrants', { ...range, now: bounds.now }))
      }
      counted += slice.filter(({ expiresAt, revoked }) => expiresAt > now && revoked === 0).length
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

/** Deletes clients with the records that belong to them. They are locked: one that gets its first token stays. */
function* deleteClients(statement: 'unusedClientsUntil' | 'idleClients', values: object): Script<number> {
  const ids = yield* many(statement, values, ({ id }) => id)
  for (const id of ids) {
    yield { statement: 'deleteRecordsOfClient', values: { clientId: id }, isQueued: true }
    yield { statement: 'delete client', values: { key: id }, isQueued: true }
  }
  return ids.length
}

async function inBatches(
  rowsPerCommit: number,
  deleteSome: (limit: number) => Promise<number>,
): Promise<number> {
  let rows = 0
  while (rows < rowsPerSweep) {
    await nextTurn()
    const limit = Math.min(rowsPerCommit, rowsPerSweep - rows)
    const deleted = await deleteSome(limit)
    rows += deleted
    if (deleted < limit) break
  }
  return rows
}
