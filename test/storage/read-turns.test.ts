import { setImmediate as nextTurn } from 'node:timers/promises'
import Database from 'better-sqlite3'
import t, { type Test } from 'tap'
import { insert, update } from '../../src/domain/decision.ts'
import { openStore } from '../../src/storage/open.ts'
import { batchedReads } from '../../src/storage/sqlite/batched-reads.ts'
import * as sample from './samples.ts'

/** A store over a file, and another process's connection to it. */
async function open(t: Test, isShared = false) {
  const file = `${t.testdir()}/turns.db`
  const store = await openStore(`sqlite:${file}`, { isShared })
  const outside = new Database(file, { timeout: 0 })
  t.teardown(async () => {
    await store.close()
    outside.close()
  })
  const rename = (name: string) => outside.prepare('update users set username = ?').run(name)
  const username = async () => (await store.find('user', sample.user.id))?.username
  await store.write(insert('user', sample.user))
  return { store, outside, rename, username }
}

t.test('the reads of one turn see one state, those of the next see the commits of others', async (t) => {
  const { rename, username } = await open(t)
  const first = username()
  rename('grace')
  t.strictSame(await Promise.all([first, username()]), [sample.user.username, sample.user.username])
  await nextTurn()
  t.equal(await username(), 'grace')
})

t.test('of several processes, those of one callback do', async (t) => {
  const { rename, username } = await open(t, true)
  const first = username()
  rename('grace')
  t.strictSame(await Promise.all([first, username()]), [sample.user.username, sample.user.username])
  await new Promise<void>((resolve) => process.nextTick(resolve))
  t.equal(await username(), 'grace')
})

t.test('a read sees what this store committed in the same turn', async (t) => {
  const { store, username } = await open(t)
  t.equal(await username(), sample.user.username)
  await store.write(update('user', { ...sample.user, username: 'grace' }))
  t.equal(await username(), 'grace')
})

t.test('a client is read once per turn, and again in the next', async (t) => {
  const { store, outside } = await open(t)
  await store.write(insert('client', sample.client))
  const find = () => store.find('client', sample.client.id)
  const name = async () => (await find())?.name
  const [one, other] = await Promise.all([find(), find()])
  t.equal(one, other, 'one record')
  await nextTurn()
  const first = name()
  const { metadata } = outside.prepare('select metadata from clients').get() as { metadata: string }
  outside
    .prepare('update clients set metadata = ?')
    .run(JSON.stringify({ ...JSON.parse(metadata), name: 'Renamed' }))
  t.strictSame(await Promise.all([first, name()]), [sample.client.name, sample.client.name])
  await nextTurn()
  t.equal(await name(), 'Renamed', 'also when another program has changed it')
  await store.write(update('client', { ...sample.client, name: 'Again' }))
  t.equal(await name(), 'Again')
})

t.test('no read outlives its turn and prevents another process from emptying the journal', async (t) => {
  const { outside, rename, username } = await open(t)
  await username()
  rename('grace')
  const checkpoint = () => outside.pragma('wal_checkpoint(truncate)') as { busy: number }[]
  t.match(checkpoint(), [{ busy: 1 }])
  await nextTurn()
  t.match(checkpoint(), [{ busy: 0 }])
})

t.test('a turn with any number of reads begins one transaction', async (t) => {
  const client = new Database(':memory:')
  let forgotten = 0
  const turns = batchedReads(client, () => {
    forgotten += 1
  })
  turns.begin()
  t.doesNotThrow(() => turns.begin(), 'a second begin would be refused')
  t.ok(client.inTransaction)
  await nextTurn()
  t.notOk(client.inTransaction)
  turns.end()
  t.equal(forgotten, 1, 'and forgets once')
  client.close()
})
