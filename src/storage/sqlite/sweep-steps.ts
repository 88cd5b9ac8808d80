import type { RunResult } from 'better-sqlite3'
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3/driver'
import type { SweepBounds } from '../store.ts'
import { grantsPerSlice, revocationGraceSeconds, rowsPerBatch, type SweepSteps } from '../sweep.ts'
import type { Outcome } from './group-commit.ts'
import { prepareSweep } from './statements.ts'

/** How the store reads and writes. */
interface Access {
  readonly read: <T>(work: () => T) => Promise<T>
  readonly submit: <T>(work: () => Outcome<T>) => Promise<T>
}

/** The steps of the sweep in SQLite: each joins the commit of the requests of its turn. */
export function sweepSteps(db: BetterSQLite3Database, { read, submit }: Access): SweepSteps {
  const statements = prepareSweep(db)
  const limit = rowsPerBatch
  const batch = (run: (bounds: SweepBounds) => RunResult) => (bounds: SweepBounds) =>
    submit(() => ({ result: run(bounds).changes }))
  return {
    kinds: [
      batch(({ now }) => statements.interactions.run({ now, limit })),
      batch(({ now }) => statements.sessions.run({ now, limit })),
      batch(({ now }) => statements.oneTimeLinks.run({ now, limit })),
      batch(({ now }) => statements.throttles.run({ now, limit })),
      batch(({ now }) => statements.revokedAccessTokens.run({ now: now - revocationGraceSeconds, limit })),
      batch(({ clientsUnusedSince: since }) => statements.unusedClients.run({ since, limit })),
      batch(({ clientsIdleSince: since }) => statements.idleClients.run({ since, limit })),
      batch(({ refusalsKept: kept }) => statements.rejections.run({ kept, limit })),
      batch(({ auditedSince: since }) => statements.auditEvents.run({ since, limit })),
    ],
    slice: (after) => read(() => statements.sliceOfGrants.all({ after, limit: grantsPerSlice })),
    grants: (ids, now) =>
      submit(() => ({ result: ids.reduce((sum, id) => sum + statements.grant.run({ id, now }).changes, 0) })),
  }
}
