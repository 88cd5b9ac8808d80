import { statSync } from 'node:fs'
import { setImmediate as nextTurn } from 'node:timers/promises'
import Database from 'better-sqlite3'
import t, { type Test } from 'tap'
import { insert } from '../../src/domain/decision.ts'
import { openStore } from '../../src/storage/open.ts'
import { checkpoints } from '../../src/storage/sqlite/checkpoints.ts'
import { GroupCommit, type Transactions } from '../../src/storage/sqlite/group-commit.ts'
import { type Checkpoint, checkpointChannel } from '../../src/storage/store.ts'
import * as sample from './samples.ts'

/** A store over a file, what another process sees in its journal, and a write that fills it. */
async function open(t: Test) {
  const file = `${t.testdir()}/checkpoints.db`
  const store = await openStore(`sqlite:${file}`)
  const outside = new Database(file, { timeout: 0 })
  t.teardown(async () => {
    outside.close()
    await store.close()
  })
  const journal = () => outside.prepare('pragma wal_checkpoint(noop)').get() as Record<string, number>
  let written = 0
  const next = () => {
    written += 1
    return insert('client', { ...sample.client, id: `client ${written}`, name: 'x'.repeat(3000) })
  }
  await store.write(insert('user', sample.user))
  outside.pragma('wal_checkpoint(truncate)')
  const fill = () => store.write(...Array.from({ length: 120 }, next))
  return { file, store, outside, journal, next, fill }
}

t.test(
  'a commit that fills the journal settles first, and the journal is copied to the file one turn later',
  async (t) => {
    const { fill, journal } = await open(t)
    await fill()
    const { log = 0, checkpointed } = journal()
    t.ok(log >= 100, `${log} pages in the journal`)
    t.equal(checkpointed, 0)
    await nextTurn()
    await nextTurn()
    t.equal(journal().checkpointed, log)
  },
)

t.test('a few pages stay in the journal', async (t) => {
  const { store, next, journal } = await open(t)
  await store.write(next())
  await nextTurn()
  await nextTurn()
  t.match(journal(), { log: Number, checkpointed: 0 })
  t.ok((journal().log ?? 0) > 0)
})

t.test('a reader in that turn does not prevent the checkpoint', async (t) => {
  const { fill, store, journal } = await open(t)
  await fill()
  const reading = store.find('user', sample.user.id)
  await nextTurn()
  await nextTurn()
  const { log, checkpointed } = journal()
  t.equal(checkpointed, log)
  t.equal((await reading)?.id, sample.user.id)
})

t.test('the journal stays bounded while writes never pause', async (t) => {
  const { file, store, next } = await open(t)
  for (let n = 0; n < 1500; n += 1) await store.write(next())
  const pages = statSync(`${file}-wal`).size / 4096
  t.ok(pages < 1100, `${pages} pages`)
})

t.test('a checkpoint has as many pages as take 2 ms, from 100 to 1,000', (t) => {
  const client = new Database(`${t.testdir()}/paced.db`)
  t.teardown(() => client.close())
  client.pragma('journal_mode = WAL')
  client.exec('create table pages (body)')
  let [time, each] = [0, 0]
  const { isDue, run } = checkpoints(
    client,
    () => undefined,
    () => {
      time += each
      return time
    },
  )
  const fill = client.prepare('insert into pages values (?)')
  const pagesOf = (milliseconds: number, times = 1): number => {
    each = milliseconds
    let pages = 0
    for (let n = 0; n < times; n += 1) {
      for (pages = 0; !isDue(); pages += 1) fill.run('x'.repeat(4000))
      run()
    }
    return pages
  }
  const first = pagesOf(1.9)
  t.ok(first <= 100, `${first} pages`)
  const more = pagesOf(0.1)
  t.ok(more > first && more < first * 1.25, `${more} pages once one took 1.9 ms`)
  const most = pagesOf(0.1, 20)
  t.ok(most > 2 * more && most <= 1000, `${most} pages when all take 0.1 ms`)
  pagesOf(20)
  const half = pagesOf(20)
  t.ok(half > most * 0.4 && half < most * 0.6, `${half} pages after one of 20 ms`)
  const least = pagesOf(20, 20)
  t.ok(least >= first * 0.8 && least <= first, `${least} pages when all take 20 ms`)
  t.end()
})

t.test('a checkpoint that a reader stops does not change the number of pages', (t) => {
  const file = `${t.testdir()}/stopped.db`
  const [client, reader] = [new Database(file), new Database(file)]
  t.teardown(() => {
    reader.close()
    client.close()
  })
  client.pragma('journal_mode = WAL')
  client.exec('create table pages (body)')
  const { isDue, run } = checkpoints(
    client,
    () => undefined,
    () => 0,
  )
  const fill = client.prepare('insert into pages values (?)')
  const pages = (): number => {
    let count = 0
    for (; !isDue(); count += 1) fill.run('x'.repeat(4000))
    return count
  }
  reader.exec('begin')
  reader.prepare('select count(*) from pages').get()
  pages()
  for (let n = 0; n < 20; n += 1) run()
  reader.exec('commit')
  client.pragma('wal_checkpoint(truncate)')
  const after = pages()
  t.ok(after <= 100, `${after} pages`)
  t.end()
})

t.test(
  'what another process still reads stays in the journal until the next commit after it has finished',
  async (t) => {
    const { fill, next, journal, outside, store } = await open(t)
    outside.exec('begin')
    outside.prepare('select count(*) from clients').get()
    await fill()
    await nextTurn()
    await nextTurn()
    outside.exec('commit')
    const before = journal()
    t.equal(before.checkpointed, 0, 'the reader sees the file as it was')
    await store.write(next())
    await nextTurn()
    await nextTurn()
    const { log, checkpointed } = journal()
    t.ok((log ?? 0) > (before.log ?? 0))
    t.equal(checkpointed, log)
  },
)

t.test('writes queued before and during a checkpoint share a commit', async (t) => {
  const events: string[] = []
  const transactions: Transactions = {
    begin: () => undefined,
    commit: () => void events.push('commit'),
    rollback: () => undefined,
    isLocked: () => false,
    translate: (fault) => fault,
  }
  const commits: GroupCommit = new GroupCommit(transactions, {
    isDue: () => !events.includes('checkpoint'),
    run: () => {
      events.push('checkpoint')
      setImmediate(() => void submit('during'))
    },
  })
  const submit = async (name: string) => {
    await commits.submit(() => ({ result: events.push(name) }))
    events.push(`${name} answered`)
  }
  await submit('first')
  await submit('before')
  await nextTurn()
  t.strictSame(events, [
    'first',
    'commit',
    'first answered',
    'checkpoint',
    'before',
    'during',
    'commit',
    'before answered',
    'during answered',
  ])
})

t.test('each checkpoint is reported with its duration', async (t) => {
  const { fill } = await open(t)
  const told: Checkpoint[] = []
  const hear = (message: unknown) => void told.push(message as Checkpoint)
  checkpointChannel.subscribe(hear)
  t.teardown(() => checkpointChannel.unsubscribe(hear))
  await fill()
  await nextTurn()
  await nextTurn()
  t.equal(told.length, 1)
  t.ok((told[0]?.seconds ?? 0) > 0)
})

t.test('a failing checkpoint does not fail the commit before it', (t) => {
  const client = new Database(':memory:')
  const { isDue, run } = checkpoints(client, () => undefined)
  t.equal(isDue(), false, 'in memory there is no journal')
  client.close()
  t.equal(isDue(), false)
  run()
  t.end()
})
