import { getTableName } from 'drizzle-orm'
import t, { type Test } from 'tap'
import { endSessionsOf, insert, put, type RecordReads, remove, update } from '../../src/domain/decision.ts'
import { interactionKind } from '../../src/domain/interaction.ts'
import { type CopyEnd, copyRows, isEmpty, mark, pauseWrites, resumeWrites } from '../../src/storage/copy.ts'
import { examineStore, openCopyEnd, openStore } from '../../src/storage/open.ts'
import * as schema from '../../src/storage/sqlite/schema.ts'
import { RecordExists, type Store, StoreUnavailable } from '../../src/storage/store.ts'
import { hasAdministrator } from '../../src/users/administrators.ts'
import { passkeyKind } from '../../src/users/rules/passkey.ts'
import { startPostgres } from './postgres-server.ts'
import * as sample from './samples.ts'
import { grantOwners, insertGrant } from './store.suite.ts'

const postgres = await startPostgres(t)
const noAdministrator = (read: RecordReads) => hasAdministrator('', read)
const owned = async (t: Test, end: CopyEnd) => {
  t.teardown(() => end.close())
  return end
}

/** A store with a row in every table, and an empty one in the other database. */
async function both(t: Test, toPostgres: boolean) {
  const sqlite = `sqlite:${t.testdir()}/one.db`
  const database = await postgres.createDatabase()
  const urls = toPostgres ? ([sqlite, database] as const) : ([database, sqlite] as const)
  const store = await openStore(urls[0])
  t.teardown(() => store.close())
  await (await openStore(urls[1])).close()
  await fill(store)
  const source = await owned(t, await openCopyEnd(urls[0]))
  const target = await owned(t, await openCopyEnd(urls[1]))
  const opened = async () => {
    const copy = await openStore(urls[1])
    t.teardown(() => copy.close())
    return copy
  }
  return { store, source, target, opened, urls }
}

async function fill(store: Store) {
  await store.write(...grantOwners, insertGrant, insert('user', sample.fullUser))
  await store.write(insert('client', sample.fullClient), insert('client', { ...sample.client, id: 'gone' }))
  await store.write(remove('client', 'gone'))
  await store.write(insert('session', sample.fullSession), insert('session', sample.session))
  await store.write(insert('key', sample.key), insert('key', sample.fullKey))
  await store.write(insert('rejection', sample.fullRejection), insert('auditEvent', sample.fullAuditEvent))
  await store.write(put(passkeyKind, sample.fullPasskey), insert(interactionKind, sample.fullInteraction))
}

async function assertCopies(t: Test, toPostgres: boolean) {
  const { store, source, target, opened, urls } = await both(t, toPostgres)
  t.equal(await isEmpty(target), true)
  await mark(target, 'unfinished')

  // Ended after the third table, as by a kill, and begun again.
  let tables = 0
  const killed = copyRows(source, target, () => {
    tables += 1
    if (tables === 3) throw new Error('killed')
  })
  await t.rejects(killed, { message: 'killed' })
  t.equal(await isEmpty(target), false)
  await t.rejects(openStore(urls[1]), { message: /a copy into it has not ended/ })
  const first = await copyRows(source, target)
  t.strictSame(
    Object.keys(first.rows).sort(),
    Object.values(schema)
      .map((table) => getTableName(table))
      .sort(),
  )
  t.equal((await copyRows(source, target)).changed, 0, 'nothing twice')

  // A name that goes to another user, changed and deleted rows, texts whose order is not that of a language.
  const [ada, grace] = [sample.user, sample.fullUser]
  await store.write(update('user', { ...ada, username: 'for a moment' }))
  await store.write(update('user', { ...grace, username: ada.username }))
  await store.write(update('user', { ...ada, username: grace.username }))
  await store.write(endSessionsOf(sample.session.userId, 0))
  for (const id of ['a', 'B', 'é', '~', 'Z', '𝒳', '\uffee'])
    await store.write(insert('session', { ...sample.session, id: `session-${id}` }))
  const second = await copyRows(source, target)
  t.not(second.digest, first.digest)
  t.equal((await copyRows(source, target)).changed, 0)

  await pauseWrites(source)
  await t.rejects(store.write(insert('session', { ...sample.session, id: 'late' })), StoreUnavailable)
  await t.rejects(store.write(remove('client', sample.fullClient.id)), StoreUnavailable)
  await t.rejects(store.write(update('user', ada)), StoreUnavailable)
  t.match(await store.find('user', ada.id), { username: grace.username }, 'it is read')
  t.match(await examineStore(urls[0], noAdministrator), { schema: 'moved', keys: [{}, {}] })
  t.equal((await copyRows(source, target)).digest, second.digest)
  await mark(target, undefined)

  const copy = await opened()
  for (const [kind, key] of [
    ['client', sample.fullClient.id],
    ['user', ada.id],
    ['user', grace.id],
    ['grant', sample.grant.id],
    ['session', 'session-𝒳'],
  ] as const)
    t.strictSame(await copy.find(kind, key), await store.find(kind, key), key)
  t.strictSame(await copy.list('key'), await store.list('key'))
  const log = { since: 0, limit: 10 }
  t.strictSame(await copy.audit(log), await store.audit(log))
  // The last number was that of a client that is gone.
  await copy.write(
    insert('client', { ...sample.client, id: 'next' }),
    insert('auditEvent', sample.auditEvent),
  )
  const numbers = (await copy.page('client', { limit: 10 })).map(({ seq }) => seq)
  t.strictSame(numbers, [1, 2, 4])
  await t.rejects(copy.write(insert('user', { ...ada, id: 'user_2' })), RecordExists)

  await resumeWrites(source)
  await store.write(insert('session', { ...sample.session, id: 'late' }))
  t.match(await examineStore(urls[0], noAdministrator), { schema: 'current' })
}

t.test('every table is copied from SQLite to PostgreSQL, in steps that each may be the last', (t) =>
  assertCopies(t, true),
)

t.test('every table is copied from PostgreSQL to SQLite, in steps that each may be the last', (t) =>
  assertCopies(t, false),
)

t.test('a copy that another process writes to is noticed', async (t) => {
  const { source, target, urls } = await both(t, true)
  const other = await openCopyEnd(urls[1])
  const meddling: CopyEnd = {
    ...target,
    run: async (text, values) => {
      await target.run(text, values)
      if (text.startsWith('insert into "users"')) await other.run('delete from users')
    },
  }
  await t.rejects(copyRows(source, meddling), { message: 'users: another process wrote to the copy' })
  await other.close()
})
