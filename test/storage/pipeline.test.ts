/** What a transaction sends to PostgreSQL without waiting is written whole or not at all, and never reported wrongly. */
import { setTimeout } from 'node:timers/promises'
import pg from 'pg'
import t from 'tap'
import { accept, insert, type Write } from '../../src/domain/decision.ts'
import type { Grant } from '../../src/domain/model.ts'
import { openStore } from '../../src/storage/open.ts'
import { RecordExists, StoreUnavailable } from '../../src/storage/store.ts'
import { patient } from '../helpers/nodes.ts'
import { startPostgresProxy } from '../helpers/postgres-proxy.ts'
import { startPostgres } from './postgres-server.ts'
import * as sample from './samples.ts'

const postgres = await startPostgres(t)
const url = await postgres.createDatabase()
const proxy = await startPostgresProxy(t, url)
const store = await openStore(proxy.url, patient)
t.teardown(() => store.close())
const operator = new pg.Client(url)
await operator.connect()
t.teardown(() => operator.end())

const keyOf = (id: string) => ({ ...sample.key, id })
const known = keyOf('known')
await store.write(insert('key', known))
/** The keys there are, once the database has ended what it was sent. */
const ids = async () => {
  const busy = `select from pg_stat_activity where application_name = 'lychgate' and state <> 'idle'
    and datname = current_database()`
  while ((await operator.query(busy)).rowCount !== 0) await setTimeout(5)
  return (await operator.query('select id from keys order by id')).rows.map(({ id }) => id)
}
const decide = () =>
  store.transact('key', known.id, () =>
    accept('decided', insert('key', keyOf('one')), insert('key', keyOf('two'))),
  )
const forget = () => operator.query("delete from keys where id <> 'known'")

t.test('a connection that is lost at any statement', async (t) => {
  proxy.take()
  t.equal(await decide(), 'decided')
  const { statements, trips } = proxy.take()
  t.equal(trips, 2)
  t.match(statements, [
    'begin',
    /^select pg_advisory/,
    /^select .* for update/,
    /^insert/,
    /^insert/,
    'commit',
  ])
  await forget()
  for (const [position, statement] of statements.entries()) {
    for (const end of ['before', 'after'] as const) {
      let seen = 0
      const isOfTransaction = (text: string) => statements.includes(text)
      proxy.cut = (text, when) => when === end && isOfTransaction(text) && seen++ === position
      const label = `${end} ${position}: ${statement.slice(0, 20)}`
      await t.rejects(decide(), StoreUnavailable, label)
      proxy.cut = undefined
      const found = await ids()
      // The commit may be on its way by then: all of it is written, or nothing.
      const isUndecided = end === 'after' && statement.startsWith('insert')
      const isCommitted = isUndecided ? found.length > 1 : end === 'after' && statement === 'commit'
      t.strictSame(found, isCommitted ? ['known', 'one', 'two'] : ['known'], label)
      await forget()
    }
  }
})

t.test('a statement that fails at any position', async (t) => {
  for (const position of [0, 1, 2]) {
    const writes = ['one', 'two', 'three'].map((id, index) =>
      insert('key', keyOf(index === position ? known.id : id)),
    )
    await t.rejects(store.write(...writes), RecordExists, `write ${position}`)
    await t.rejects(
      store.transact('key', known.id, () => accept(0, ...writes)),
      RecordExists,
      `decision ${position}`,
    )
    t.strictSame(await ids(), ['known'])
  }
  t.strictSame(await store.find('key', known.id), known, 'and the connection is used again')
})

t.test('a write that has to change a row and changes none', async (t) => {
  const { id: grantId } = sample.grant
  const ends = { at: 1, refreshExpiresAt: 5, expiresAt: 5 }
  const rotation = { op: 'rotateGrant', grantId, fromSeq: 3, ...ends } as const
  await t.rejects(store.write(rotation, insert('key', keyOf('one'))), /rotateGrant met no row/)
  await t.rejects(store.write(insert('key', keyOf('one')), rotation), /rotateGrant met no row/)
  await t.rejects(store.write(rotation), /rotateGrant met no row/)
  t.strictSame(await ids(), ['known'])
})

t.test('a grant that was read ahead is decided about again if it has changed since', async (t) => {
  const other = await openStore(url, patient)
  t.teardown(() => other.close())
  const end = sample.grant.absoluteExpiresAt
  await store.write(insert('client', sample.client), insert('user', sample.user))
  const { id: grantId } = sample.grant
  const rotation = (fromSeq: number) =>
    ({ op: 'rotateGrant', grantId, fromSeq, at: 1, refreshExpiresAt: end, expiresAt: end }) as const
  const revocation = { op: 'revokeGrant', grantId, at: 1, rule: 'a-rule' } as const
  await store.write({ op: 'insertGrant', grant: sample.grant })
  const { seq: first } = sample.grant

  /** Decides by what was read ahead, while another node changes the grant. @returns What was seen, and the trips. */
  const decideWhile = async (change: () => Promise<unknown>, writes: (seq: number) => readonly Write[]) => {
    const ahead = store.find('grant', grantId)
    await ahead
    await change()
    const seen: unknown[] = []
    proxy.take()
    await store.transact(
      'grant',
      grantId,
      (grant) => {
        seen.push([grant?.seq, grant?.revokedBy])
        return grant?.revokedAt === undefined ? accept(0, ...writes(grant?.seq ?? -1)) : accept(0)
      },
      ahead,
    )
    return { seen, trips: proxy.take().trips }
  }
  const nothing = async () => undefined
  const rotate = (seq: number) => [rotation(seq)]

  t.strictSame(await decideWhile(nothing, rotate), { seen: [[first, undefined]], trips: 1 })
  const withKey = (seq: number) => [rotation(seq), insert('key', keyOf(`at ${seq}`))]
  t.strictSame(await decideWhile(nothing, withKey), { seen: [[first + 1, undefined]], trips: 1 })
  const overtaken = await decideWhile(() => other.write(rotation(first + 2)), withKey)
  t.strictSame(
    overtaken.seen,
    [first + 2, first + 3].map((seq) => [seq, undefined]),
  )
  t.strictSame(
    await ids(),
    [`at ${first + 1}`, `at ${first + 3}`, 'known'],
    'nothing of the first one is written',
  )
  t.strictSame(await decideWhile(nothing, () => []), { seen: [[first + 4, undefined]], trips: 0 })
  const atOnce = await Promise.all(
    Array.from({ length: 20 }, () => {
      const ahead = store.find('grant', grantId)
      const decide = (grant: Grant | undefined) => accept(grant?.seq, ...rotate(grant?.seq ?? -1))
      return store.transact('grant', grantId, decide, ahead)
    }),
  )
  const inTurn = Array.from({ length: 20 }, (_, index) => first + 4 + index)
  t.strictSame(
    atOnce.toSorted((one = 0, another = 0) => one - another),
    inTurn,
    'each of 20 at once sees the one before',
  )
  const revoke = await decideWhile(nothing, () => [revocation])
  t.equal(revoke.seen.length, 2, 'what compares nothing is decided under the lock')
  await forget()
})

t.test('a commit that the database cannot confirm is StoreUnavailable', async (t) => {
  await operator.query(`create function unsure() returns trigger language plpgsql as
    $$ begin raise exception 'nobody knows' using errcode = '40003'; end $$`)
  await operator.query(`create constraint trigger unsure after insert on keys deferrable initially deferred
    for each row execute function unsure()`)
  await t.rejects(decide(), StoreUnavailable)
  await t.rejects(store.write(insert('key', keyOf('one'))), StoreUnavailable)
  t.strictSame(await ids(), ['known'])
})
