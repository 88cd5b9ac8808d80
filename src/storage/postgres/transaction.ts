import { hash } from 'node:crypto'
import type pg from 'pg'
import type { QueuedWrite, Script } from '../script.ts'
import { StoreUnavailable } from '../store.ts'
import { isRead, perform, plainStatements, type Statements, send } from './prepared.ts'

/**
 * Runs a script in a transaction, and waits for the database only where the script reads: what begins the transaction is
 * sent with the first read, and what it writes with the next read or the commit. A lone write needs neither.
 * @param begin Begins the transaction; with a lock it is sent in any case.
 */
export async function transaction<T>(
  client: pg.ClientBase,
  begin: string,
  script: Script<T>,
  statements: Statements = plainStatements,
): Promise<T> {
  const pipeline = new Pipeline(client, begin, statements)
  const deciding = { ...statements, reading: statements.transacting }
  try {
    let step = script.next()
    while (!step.done) {
      if ('isQueued' in step.value) {
        pipeline.queue(step.value)
        step = script.next()
        continue
      }
      pipeline.flush()
      if (!isRead(step.value)) pipeline.hasWritten = true
      const reading = perform(client, step.value, deciding)
      step = script.next(await pipeline.after(reading))
    }
    await pipeline.commit()
    return step.value
  } catch (fault) {
    await pipeline.rollback()
    throw fault
  }
}

/** Returns the number of an advisory lock. */
export function lockNumber(name: string): bigint {
  return hash('sha256', name, 'buffer').readBigInt64BE()
}

/** What was sent in a transaction and not yet waited for. */
class Pipeline {
  readonly #client: pg.ClientBase
  readonly #begin: string
  readonly #statements: Statements
  #hasBegun = false
  hasWritten = false
  #queued: QueuedWrite[] = []
  readonly #sent: Promise<unknown>[] = []
  /** The first one: the database rejects whatever comes after it. */
  #fault: { readonly error: unknown } | undefined

  constructor(client: pg.ClientBase, begin: string, statements: Statements) {
    this.#client = client
    this.#begin = begin
    this.#statements = statements
  }

  queue(write: QueuedWrite): void {
    this.#queued.push(write)
  }

  /** Sends what is queued, in its order. */
  flush(): void {
    if (!this.#hasBegun) this.#send(this.#client.query(this.#begin))
    this.#hasBegun = true
    for (const write of this.#queued.splice(0)) {
      this.hasWritten = true
      this.#send(send(this.#client, write, this.#statements))
    }
  }

  #send(response: Promise<unknown>): void {
    const noted = response.catch((error: unknown) => {
      this.#fault ??= { error }
    })
    this.#sent.push(noted)
  }

  /** Waits for a response, and for those of everything sent before, which the database gives first. */
  async after<R>(response: Promise<R>): Promise<R> {
    this.#send(response)
    await Promise.all(this.#sent.splice(0))
    if (this.#fault !== undefined) throw this.#fault.error
    return response
  }

  /**
   * Commits. After a failed statement the database rolls back without an error, so only its word counts.
   * @throws {StoreUnavailable} if it did not confirm the commit.
   */
  async commit(): Promise<void> {
    const [only, another] = this.#queued
    if (!this.#hasBegun && another === undefined) {
      if (only !== undefined) await send(this.#client, only, this.#statements)
      return
    }
    this.flush()
    if (!this.hasWritten) {
      // Nothing has to be durable. The next use of the connection waits for the response, or finds it closed.
      this.#client.query('commit').catch(() => undefined)
      return
    }
    const { command } = await this.after(this.#client.query('commit'))
    if (command !== 'COMMIT') throw new StoreUnavailable(new Error(`the database did not commit: ${command}`))
  }

  /** A connection on which even this fails is not used again: the fault before says why. */
  async rollback(): Promise<void> {
    if (this.#hasBegun) await this.#client.query('rollback').catch(() => undefined)
  }
}
