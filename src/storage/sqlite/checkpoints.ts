import type Database from 'better-sqlite3'
import { type Checkpoint, checkpointChannel } from '../store.ts'

/** Often, then, and little: for so many pages the event loop stands still for 1 to 2 ms, for SQLite's 1,000 for 8. */
const pagesAtOnce = 100

/** What the journal holds and the file does not yet. SQLite would see to it in the commit that fills the journal. */
export interface Checkpoints {
  /** Whether there is enough of it to be worth the work. */
  isDue(): boolean
  /** Brings it into the file. What fails is in the journal still, and on disk: it will be due again. */
  run(): void
}

/** @param prepare Called first, to end what this connection is reading. */
export function checkpoints(client: Database.Database, prepare: () => void): Checkpoints {
  client.pragma('wal_autocheckpoint = 0')
  const [look, checkpoint] = ['noop', 'passive'].map((mode) =>
    client.prepare<[], Journal>(`pragma wal_checkpoint(${mode})`).raw(),
  )
  return {
    isDue: () => {
      const [, written, copied] = attempt(look) ?? [0, 0, 0]
      return written - copied >= pagesAtOnce
    },
    run: () => {
      const start = performance.now()
      prepare()
      attempt(checkpoint)
      const told: Checkpoint = { seconds: (performance.now() - start) / 1000 }
      checkpointChannel.publish(told)
    },
  }
}

/**
 * Whether another one is under way; pages of the journal, and how many of them the file has. -1: there is no journal.
 */
type Journal = readonly [busy: number, written: number, copied: number]

function attempt(statement: Database.Statement<[], Journal> | undefined): Journal | undefined {
  try {
    return statement?.get()
  } catch {
    return undefined
  }
}
