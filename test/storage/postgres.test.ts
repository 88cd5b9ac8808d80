import pg from 'pg'
import t, { type Test } from 'tap'
import { consentKind } from '../../src/domain/connections.ts'
import { accept, endSessionsOf, insert, put, remove, update } from '../../src/domain/decision.ts'
import { interactionKind } from '../../src/domain/interaction.ts'
import { keyAlgorithms } from '../../src/domain/key-term.ts'
import { loadKeyRing } from '../../src/keys/key-ring.ts'
import { openStore } from '../../src/storage/open.ts'
import { Overtaken, type Store, type StoreOptions, StoreUnavailable } from '../../src/storage/store.ts'
import { throttleKind } from '../../src/users/rules/throttle.ts'
import { lockUser } from '../../src/users/rules/user.ts'
import { seededRandom, testClock } from '../helpers/clock.ts'
import { patient } from '../helpers/nodes.ts'
import { concurrency } from './decisions.suite.ts'
import { migrations } from './migrations.suite.ts'
import { startPostgres } from './postgres-server.ts'
import * as sample from './samples.ts'
import { storeSuite } from './store.suite.ts'

const server = await startPostgres(t)

async function open(t: Test, url: string, options: StoreOptions = patient) {
  const store = await openStore(url, options)
  t.teardown(() => store.close())
  return store
}

async function connect(t: Test, url: string): Promise<pg.Client> {
  const client = new pg.Client(url)
  client.on('error', () => undefined)
  await client.connect()
  t.teardown(() => client.end())
  return client
}

t.test('the store in PostgreSQL', async (t) => {
  storeSuite(t, async (t) => open(t, await server.createDatabase()))
})

t.test('simultaneous decisions wait for each other at a single connection', async (t) => {
  concurrency(t, async (t) => open(t, await server.createDatabase(), { ...patient, connections: 1 }))
})

t.test('a database of an earlier version', async (t) => {
  migrations(t, 'postgres', async (t) => {
    const url = await server.createDatabase()
    const earlier = await connect(t, url)
    return {
      run: async (statement) => void (await earlier.query(statement)),
      insert: async (table, row) => {
        const [names, values] = [Object.keys(row), Object.values(row)]
        const places = names.map((_, index) => `$${index + 1}`).join(', ')
        await earlier.query(`insert into ${table} (${names.join(', ')}) values (${places})`, values)
      },
      open: () => open(t, url),
    }
  })
})

t.test('its contents can be copied into a store in memory', async (t) => {
  const store = await open(t, await server.createDatabase())
  const other = await open(t, 'sqlite::memory:')
  await store.write(
    insert('client', sample.fullClient),
    insert('user', sample.fullUser),
    insert('session', sample.fullSession),
    insert(interactionKind, sample.fullInteraction),
    put(consentKind, sample.fullConsent),
    { op: 'insertGrant', grant: sample.fullGrant },
    insert('key', sample.fullKey),
    insert('auditEvent', sample.fullAuditEvent),
  )
  await other.replace(await store.contents())
  const { fullSession, fullInteraction, fullGrant } = sample
  t.strictSame(await other.find('client', sample.fullClient.id), sample.fullClient)
  t.strictSame(await other.find('user', sample.fullUser.id), sample.fullUser)
  t.strictSame(await other.find('session', fullSession.id), fullSession)
  t.strictSame(await other.find(interactionKind, fullInteraction.id), fullInteraction)
  t.strictSame(await other.find('grant', fullGrant.id), await store.find('grant', fullGrant.id))
  t.strictSame(await other.list('key'), [sample.fullKey])
  t.strictSame(await other.audit({ since: 0, limit: 9 }), await store.audit({ since: 0, limit: 9 }))
})

t.test('written rows are there after closing and opening again', async (t) => {
  const url = await server.createDatabase()
  const store = await openStore(url)
  await store.write(insert('client', sample.fullClient))
  await store.close()
  await t.resolves(store.close())
  await t.rejects(store.find('client', sample.fullClient.id), StoreUnavailable)
  t.strictSame(await (await open(t, url)).find('client', sample.fullClient.id), sample.fullClient)
})

t.test('the store reports its connections', async (t) => {
  const store = await open(t, await server.createDatabase())
  await store.activity()
  t.match((await store.activity()).connections, { total: 1, idle: 1, waiting: 0 })
})

t.test('servers that open a new database at the same time all work', async (t) => {
  const url = await server.createDatabase()
  const stores = await Promise.all(Array.from({ length: 4 }, () => open(t, url)))
  await stores[0]?.write(insert('key', sample.key))
  for (const store of stores) t.strictSame(await store.list('key'), [sample.key])
})

