import type { Outcome } from '../create-store.ts'
import { type Commit, commitChannel, StoreUnavailable } from '../store.ts'
import type { Checkpoints } from './checkpoints.ts'

/** What committing needs of the connection. */
export interface Transactions {
  /**
   * Takes the write lock.
   * @param flush The commit waits until it is on disk, with all that was committed before.
   */
  begin(flush: boolean): void
  commit(): void
  /** Must be safe to call when the database has rolled back by itself. */
  rollback(): void
  /** Whether another process has the write lock. Asking must not wait for it: the whole process would. */
  isLocked(fault: unknown): boolean
  /** The error callers see for a fault of the database. */
  translate(fault: unknown): unknown
}

interface Job {
  /** Does the work and returns how to settle its promise once it is on disk. */
  readonly run: () => () => void
  readonly reject: (error: unknown) => void
  /** A power cut may lose it. */
  readonly isBrief: boolean
  /** When it met a lock first, in milliseconds of `performance`; Infinity while it has met none. */
  lockedSince: number
}

/** Why a transaction was rolled back. */
interface Fault {
  readonly error: unknown
  readonly isLocked: boolean
}

/** A batch never holds the write lock for longer than this many jobs. */
const batchSize = 256
/** How long a job waits for another process that writes; requests that only read go on in the meantime. */
const patienceMilliseconds = 500
const retryMilliseconds = { alone: 5, shared: 1 }

/**
 * Lets the jobs of one event-loop turn share one transaction, and so one flush to disk. A promise settles after the
 * commit. When a job faults, the batch is rolled back and each of its jobs runs again alone, so that the fault is
 * only its own; when the database itself is unavailable, all fail at once. A checkpoint runs in a separate turn:
 * requests whose commit is done do not wait for it, and requests that arrive during it share the next commit.
 */
export class GroupCommit {
  readonly #transactions: Transactions
  readonly #checkpoints: Checkpoints
  readonly #retryMilliseconds: number
  readonly #jobs: Job[] = []
  #isScheduled = false
  #isLocked = false
  #isClosed = false
  #isCheckpointDue = false

  /** @param isShared Other processes of the same server take the lock all the time, for a moment each. */
  constructor(transactions: Transactions, checkpoints: Checkpoints, isShared = false) {
    this.#transactions = transactions
    this.#checkpoints = checkpoints
    this.#retryMilliseconds = isShared ? retryMilliseconds.shared : retryMilliseconds.alone
  }

  /**
   * Runs `work` in a transaction and resolves when that is on disk. `work` may run more than once.
   * @param isBrief Resolves when it is committed: a power cut may lose it.
   */
  submit<T>(work: () => Outcome<T>, isBrief = false): Promise<T> {
    if (this.#isClosed) return Promise.reject(new StoreUnavailable(new Error('the store is closed')))
    return new Promise((resolve, reject) => {
      const run = () => {
        const outcome = work()
        return 'rejection' in outcome ? () => reject(outcome.rejection) : () => resolve(outcome.result)
      }
      this.#jobs.push({ run, reject, isBrief, lockedSince: Infinity })
      this.#schedule()
    })
  }

  /** Takes no more, and resolves when what is queued is settled. */
  async close(): Promise<void> {
    const last = this.#jobs.length > 0 ? this.submit(() => ({ result: undefined })) : undefined
    this.#isClosed = true
    await last?.catch(() => {})
  }

  /** After the poll phase: requests that arrived on different sockets in this turn are all queued by then. */
  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    const turn = () => {
      this.#isScheduled = false
      this.#isLocked = false
      if (this.#isCheckpointDue) this.#checkpoints.run()
      else if (this.#jobs.length > 0) this.#commitBatch()
      // Not one after the other: what a reader keeps in the journal stays there until it is done.
      this.#isCheckpointDue = !this.#isCheckpointDue && this.#checkpoints.isDue()
      if (this.#isCheckpointDue || this.#jobs.length > 0) this.#schedule()
    }
    if (this.#isLocked) setTimeout(turn, this.#retryMilliseconds)
    else setImmediate(turn)
  }

  #commitBatch(): void {
    const batch = this.#jobs.splice(0, batchSize)
    const fault = this.#commit(batch)
    if (fault === undefined) return
    const isShared = batch.length > 1 && !(fault.error instanceof StoreUnavailable)
    if (isShared) this.#commitEachAlone(batch)
    else this.#giveUp(batch, fault)
  }

  #commitEachAlone(batch: readonly Job[]): void {
    for (const [index, job] of batch.entries()) {
      const fault = this.#commit([job])
      if (fault === undefined) continue
      if (!(fault.error instanceof StoreUnavailable)) {
        job.reject(fault.error)
        continue
      }
      // Asking an unavailable database once more for each job would block the whole process.
      this.#giveUp(batch.slice(index), fault)
      break
    }
  }

  /** Jobs that cannot be committed now fail; jobs that met a lock may wait for it a while, in their order. */
  #giveUp(jobs: readonly Job[], { error, isLocked }: Fault): void {
    if (!isLocked) {
      rejectAll(jobs, error)
      return
    }
    this.#isLocked = true
    this.#jobs.unshift(...jobs)
    // Not since they were submitted: a process that stood still for a while has not asked for the lock in the meantime.
    const now = performance.now()
    for (const job of this.#jobs) job.lockedSince = Math.min(job.lockedSince, now)
    const patient = this.#jobs.findIndex(({ lockedSince }) => now - lockedSince < patienceMilliseconds)
    rejectAll(this.#jobs.splice(0, patient < 0 ? this.#jobs.length : patient), error)
  }

  #commit(batch: readonly Job[]): Fault | undefined {
    const start = commitChannel.hasSubscribers ? performance.now() : 0
    try {
      this.#transactions.begin(batch.some(({ isBrief }) => !isBrief))
      const settles = batch.map((job) => job.run())
      this.#transactions.commit()
      if (start > 0) publish(batch.length, start)
      for (const settle of settles) settle()
      return undefined
    } catch (fault) {
      this.#transactions.rollback()
      return { error: this.#transactions.translate(fault), isLocked: this.#transactions.isLocked(fault) }
    }
  }
}

function publish(jobs: number, start: number): void {
  const commit: Commit = { jobs, seconds: (performance.now() - start) / 1000 }
  commitChannel.publish(commit)
}

function rejectAll(jobs: readonly Job[], error: unknown): void {
  for (const job of jobs) job.reject(error)
}
