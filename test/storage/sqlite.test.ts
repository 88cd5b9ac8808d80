import { execFile } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { promisify } from 'node:util'
import Database from 'better-sqlite3'
import t, { type Test } from 'tap'
import { accept, insert } from '../../src/domain/decision.ts'
import { openStore } from '../../src/storage/open.ts'
import { assertSqliteVersion, openDatabase } from '../../src/storage/sqlite/open-database.ts'
import { StoreUnavailable } from '../../src/storage/store.ts'
import { migrations } from './migrations.suite.ts'
import * as sample from './samples.ts'
import { storeSuite } from './store.suite.ts'

async function open(t: Test, file: string) {
  const store = await openStore(`sqlite:${file}`)
  t.teardown(() => store.close())
  return store
}

/** A file that a store has created, filled and closed. */
async function closedFile(t: Test): Promise<string> {
  const file = `${t.testdir()}/lychgate.db`
  const store = await openStore(`sqlite:${file}`)
  await store.write(insert('client', sample.client), insert('user', sample.fullUser))
  await store.close()
  return file
}

/** Another process's connection to the file. */
function neighbour(t: Test, file: string): Database.Database {
  const connection = new Database(file)
  t.teardown(() => connection.close())
  return connection
}

t.test('the store in memory', async (t) => storeSuite(t, (t) => open(t, ':memory:')))

t.test('the store in a file', async (t) => storeSuite(t, (t) => open(t, `${t.testdir()}/lychgate.db`)))

t.test('a file of an earlier version', async (t) => {
  migrations(t, 'sqlite', async (t) => {
    const file = `${t.testdir()}/earlier.db`
    const earlier = new Database(file)
    // A migration calls it; the tables it reads are empty here.
    earlier.function('base64url', String)
    return {
      run: async (statement) => void earlier.exec(statement),
      insert: async (table, row) => {
        const [names, values] = [Object.keys(row), Object.values(row)]
        const places = names.map(() => '?').join(', ')
        earlier
          .prepare(`insert into ${table} (${names.join(', ')}) values (${places})`)
          .run(values.map((value) => (typeof value === 'boolean' ? Number(value) : value)))
      },
      open: () => {
        earlier.close()
        return open(t, file)
      },
    }
  })
})

t.test('written rows are there after closing and opening again', async (t) => {
  const store = await open(t, await closedFile(t))
  t.strictSame(await store.find('client', sample.client.id), sample.client)
  t.strictSame(await store.find('user', sample.fullUser.id), sample.fullUser)
})

t.test('only its owner can read a file', async (t) => {
  t.equal(statSync(await closedFile(t)).mode & 0o077, 0)
})

t.test('every table is strict, and tables that are read only by their key have no second tree', async (t) => {
  const tables = neighbour(t, await closedFile(t)).pragma('table_list') as {
    name: string
    strict: number
    wr: number
  }[] // The columns PRAGMA table_list documents.
  const own = tables.filter(({ name }) => !/^(sqlite_|__drizzle)/.test(name))
  t.equal(own.length, 9)
  t.strictSame(
    own.filter(({ strict }) => strict !== 1),
    [],
  )
  const keyed = own.filter(({ wr }) => wr === 1).map(({ name }) => name)
  t.strictSame(keyed.sort(), ['grants', 'records', 'revoked_access_tokens'])
})

t.test('a connection waits for the disk at a commit, and only briefly for a lock', async (t) => {
  const connection = await openDatabase(await closedFile(t))
  t.teardown(() => connection.close())
  const waits = { journal_mode: 'wal', synchronous: 2, busy_timeout: 100 }
  const settings = { ...waits, foreign_keys: 1, mmap_size: 0, cache_size: -4096 }
  for (const [name, value] of Object.entries(settings)) {
    t.equal(connection.pragma(name, { simple: true }), value, name)
  }
})

t.test('writes queued before the store is closed are committed, later ones rejected', async (t) => {
  const file = await closedFile(t)
  const store = await openStore(`sqlite:${file}`)
  const queued = store.write(insert('key', sample.key))
  await store.close()
  await queued
  await t.rejects(store.write(insert('key', sample.fullKey)), StoreUnavailable)
  await t.rejects(store.find('key', sample.key.id), StoreUnavailable)
  await t.rejects(store.ping(), StoreUnavailable)
  await t.resolves(store.close())
  t.strictSame(await (await open(t, file)).list('key'), [sample.key])
})

t.test(
  'a locked database is StoreUnavailable in bounded time, reads continue, and the store recovers',
  async (t) => {
    const file = await closedFile(t)
    const store = await open(t, file)
    const other = neighbour(t, file)
    other.exec('begin immediate')
    const writes = Array.from({ length: 40 }, (_, n) =>
      store.transact('client', 'x', () => accept(n, insert('key', { ...sample.key, id: `key ${n}` }))),
    )
    const started = performance.now()
    const outcomes = await Promise.allSettled(writes)
    // In sequence they would wait for 20 seconds.
    t.ok(performance.now() - started < 10_000, 'all 40 are told after one wait')
    for (const outcome of outcomes) t.match(outcome, { status: 'rejected', reason: StoreUnavailable })
    t.strictSame(await store.find('client', sample.client.id), sample.client)
    other.exec('rollback')
    t.strictSame(await store.list('key'), [])
    await store.write(insert('key', sample.key))
    t.strictSame(await store.list('key'), [sample.key])
  },
)

t.test('a decision that throws does not rerun the others of its batch', async (t) => {
  const store = await open(t, ':memory:')
  let runs = 0
  const beside = store.transact('key', 'x', () => accept(++runs))
  const throwing = store.transact('key', 'x', () => {
    throw new Error('refused')
  })
  await t.rejects(throwing, { message: 'refused' })
  t.equal(await beside, 1)
  t.equal(runs, 1)
})

