import type Database from 'better-sqlite3'

/** Lets the reads of one event-loop turn share a transaction. */
export interface BatchedReads {
  /** Before a read. */
  begin(): void
  /** Before a transaction that writes, and before the connection is closed. */
  end(): void
}

/**
 * A read alone takes the lock of readers and gives it back: two calls of the system, which is most of its time. The
 * reads of a turn see one state of the database, as of the first of them or of the last commit of this connection.
 * @param forget Called when that state is over, with whatever was remembered of it.
 */
export function batchedReads(client: Database.Database, forget: () => void): BatchedReads {
  const [begin, commit] = [client.prepare('begin'), client.prepare('commit')]
  let isOpen = false
  const end = () => {
    if (!isOpen) return
    isOpen = false
    forget()
    // A fault of the database may have ended it.
    if (client.inTransaction) commit.run()
  }
  return {
    begin: () => {
      if (isOpen) return
      begin.run()
      isOpen = true
      setImmediate(end)
    },
    end,
  }
}