t.test('two nodes that start and rotate at the same time have the same keys', async (t) => {
  const url = await server.createDatabase()
  const clock = testClock()
  const policy = {
    algorithms: keyAlgorithms,
    rotationSeconds: 1000,
    publishAheadSeconds: 100,
    overlapSeconds: { signing: 500, handle: 500 },
  }
  const nodes = await Promise.all(
    ['one', 'other'].map(async (seed) => {
      const store = await open(t, url)
      return loadKeyRing({ store, secret: 's'.repeat(32), policy, clock, random: seededRandom(seed) })
    }),
  )
  const kids = () => nodes.map((node) => node.jwks().keys.map(({ kid }) => kid))
  t.strictSame(kids()[0], kids()[1])
  t.equal(kids()[0]?.length, 3)
  clock.advance(1000)
  await Promise.all(nodes.map((node) => node.reload()))
  t.strictSame(kids()[0], kids()[1])
  t.equal(kids()[0]?.length, 6)
  clock.advance(100)
  t.equal(nodes[0]?.handles.current.secret, nodes[1]?.handles.current.secret)
})

t.test('decisions of two servers about one key run one after the other', async (t) => {
  const url = await server.createDatabase()
  const stores = [await open(t, url), await open(t, url)]
  const { key } = sample.throttle
  const counts = Array.from({ length: 20 }, (_, n) =>
    stores[n % 2]?.transact(throttleKind, key, (throttle) => {
      const failures = (throttle?.failures ?? 0) + 1
      return accept(failures, put(throttleKind, { key, failures, expiresAt: 2000 }))
    }),
  )
  t.strictSame(new Set(await Promise.all(counts)).size, 20)
})

t.test('a commit waits for the disk even when the server is configured not to', async (t) => {
  const url = await server.createDatabase()
  const operator = await connect(t, url)
  await operator.query(`alter database ${new URL(url).pathname.slice(1)} set synchronous_commit = off`)
  t.equal(await settingOf(await open(t, url), operator, 'synchronous_commit'), 'on')
})

t.test('it waits two seconds for a lock, or as long as configured', async (t) => {
  for (const [options, wait] of [
    [{}, '2s'],
    [{ waitMilliseconds: 300 }, '300ms'],
  ] as const) {
    const url = await server.createDatabase()
    const store = await open(t, url, options)
    t.equal(await settingOf(store, await connect(t, url), 'lock_timeout'), wait)
  }
})

/** The value of this setting in the sessions of the store. */
async function settingOf(store: Store, operator: pg.Client, name: string): Promise<string | undefined> {
  await operator.query(`create function noted() returns trigger language plpgsql as $$ begin
    insert into keys select current_setting('${name}'), 'handle', 'HS256', null, '', 1, 1, null; return new; end $$`)
  await operator.query('create trigger noted after insert on clients for each row execute function noted()')
  await store.write(insert('client', sample.client))
  return (await store.list('key'))[0]?.id
}

t.test('a transaction that loses a deadlock is run again', async (t) => {
  const url = await server.createDatabase()
  const store = await open(t, url)
  await store.write(...['a', 'b'].map((id) => insert('key', { ...sample.key, id })))
  const other = await connect(t, url)
  await other.query("set deadlock_timeout = '60s'")
  await other.query("begin; update keys set created_at = 5 where id = 'b'")
  let runs = 0
  const decided = store.transact('key', 'a', () => {
    runs++
    return accept(runs, remove('key', 'b'))
  })
  await waitForLock(other)
  const blocked = other.query("update keys set created_at = 5 where id = 'a'; commit")
  // Twice as a rule; more often if the second run reaches the row before the other transaction wakes up.
  t.ok((await decided) >= 2)
  await blocked
  t.strictSame(await store.list('key'), [{ ...sample.key, id: 'a', createdAt: 5 }])
})

