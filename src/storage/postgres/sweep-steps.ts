import type { SweepBounds } from '../store.ts'
import { grantsPerSlice, revocationGraceSeconds, rowsPerBatch, type SweepSteps } from '../sweep.ts'
import type { prepareSweep } from './statements.ts'

type Statements = ReturnType<typeof prepareSweep>
/** Runs one of the statements in a transaction of its own. */
type Run = <T>(work: (statements: Statements) => Promise<T>) => Promise<T>

/** The steps of the sweep in PostgreSQL; several servers may sweep one database. */
export function sweepSteps(run: Run): SweepSteps {
  const limit = rowsPerBatch
  const batch =
    (work: (statements: Statements, bounds: SweepBounds) => Promise<{ readonly rowCount: number | null }>) =>
    async (bounds: SweepBounds) =>
      (await run((statements) => work(statements, bounds))).rowCount ?? 0
  return {
    kinds: [
      batch((of, { now }) => of.interactions.execute({ now, limit })),
      batch((of, { now }) => of.sessions.execute({ now, limit })),
      batch((of, { now }) => of.oneTimeLinks.execute({ now, limit })),
      batch((of, { now }) => of.throttles.execute({ now, limit })),
      batch((of, { now }) => of.revokedAccessTokens.execute({ now: now - revocationGraceSeconds, limit })),
      batch((of, { clientsUnusedSince: since }) => of.unusedClients.execute({ since, limit })),
      batch((of, { clientsIdleSince: since }) => of.idleClients.execute({ since, limit })),
      batch((of, { refusalsKept: kept }) => of.rejections.execute({ kept, limit })),
      batch((of, { auditedSince: since }) => of.auditEvents.execute({ since, limit })),
    ],
    slice: (after) => run((of) => of.sliceOfGrants.execute({ after, limit: grantsPerSlice })),
    grants: async (ids, now) => (await run((of) => of.grants.execute({ ids, now }))).rowCount ?? 0,
  }
}
