import type Database from 'better-sqlite3'
import { type Checkpoint, checkpointChannel } from '../store.ts'

/** How long a checkpoint should hold the event loop. SQLite's own 1,000 pages may take 8 ms. */
const wantedMilliseconds = 2
const [fewestPages, mostPages] = [100, 1000]
/** Processes that write all the time never let a checkpoint reach the end of a journal, which then grows for ever. */
const longJournal = 4 * mostPages

/** What the journal holds and the file does not yet. SQLite would see to it in the commit that fills the journal. */
export interface Checkpoints {
  /** Whether there is enough of it to be worth the work. */
  isDue(): boolean
  /** Brings it into the file. What fails is in the journal still, and on disk: it will be due again. */
  run(): void
}

/**
 * @param prepare Called first, to end what this connection is reading.
 * @param now In milliseconds.
 */
export function checkpoints(
  client: Database.Database,
  prepare: () => void,
  now: () => number = () => performance.now(),
): Checkpoints {
  client.pragma('wal_autocheckpoint = 0')
  // `restart` takes the lock of writers until it has reached the end, if no other process has it at this moment.
  const [look, checkpoint, restart] = ['noop', 'passive', 'restart'].map((mode) =>
    client.prepare<[], Journal>(`pragma wal_checkpoint(${mode})`).raw(),
  )
  // As many as take that long: new rows share pages of the file, but changed ones mostly have a page each.
  let pages = fewestPages
  let isLong = false
  return {
    isDue: () => {
      const [, written, copied] = attempt(look) ?? [0, 0, 0]
      isLong = written >= longJournal
      return written - copied >= pages
    },
    run: () => {
      const start = now()
      prepare()
      const [, written, copied] = attempt(isLong ? restart : checkpoint) ?? [0, 0, -1]
      const milliseconds = now() - start
      // If a reader stopped it, its time says nothing; if the machine was busy, it says little.
      if (copied === written)
        pages = within(pages * within(wantedMilliseconds / milliseconds, 0.5, 1.25), fewestPages, mostPages)
      const done: Checkpoint = { seconds: milliseconds / 1000 }
      checkpointChannel.publish(done)
    },
  }
}

/**
 * Whether another one is under way; pages of the journal, and how many of them the file has. -1: there is no journal.
 */
type Journal = readonly [busy: number, written: number, copied: number]

function within(value: number, least: number, most: number): number {
  return Math.min(Math.max(value, least), most)
}

function attempt(statement: Database.Statement<[], Journal> | undefined): Journal | undefined {
  try {
    return statement?.get()
  } catch {
    return undefined
  }
}
