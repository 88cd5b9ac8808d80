import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** What went through the proxy since it was last reset. */
export interface Traffic {
  /** How often a client sent something and then waited for the database. Statements sent together are one. */
  readonly trips: number
  /** Transactions that wrote something and were committed. */
  readonly commits: number
  /** Every statement that was run, in order, with parameters as `$1`. */
  readonly statements: readonly string[]
}

export interface PostgresProxy {
  /** The URL of the database, through the proxy. */
  readonly url: string
  /** How long each message to the database takes, in milliseconds. */
  delay: number
  /** What has passed since the last call. */
  take(): Traffic
  /** Ends the connection if this returns true: before the database gets a statement, or once it has done it. */
  cut?: ((statement: string, when: 'before' | 'after') => boolean) | undefined
}

interface Owner {
  teardown(end: () => unknown): unknown
}

/** A proxy of the wire protocol of PostgreSQL, in front of this database, that counts and delays. */
export async function startPostgresProxy(t: Owner, upstream: string): Promise<PostgresProxy> {
  const target = new URL(upstream)
  const counted: Counters = { trips: 0, commits: 0, statements: [] }
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const database = connect(Number(target.port), target.hostname)
    const conversation = new Conversation(counted, proxy)
    for (const [socket, other] of [
      [client, database],
      [database, client],
    ] as const) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', () => other.destroy())
      socket.on('close', () => {
        sockets.delete(socket)
        other.destroy()
      })
    }
    const end = () => {
      client.destroy()
      database.destroy()
    }
    client.on('data', (bytes) => {
      if (conversation.sent(bytes)) return end()
      if (proxy.delay === 0) database.write(bytes)
      else setTimeout(() => database.write(bytes), proxy.delay)
    })
    database.on('data', (bytes) => (conversation.received(bytes) ? end() : client.write(bytes)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const url = new URL(upstream)
  url.port = String((server.address() as AddressInfo).port) // of a listening server
  const proxy: PostgresProxy = {
    url: url.href,
    delay: 0,
    take() {
      const { trips, commits } = counted
      Object.assign(counted, { trips: 0, commits: 0 })
      return { trips, commits, statements: counted.statements.splice(0) }
    },
  }
  return proxy
}

/** Splits a stream into messages: a byte of the type, and a length that includes itself. */
class Messages {
  #rest = Buffer.alloc(0)
  #hasType: boolean

  /** @param hasType False if the first message has no type, as what a client sends first. */
  constructor(hasType: boolean) {
    this.#hasType = hasType
  }

  *of(bytes: Buffer): Generator<{ readonly type: string; readonly body: Buffer }> {
    this.#rest = Buffer.concat([this.#rest, bytes])
    for (;;) {
      const head = this.#hasType ? 1 : 0
      if (this.#rest.length < head + 4) return
      const end = head + this.#rest.readUInt32BE(head)
      if (this.#rest.length < end) return
      const type = this.#hasType ? String.fromCharCode(this.#rest[0] ?? 0) : ''
      const body = this.#rest.subarray(head + 4, end)
      this.#rest = this.#rest.subarray(end)
      this.#hasType = true
      yield { type, body }
    }
  }
}

interface Counters {
  trips: number
  commits: number
  readonly statements: string[]
}

/** One connection: what was sent and is still to be responded to. */
class Conversation {
  readonly #traffic: Counters
  readonly #proxy: Pick<PostgresProxy, 'cut'>
  readonly #toDatabase = new Messages(false)
  readonly #toClient = new Messages(true)
  readonly #prepared = new Map<string, string>()
  #isReady = false
  /** The statements of each message that is still to be responded to. */
  #waiting: string[][] = []
  #bound: string[] = []
  #isInTransaction = false
  #hasWritten = false
  #isCut = false

  constructor(traffic: Counters, proxy: Pick<PostgresProxy, 'cut'>) {
    this.#traffic = traffic
    this.#proxy = proxy
  }

  /** @returns Whether the connection ends here. */
  sent(bytes: Buffer): boolean {
    for (const { type, body } of this.#toDatabase.of(bytes)) {
      if (type === 'P') {
        const [name = '', text = ''] = texts(body)
        this.#prepared.set(name, text)
      }
      const run = type === 'B' ? [this.#prepared.get(texts(body)[1] ?? '') ?? ''] : []
      if (type === 'Q') run.push(...(texts(body)[0] ?? '').split('; '))
      this.#bound.push(...run)
      for (const statement of run) if (this.#run(statement)) return true
      if ((type !== 'S' && type !== 'Q') || !this.#isReady) continue
      if (this.#waiting.length === 0) this.#traffic.trips += 1
      this.#waiting.push(this.#bound.splice(0))
    }
    return false
  }

  #run(statement: string): boolean {
    this.#traffic.statements.push(statement)
    return this.#proxy.cut?.(statement, 'before') ?? false
  }

  received(bytes: Buffer): boolean {
    for (const { type, body } of this.#toClient.of(bytes)) {
      if (type === 'C') this.#completed(texts(body)[0] ?? '')
      if (type !== 'Z') continue
      if (this.#isReady) this.#waiting.shift()
      this.#isReady = true
      this.#isInTransaction = body.toString() !== 'I'
      if (this.#isInTransaction) continue
      if (this.#hasWritten) this.#traffic.commits += 1
      this.#hasWritten = false
    }
    return this.#isCut
  }

  #completed(tag: string): void {
    const statement = this.#waiting[0]?.shift() ?? ''
    if (/^(insert|update|delete|with changed)/.test(statement) && !/ 0$/.test(tag)) this.#hasWritten = true
    if (this.#proxy.cut?.(statement, 'after')) this.#isCut = true
    if (tag === 'ROLLBACK') this.#hasWritten = false
  }
}

/** The texts at the beginning of a message, each with a zero byte after it. */
function texts(body: Buffer): readonly string[] {
  return body.toString('latin1').split('\0', 2)
}
