import {
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import Database from 'better-sqlite3'
import t, { type Test } from 'tap'
import { insert } from '../../src/domain/decision.ts'
import { openStore } from '../../src/storage/open.ts'
import { copyDatabase, DatabaseInUse, replaceDatabase } from '../../src/storage/sqlite/backup.ts'
import * as sample from './samples.ts'

/** A folder with a database that a store has open, and one client in it. */
async function opened(t: Test) {
  const folder = t.testdir()
  const file = `${folder}/lychgate.db`
  const store = await openStore(`sqlite:${file}`)
  t.teardown(() => store.close())
  await store.write(insert('client', sample.client))
  return { folder, file, store }
}

async function contentsOf(file: string) {
  const store = await openStore(`sqlite:${file}`)
  try {
    return { clients: (await store.list('client')).length, keys: (await store.list('key')).length }
  } finally {
    await store.close()
  }
}

t.test(
  'a copy has every committed row, including those in the journal, and only its owner can read it',
  async (t) => {
    const { folder, file, store } = await opened(t)
    t.ok(statSync(`${file}-wal`).size > 0)
    const copy = `${folder}/copy.db`
    t.strictSame(copyDatabase(file, copy), {
      bytes: statSync(copy).size,
      users: 0,
      clients: 1,
      grants: 0,
    })
    t.equal(statSync(copy).mode & 0o777, 0o600)
    await store.write(insert('key', sample.key))
    t.strictSame(await contentsOf(copy), { clients: 1, keys: 0 })
    t.strictSame(await store.find('client', sample.client.id), sample.client, 'the server goes on')
  },
)

t.test(
  'what is not an intact database of this version is not copied, and no file is left behind',
  async (t) => {
    const { folder, file, store } = await opened(t)
    await store.write(insert('user', sample.fullUser))
    await store.close()
    const good = readFileSync(file)
    const at = good.indexOf('grace@example.org')
    const damaged = Buffer.from(good).fill(0xff, at - (at % 4096), at - (at % 4096) + 100)
    const foreign = new Database(':memory:')
    foreign.exec('create table recipes (name text)')
    const newer = new Database(Buffer.from(good).fill(1, 18, 20))
    newer.exec("insert into __drizzle_migrations (hash, created_at) values ('later', 9999999999999)")
    const cases: readonly (readonly [string, Buffer, RegExp])[] = [
      ['empty', Buffer.alloc(0), /^it is empty$/],
      ['text', Buffer.from('not a database, but long enough to look at'.repeat(40)), /not a database/],
      ['cut', good.subarray(0, good.length / 2), /malformed/],
      ['damaged', damaged, /malformed|damaged/],
      ['foreign', foreign.serialize(), /^it belongs to another program$/],
      ['newer', newer.serialize(), /newer version of Lychgate/],
    ]
    for (const [name, content, message] of cases) {
      writeFileSync(`${folder}/${name}`, content)
      t.throws(() => copyDatabase(`${folder}/${name}`, `${folder}/copy.db`), { message }, name)
      t.notOk(existsSync(`${folder}/copy.db`), name)
      t.ok(readFileSync(`${folder}/${name}`).equals(content), `${name}: untouched`)
    }
    t.throws(() => copyDatabase(`${folder}/none`, `${folder}/copy.db`), { message: 'there is no such file' })
    t.strictSame(
      readdirSync(folder).filter((name) => /none|copy/.test(name)),
      [],
    )
  },
)

t.test('a database that is open in a store is not replaced', async (t) => {
  const { folder, file, store } = await opened(t)
  copyDatabase(file, `${folder}/copy.db`)
  const before = readdirSync(folder)
  t.throws(() => replaceDatabase(`${folder}/copy.db`, file, `${folder}/kept.db`), DatabaseInUse)
  t.strictSame(readdirSync(folder), before)
  await t.resolves(store.write(insert('key', sample.key)), 'and is none the worse for it')
  t.strictSame(await contentsOf(file), { clients: 1, keys: 1 })
})

t.test('replacing a database of a killed server keeps the old file and its journal', async (t) => {
  const { folder, file, store } = await opened(t)
  copyDatabase(file, `${folder}/copy.db`)
  await store.write(insert('key', sample.key))
  mkdirSync(`${folder}/crashed`)
  const crashed = `${folder}/crashed/lychgate.db`
  for (const suffix of ['', '-wal', '-shm']) copyFileSync(file + suffix, crashed + suffix)
  t.equal(replaceDatabase(`${folder}/copy.db`, crashed, `${folder}/crashed/kept.db`), true)
  t.strictSame(readdirSync(`${folder}/crashed`).sort(), ['kept.db', 'lychgate.db'])
  t.equal(statSync(crashed).mode & 0o777, 0o600)
  t.strictSame(await contentsOf(crashed), { clients: 1, keys: 0 })
  t.strictSame(await contentsOf(`${folder}/crashed/kept.db`), { clients: 1, keys: 1 })
})

t.test('a connection opened on the old file cannot write to it under its new name', async (t) => {
  const { folder, file, store } = await opened(t)
  copyDatabase(file, `${folder}/copy.db`)
  await store.close()
  const late = new Database(file, { timeout: 0 })
  t.teardown(() => late.close())
  replaceDatabase(`${folder}/copy.db`, file, `${folder}/kept.db`)
  t.throws(() => late.pragma('journal_mode = WAL'), { code: 'SQLITE_READONLY_DBMOVED' })
})

t.test(
  'without a database the copy takes its place, unless a journal without its database is there',
  async (t) => {
    const { folder, file } = await opened(t)
    mkdirSync(`${folder}/new`)
    const fresh = `${folder}/new/lychgate.db`
    copyDatabase(file, `${folder}/copy.db`)
    writeFileSync(`${fresh}-wal`, 'pages of another database')
    t.throws(() => replaceDatabase(`${folder}/copy.db`, fresh, `${folder}/kept.db`), {
      message: /lychgate\.db-wal is the journal of a database that is gone; move it away$/,
    })
    t.notOk(existsSync(fresh))
    const clean = `${folder}/new/other.db`
    t.equal(replaceDatabase(`${folder}/copy.db`, clean, `${folder}/kept.db`), false)
    t.strictSame(await contentsOf(clean), { clients: 1, keys: 0 })
    t.notOk(existsSync(`${folder}/kept.db`))
  },
)

// Only root can change the owner of a file.
if (process.getuid?.() === 0) {
  t.test('a restored database has the owner of the one it replaces', async (t) => {
    const { folder, file, store } = await opened(t)
    copyDatabase(file, `${folder}/copy.db`)
    await store.close()
    chownSync(file, 65534, 65534)
    replaceDatabase(`${folder}/copy.db`, file, `${folder}/kept.db`)
    t.match(statSync(file), { uid: 65534, gid: 65534 })
  })
}
