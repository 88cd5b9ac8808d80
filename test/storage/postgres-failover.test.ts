/** What a failover does to a connection: the server stops responding, or rejects writes. */

import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net'
import pg from 'pg'
import t, { type Test } from 'tap'
import { insert, remove } from '../../src/domain/decision.ts'
import { openStore } from '../../src/storage/open.ts'
import { StoreUnavailable } from '../../src/storage/store.ts'
import { startPostgres } from './postgres-server.ts'
import * as sample from './samples.ts'

const server = await startPostgres(t)

async function open(t: Test, url: string) {
  const store = await openStore(url)
  t.teardown(() => store.close())
  return store
}

t.test(
  'a server that rejects writes is StoreUnavailable, and its connection is not used again',
  async (t) => {
    const url = await server.createDatabase()
    const store = await open(t, url)
    await store.write(insert('key', sample.key))
    const name = new URL(url).pathname.slice(1)
    const operator = new pg.Client(server.url)
    await operator.connect()
    t.teardown(() => operator.end())
    // As on a primary that became a standby. Connections keep the setting for their lifetime.
    await operator.query(`alter database ${name} set default_transaction_read_only = on`)
    await operator.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [name])
    await t.rejects(store.write(remove('key', sample.key.id)), StoreUnavailable)
    const rejected = await store.write(remove('key', sample.key.id)).catch((error: unknown) => error)
    t.match(rejected, { name: 'StoreUnavailable', cause: { code: '25006' } })
    await operator.query(`alter database ${name} reset default_transaction_read_only`)
    await store.write(remove('key', sample.key.id))
    t.strictSame(await store.list('key'), [])
  },
)

t.test(
  'a server that stops responding is StoreUnavailable in bounded time, and the store recovers',
  async (t) => {
    const { url, pause, resume } = await startRelay(t, await server.createDatabase())
    const store = await open(t, url)
    await store.write(insert('key', sample.key))
    pause()
    const started = performance.now()
    await Promise.all([
      t.rejects(store.write(remove('key', sample.key.id)), StoreUnavailable),
      t.rejects(store.find('key', sample.key.id), StoreUnavailable),
      t.rejects(store.ping(), StoreUnavailable),
    ])
    t.ok(performance.now() - started < 25_000)
    resume()
    t.strictSame(await store.list('key'), [sample.key])
    t.match(
      (await store.activity()).connections,
      { total: 1, idle: 1, waiting: 0 },
      'the silent ones are gone',
    )
  },
)

/** Forwards bytes to the server of this URL; while paused it forwards none and closes no connection. */
async function startRelay(t: Test, url: string) {
  const sockets = new Set<Socket>()
  let isPaused = false
  const relay = createServer((near) => {
    const far = createConnection(Number(new URL(url).port), '127.0.0.1')
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('data', (chunk) => !isPaused && to.write(chunk))
      from.on('error', () => undefined)
      from.on('close', () => to.destroy())
    }
  })
  await new Promise<void>((resolve) => relay.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    relay.close()
  })
  const through = new URL(url)
  // `as`: what a server on a port has.
  through.port = String((relay.address() as AddressInfo).port)
  return {
    url: through.href,
    pause: () => {
      isPaused = true
    },
    resume: () => {
      isPaused = false
    },
  }
}