/** Resolves when this many transactions wait for a lock. */
async function waitForLock(client: pg.Client, transactions = 1): Promise<void> {
  for (;;) {
    const waiting = await client.query('select distinct pid from pg_locks where not granted')
    if (Number(waiting.rowCount) >= transactions) return
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

t.test('a row that stays locked is StoreUnavailable in bounded time, and the store recovers', async (t) => {
  const url = await server.createDatabase()
  const store = await open(t, url, {})
  await store.write(insert('key', sample.key))
  const other = await connect(t, url)
  await other.query('begin; lock table keys in access exclusive mode')
  const rejected = await store.write(remove('key', sample.key.id)).catch((error: unknown) => error)
  // This is the limit of a lock, not the longer one of a statement, 57014.
  t.match(rejected, { name: 'StoreUnavailable', cause: { code: '55P03' } })
  await other.query('rollback')
  await store.write(remove('key', sample.key.id))
  t.strictSame(await store.list('key'), [])
})

t.test(
  'decisions about a key that another connection locks leave connections to other decisions',
  async (t) => {
    const url = await server.createDatabase()
    const store = await open(t, url, { ...patient, connections: 2 })
    await store.write(insert('key', sample.key))
    const other = await connect(t, url)
    await other.query('begin; lock table records in share mode')
    const count = () =>
      store.transact(throttleKind, 'one', (throttle) => {
        const failures = (throttle?.failures ?? 0) + 1
        return accept(failures, put(throttleKind, { key: 'one', failures, expiresAt: 2000 }))
      })
    const counts = Promise.all(Array.from({ length: 20 }, count))
    await waitForLock(other)
    for (let round = 0; round < 5; round += 1) {
      t.strictSame(await store.find('key', sample.key.id), sample.key)
      t.equal(await store.transact('key', sample.key.id, (key) => accept(key?.id)), sample.key.id)
    }
    t.match((await store.activity()).connections, { waiting: 0 })
    await other.query('rollback')
    t.strictSame(
      await counts,
      Array.from({ length: 20 }, (_, index) => index + 1),
    )
  },
)

t.test('a grant waits for the lock of its user, and is rejected when the user is locked', async (t) => {
  const url = await server.createDatabase()
  const [store, other] = [await open(t, url), await open(t, url)]
  const observer = await connect(t, url)
  const { user, session, consent, grant } = sample
  const owners = [insert('client', sample.client), insert('user', user)] as const
  await store.write(...owners, insert('session', session), put(consentKind, consent))
  const ends = {
    lock: [
      `select 1 from users where id = '${user.id}' for update`,
      `update users set locked_at = 1010 where id = '${user.id}'`,
      `delete from sessions where user_id = '${user.id}'`,
    ],
    'end of the session': [`delete from sessions where user_id = '${user.id}'`],
    disconnect: [`delete from records where kind = 'consent' and user_id = '${user.id}'`],
  }
  for (const [what, statements] of Object.entries(ends)) {
    const ending = await connect(t, url)
    await ending.query(`begin; ${statements.join('; ')}`)
    const basis = { sessionId: session.id, consent }
    const inserted = store.write({ op: 'insertGrant', grant, basis })
    const outcome = inserted.catch((error: unknown) => error)
    await waitForLock(observer)
    await ending.query('commit')
    t.type(await outcome, Overtaken, what)
    t.equal(await store.find('grant', grant.id), undefined, what)
    await store.write(endSessionsOf(user.id, 0))
    await store.write(update('user', user), insert('session', session))
    await store.write(put(consentKind, consent))
  }
  // The opposite order: the lock waits for a grant that is being inserted, and revokes it.
  const holding = await connect(t, url)
  await holding.query('begin; lock table grants in exclusive mode')
  const inserted = store.write({ op: 'insertGrant', grant, basis: { sessionId: session.id } })
  await waitForLock(observer)
  const locked = other.transact('user', user.id, (found = user) =>
    lockUser(found, { by: 'operator', at: 1010 }),
  )
  await waitForLock(observer, 2)
  await holding.query('commit')
  await Promise.all([inserted, locked])
  const { rows } = await observer.query('select revoked_at from grants')
  t.strictSame(rows, [{ revoked_at: '1010' }])
})

t.test('a database of a newer version is rejected', async (t) => {
  const url = await server.createDatabase()
  await (await openStore(url)).close()
  const future = await connect(t, url)
  await future.query(
    "insert into drizzle.__drizzle_migrations (hash, created_at) values ('later', 9999999999999)",
  )
  await t.rejects(openStore(url), { message: /newer version of Lychgate; it was left as it is$/ })
})

t.test('a wrong password is rejected in one line that does not contain it', async (t) => {
  const url = (await server.createDatabase()).replace(':test@', ':secret-word@')
  const fault = await openStore(url).catch((error: unknown) => error)
  t.match(fault, { message: /^the PostgreSQL database cannot be used: password authentication failed/ })
  t.notMatch(fault, { message: /secret-word|\n/ })
})

t.test('a database error never contains the values of the statement', async (t) => {
  const store = await open(t, await server.createDatabase())
  await store.write(insert('key', sample.key))
  const fault = await store.write(insert('key', sample.key)).catch((error: unknown) => error)
  t.notMatch(JSON.stringify(fault, Object.getOwnPropertyNames(Object(fault))), sample.key.sealedPrivate)
  const unsent = store.write(insert('key', { ...sample.key, id: 'nul \0', sealedPrivate: 'sealed' }))
  t.notMatch(await unsent.catch(String), /sealed|nul/)
})

t.test('while the server is down everything is StoreUnavailable, and the store recovers', async (t) => {
  const store = await open(t, await server.createDatabase())
  await store.write(insert('key', sample.key))
  await server.stop()
  await t.rejects(store.find('key', sample.key.id), StoreUnavailable)
  await t.rejects(store.ping(), StoreUnavailable)
  await t.rejects(store.write(remove('key', sample.key.id)), StoreUnavailable)
  await t.rejects(
    store.transact('key', sample.key.id, () => accept(1)),
    StoreUnavailable,
  )
  await server.start()
  await t.resolves(store.ping())
  t.strictSame(await store.list('key'), [sample.key])
})
