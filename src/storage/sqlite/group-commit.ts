import { StoreUnavailable } from '../store.ts'

/** What a job came to; a rejection leaves whatever the job has written in place. */
export type Outcome<T> = { readonly result: T } | { readonly rejection: unknown }

/** The connection as far as committing needs it. `begin` takes the write lock. */
export interface Transactions {
  begin(): void
  commit(): void
  /** Must be safe to call when the database has rolled back by itself. */
  rollback(): void
  /** The error callers see for a fault of the database. */
  translate(fault: unknown): unknown
}

interface Job {
  /** Does the work and returns how to settle its promise once it is on disk. */
  readonly run: () => () => void
  readonly reject: (error: unknown) => void
}

/** A batch never holds the write lock for longer than this many jobs. */
const batchSize = 256

/**
 * Lets the jobs of one event-loop turn share one transaction, and so one flush to disk. A promise settles after the
 * commit. When a job faults, the batch is rolled back and each of its jobs runs again alone, so that the fault is
 * only its own; when the database itself cannot answer, all are told so at once.
 */
export class GroupCommit {
  readonly #transactions: Transactions
  readonly #jobs: Job[] = []
  #isScheduled = false
  #isClosed = false

  constructor(transactions: Transactions) {
    this.#transactions = transactions
  }

  /** Runs `work` in a transaction and resolves when that is on disk. `work` may run more than once. */
  submit<T>(work: () => Outcome<T>): Promise<T> {
    if (this.#isClosed) return Promise.reject(new StoreUnavailable(new Error('the store is closed')))
    return new Promise((resolve, reject) => {
      const run = () => {
        const outcome = work()
        return 'rejection' in outcome ? () => reject(outcome.rejection) : () => resolve(outcome.result)
      }
      this.#jobs.push({ run, reject })
      this.#schedule()
    })
  }

  /** Commits what is queued and takes no more. */
  close(): void {
    this.#isClosed = true
    while (this.#jobs.length > 0) this.#commitBatch()
  }

  /** After the poll phase: requests that arrived on different sockets in this turn are all queued by then. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      if (this.#jobs.length > 0) this.#commitBatch()
      if (this.#jobs.length > 0) this.#schedule()
    })
  }

  #commitBatch(): void {
    const batch = this.#jobs.splice(0, batchSize)
    const fault = this.#commit(batch)
    if (fault === undefined) return
    const isShared = batch.length > 1 && !(fault.error instanceof StoreUnavailable)
    if (isShared) this.#commitEachAlone(batch)
    else rejectAll(batch, fault.error)
  }

  #commitEachAlone(batch: readonly Job[]): void {
    for (const [index, job] of batch.entries()) {
      const fault = this.#commit([job])
      if (fault === undefined) continue
      if (!(fault.error instanceof StoreUnavailable)) {
        job.reject(fault.error)
        continue
      }
      // Asking a database that does not answer once more for each job would hold up the whole process.
      rejectAll(batch.slice(index), fault.error)
      break
    }
  }

  #commit(batch: readonly Job[]): { readonly error: unknown } | undefined {
    try {
      this.#transactions.begin()
      const settles = batch.map((job) => job.run())
      this.#transactions.commit()
      for (const settle of settles) settle()
      return undefined
    } catch (fault) {
      this.#transactions.rollback()
      return { error: this.#transactions.translate(fault) }
    }
  }
}

function rejectAll(jobs: readonly Job[], error: unknown): void {
  for (const job of jobs) job.reject(error)
}
