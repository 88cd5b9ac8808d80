import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { PGlite } from '@electric-sql/pglite'
import type { Test } from 'tap'

/** PostgreSQL in this process, which the store's driver reaches like any other. */
export interface PgliteServer {
  /** The URL of the one database, emptied. */
  emptyDatabase(): Promise<string>
}

/**
 * PGlite behind a port. It has one session, so it serves one connection at a time, and the next waits. A store on it
 * is opened with one connection.
 */
export async function startPglite(t: Test): Promise<PgliteServer> {
  const database = await PGlite.create()
  let turn = Promise.resolve()
  const server = createServer({ noDelay: true }, (socket) => {
    // Errors after the client disconnects do not matter.
    socket.on('error', () => undefined)
    turn = turn.then(() => serve(database, socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(async () => {
    server.close()
    await turn
    await database.close()
  })
  // `as`: what a server on a port has.
  const { port } = server.address() as AddressInfo
  return {
    async emptyDatabase() {
      await turn
      await database.exec(
        'drop schema if exists drizzle cascade; drop schema public cascade; create schema public',
      )
      return `postgres://postgres@127.0.0.1:${port}/postgres`
    },
  }
}

/** Serves one connection to its end, and leaves nothing of it for the next. */
async function serve(database: PGlite, socket: Socket): Promise<void> {
  let received = Buffer.alloc(0)
  let [isStarted, isOver] = [false, false]
  const gone = once(socket, 'close').then(() => undefined)
  let work = Promise.resolve()
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    for (let message = next(); message !== undefined; message = next()) answer(message)
  })

  /** The next whole message; the first one has no type before its length. */
  function next(): Buffer | undefined {
    const head = isStarted ? 1 : 0
    if (received.length < head + 4) return undefined
    const end = head + received.readUInt32BE(head)
    if (received.length < end) return undefined
    const message = received.subarray(0, end)
    received = received.subarray(end)
    return message
  }

  function answer(message: Buffer): void {
    if (!isStarted) {
      isStarted = true
      work = work.then(() => begin(message))
      return
    }
    if (message[0] === terminate) {
      isOver = true
      socket.end()
      return
    }
    work = work.then(async () => {
      if (!isOver) socket.write(await database.execProtocolRaw(message))
    })
  }

  /** A session begins with the settings in its startup message. */
  async function begin(message: Buffer): Promise<void> {
    const words = message.subarray(8).toString().split('\0')
    for (let at = 0; at + 1 < words.length && words[at] !== ''; at += 2) {
      const [name = '', value = ''] = [words[at], words[at + 1]]
      if (!['user', 'database', 'client_encoding'].includes(name)) {
        await database.query('select set_config($1, $2, false)', [name, value])
      }
    }
    socket.write(welcome)
  }

  await gone
  await work
  await database.exec('rollback')
  await database.exec('discard all')
}

const terminate = 'X'.charCodeAt(0)
/** AuthenticationOk, and ReadyForQuery outside a transaction. */
const welcome = Buffer.from([
  ...Buffer.from('R\0\0\0\x08\0\0\0\0', 'latin1'),
  ...Buffer.from('Z\0\0\0\x05I', 'latin1'),
])