t.test('two stores on one file see what the other committed', async (t) => {
  const file = await closedFile(t)
  const [first, second] = [await open(t, file), await open(t, file)]
  await first.write(insert('key', sample.key))
  t.strictSame(await second.find('key', sample.key.id), sample.key)
})

t.test('processes that open a new file at the same time all work', async (t) => {
  const file = `${t.testdir()}/new.db`
  const module = JSON.stringify(new URL('../../src/storage/open.ts', import.meta.url))
  const script = `const { openStore } = await import(${module}); await (await openStore('sqlite:' + process.argv[1])).ping()`
  const run = promisify(execFile)
  const processes = Array.from({ length: 3 }, () => run('node', ['--input-type=module', '-e', script, file]))
  for (const { stderr } of await Promise.all(processes)) t.equal(stderr, '')
  t.strictSame(await (await open(t, file)).list('key'), [])
})

t.test('a file that cannot be used is rejected in one line and left unchanged', async (t) => {
  const good = readFileSync(await closedFile(t))
  async function rejects(name: string, content: Buffer, message: RegExp): Promise<void> {
    const file = `${t.testdirName}/${name}`
    writeFileSync(file, content)
    const fault = await openStore(`sqlite:${file}`).catch((error: unknown) => error)
    t.match(fault, { message }, name)
    t.notMatch(fault, { message: /\n/ }, `${name}: one line`)
    t.ok(readFileSync(file).equals(content), `${name}: untouched`)
  }
  await rejects(
    'text.db',
    Buffer.from('not a database, but long enough to look at'.repeat(40)),
    /not a database/,
  )
  await rejects('cut.db', good.subarray(0, good.length / 2), /malformed/)
  await rejects(
    'schema.db',
    Buffer.concat([good.subarray(0, 100), Buffer.alloc(4000, 0xff), good.subarray(4100)]),
    /malformed/,
  )
  const foreign = new Database(':memory:')
  foreign.exec('create table recipes (name text)')
  await rejects('foreign.db', foreign.serialize(), /another program/)
})

t.test('a file of a newer version is rejected and left unchanged', async (t) => {
  const file = await closedFile(t)
  const future = new Database(file)
  future.exec("insert into __drizzle_migrations (hash, created_at) values ('later', 9999999999999)")
  future.close()
  const content = readFileSync(file)
  await t.rejects(openStore(`sqlite:${file}`), {
    message: /newer version of Lychgate; it was left as it is$/,
  })
  t.ok(readFileSync(file).equals(content))
})

t.test('committed writes are there after an unclean stop', async (t) => {
  const file = await closedFile(t)
  const store = await open(t, file)
  await store.write(insert('key', sample.key))
  // A killed process leaves the file and its journal.
  const crashed = `${t.testdirName}/crashed.db`
  for (const suffix of ['', '-wal']) copyFileSync(file + suffix, crashed + suffix)
  t.strictSame(await (await open(t, crashed)).list('key'), [sample.key])
})

t.test('a file damaged by an unclean stop is rejected', async (t) => {
  const file = await closedFile(t)
  const store = await open(t, file)
  await store.write(insert('key', sample.key))
  const crashed = `${t.testdirName}/crashed.db`
  for (const suffix of ['', '-wal']) copyFileSync(file + suffix, crashed + suffix)
  const content = readFileSync(crashed)
  // A page of the users table that opening does not read.
  const at = content.indexOf('grace@example.org')
  content.fill(0xff, at - (at % 4096), at - (at % 4096) + 100)
  writeFileSync(crashed, content)
  await t.rejects(openStore(`sqlite:${crashed}`), { message: /damaged/ })
})

t.test('a path where no file can be created is rejected in one line', async (t) => {
  const folder = t.testdir({ file: '' })
  await t.rejects(openStore(`sqlite:${folder}/missing/lychgate.db`), { message: /cannot be used: ENOENT/ })
  t.notOk(existsSync(`${folder}/missing`))
  mkdirSync(`${folder}/folder.db`)
  await t.rejects(openStore(`sqlite:${folder}/folder.db`), { message: /folder\.db cannot be used/ })
})

t.test('a read-only file is rejected when it is opened, not at the first write', async (t) => {
  const file = await closedFile(t)
  const content = readFileSync(file)
  // Byte 18, the file format version for writing: with a newer one even root can only read.
  writeFileSync(file, content.fill(3, 18, 19))
  await t.rejects(openStore(`sqlite:${file}`), { message: /cannot be used: attempt to write a readonly/ })
  t.ok(readFileSync(file).equals(content), 'and left as it is')
})

t.test('an empty file becomes a database', async (t) => {
  const file = `${t.testdir({ 'empty.db': '' })}/empty.db`
  truncateSync(file)
  await t.resolves((await open(t, file)).ping())
})

t.test('an old SQLite is rejected', async (t) => {
  const connection = neighbour(t, ':memory:')
  t.doesNotThrow(() => assertSqliteVersion(connection))
  t.throws(() => assertSqliteVersion(connection, '3.999.0'), { message: /is too old: 3\.999\.0 or newer/ })
  t.throws(() => assertSqliteVersion(connection, '4.0.0'))
  t.doesNotThrow(() => assertSqliteVersion(connection, '2.999.999'))
})

t.test('an unsupported URL is rejected without repeating it', async (t) => {
  for (const url of ['mysql://user:secret@host/db', 'lychgate.db', 'sqlite:', '']) {
    const fault = await openStore(url).catch((error: unknown) => error)
    t.match(fault, { message: /^the database URL must be sqlite:<file>/ })
    t.notMatch(fault, { message: /secret/ })
  }
})
