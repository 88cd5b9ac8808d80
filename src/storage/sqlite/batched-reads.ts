import type Database from 'better-sqlite3'

/** Lets the reads of one event-loop turn, or of one of its callbacks, share a transaction. */
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
 * @param isShared Other processes of the same server write.
 */
export function batchedReads(client: Database.Database, forget: () => void, isShared = false): BatchedReads {
  // A turn goes on while it reads from its sockets what was sent after another process committed: with other processes a
  // transaction ends with the callback that began it, whose request had arrived before.
  const later = isShared ? process.nextTick : setImmediate
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
      later(end)
    },
    end,
  }
}
