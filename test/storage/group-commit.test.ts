import Database from 'better-sqlite3'
import t, { type Test } from 'tap'
import { checkpoints } from '../../src/storage/sqlite/checkpoints.ts'
import { GroupCommit, type Transactions } from '../../src/storage/sqlite/group-commit.ts'
import { type Commit, commitChannel, StoreUnavailable } from '../../src/storage/store.ts'

/** A group commit over a real file, the number of its transactions, and another connection that reads the file. */
function open(t: Test) {
  const file = `${t.testdir()}/group.db`
  const [client, outside] = [new Database(file, { timeout: 0 }), new Database(file, { timeout: 0 })]
  client.pragma('journal_mode = WAL')
  client.exec('create table numbers (n integer primary key check (n >= 0)) strict')
  t.teardown(() => [client, outside].map((connection) => connection.close()))
  const count = { begun: 0, committed: 0 }
  const flushes: boolean[] = []
  const disk = { isFull: false }
  const transactions: Transactions = {
    begin(flush) {
      flushes.push(flush)
      count.begun++
      client.exec('begin immediate')
    },
    commit() {
      if (disk.isFull) throw new StoreUnavailable('the disk is full')
      client.exec('commit')
      count.committed++
    },
    rollback: () => void (client.inTransaction && client.exec('rollback')),
    isLocked: (fault) => fault instanceof Database.SqliteError && fault.code === 'SQLITE_BUSY',
    translate: (fault) =>
      fault instanceof Database.SqliteError && fault.code === 'SQLITE_BUSY'
        ? new StoreUnavailable(fault)
        : fault,
  }
  const commits = new GroupCommit(
    transactions,
    checkpoints(client, () => undefined),
  )
  const insert = client.prepare('insert into numbers values (?)')
  const add = (n: number) => commits.submit(() => ({ result: insert.run(n).changes }))
  const visible = () => outside.prepare('select n from numbers order by n').pluck().all()
  return { commits, count, flushes, add, visible, outside, disk }
}

t.test('jobs of one turn share a transaction, at most 256 each', async (t) => {
  const { add, count, visible } = open(t)
  await Promise.all(Array.from({ length: 300 }, (_, n) => add(n)))
  t.strictSame(count, { begun: 2, committed: 2 })
  t.equal(visible().length, 300)
})

t.test('a commit waits for the disk unless every job of it is brief', async (t) => {
  const { commits, add, flushes } = open(t)
  const brief = () => commits.submit(() => ({ result: undefined }), true)
  await Promise.all([brief(), brief()])
  await Promise.all([brief(), add(1)])
  await brief()
  t.strictSame(flushes, [false, true, false])
})

t.test('jobs of callbacks of one event-loop phase share a transaction', async (t) => {
  const { add, count } = open(t)
  const jobs: Promise<number>[] = []
  await new Promise<void>((resolve) => {
    // Microtasks run between the two, as they do between two sockets.
    setImmediate(() => jobs.push(add(1)))
    setImmediate(() => resolve(void jobs.push(add(2))))
  })
  await Promise.all(jobs)
  t.equal(count.committed, 1)
})

t.test('a promise settles only when its commit is visible to other connections', async (t) => {
  const { add, visible, commits } = open(t)
  const first = add(1).then(() => t.strictSame(visible(), [1, 2]))
  const second = add(2)
  const rejected = commits.submit(() => ({ rejection: new Error('refused') }))
  await t.rejects(
    rejected.catch((error: unknown) => {
      t.strictSame(visible(), [1, 2])
      throw error
    }),
    { message: 'refused' },
  )
  await Promise.all([first, second])
})

t.test('an error rolls the batch back, and each job runs again alone', async (t) => {
  const { add, count, visible } = open(t)
  const outcomes = await Promise.allSettled([add(1), add(-1), add(2)])
  t.match(outcomes, [{ value: 1 }, { reason: { code: 'SQLITE_CONSTRAINT_CHECK' } }, { value: 1 }])
  t.strictSame(count, { begun: 4, committed: 2 })
  t.strictSame(visible(), [1, 2])
})

t.test('a locked database is retried for the whole batch, and timers run in between', async (t) => {
  const { add, count, visible, outside } = open(t)
  outside.exec('begin immediate')
  let ticks = 0
  const timer = setInterval(() => ticks++, 1)
  const outcomes = await Promise.allSettled(Array.from({ length: 1000 }, (_, n) => add(n)))
  clearInterval(timer)
  for (const outcome of outcomes) t.match(outcome, { status: 'rejected', reason: StoreUnavailable })
  t.ok(count.begun > 1 && count.begun <= 101, `asked ${count.begun} times`)
  t.ok(ticks > 10, `${ticks} timers ran`)
  outside.exec('rollback')
  await add(4)
  t.strictSame(visible(), [4])
})

t.test('a lock that is released in time fails no write, and the order is kept', async (t) => {
  const { add, commits, count, outside, visible } = open(t)
  outside.exec('begin immediate')
  const order: number[] = []
  const jobs = [1, 2].map((n) => add(n).then(() => order.push(n)))
  while (count.begun === 0) await new Promise((resolve) => setImmediate(resolve))
  jobs.push(add(3).then(() => order.push(3)))
  t.strictSame(visible(), [])
  const closed = commits.close()
  outside.exec('rollback')
  await closed
  t.strictSame(visible(), [1, 2, 3])
  await Promise.all(jobs)
  t.strictSame(order, [1, 2, 3])
})

t.test('a process that was suspended waits for a lock as long as any other', async (t) => {
  const { add, count, outside, visible } = open(t)
  outside.exec('begin immediate')
  const job = add(1)
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600)
  const { begun } = count
  while (count.begun < begun + 2) await new Promise((resolve) => setImmediate(resolve))
  outside.exec('rollback')
  await t.resolves(job)
  t.strictSame(visible(), [1])
})

t.test('when the commit fails no job reports success', async (t) => {
  const { add, commits, visible, disk } = open(t)
  disk.isFull = true
  const rejected = commits.submit(() => ({ rejection: new Error('a refusal that was not recorded') }))
  for (const outcome of await Promise.allSettled([add(1), rejected, add(2)]))
    t.match(outcome, { status: 'rejected', reason: StoreUnavailable })
  t.strictSame(visible(), [])
  disk.isFull = false
  await add(3)
  t.strictSame(visible(), [3])
})

t.test('closing commits the queue and rejects later writes', async (t) => {
  const { add, commits, visible } = open(t)
  const queued = add(1)
  await commits.close()
  t.strictSame(visible(), [1])
  await t.rejects(add(2), StoreUnavailable)
  t.equal(await queued, 1)
})

t.test(
  'subscribers receive the number of changes of each commit, and nothing about one that failed',
  async (t) => {
    const { add, disk } = open(t)
    const heard: Commit[] = []
    const listen = (message: unknown) => void heard.push(message as Commit) // The only message of the channel.
    commitChannel.subscribe(listen)
    t.teardown(() => commitChannel.unsubscribe(listen))
    await Promise.all([1, 2, 3].map(add))
    disk.isFull = true
    await t.rejects(add(4), StoreUnavailable)
    t.match(heard, [{ jobs: 3 }])
    t.equal(heard.length, 1)
    t.ok((heard[0]?.seconds ?? 0) > 0)
  },
)
