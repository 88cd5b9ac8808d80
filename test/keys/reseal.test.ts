import { globSync, readFileSync } from 'node:fs'
import { getTableColumns, getTableName } from 'drizzle-orm'
import t, { type Test } from 'tap'
import { accept, put } from '../../src/domain/decision.ts'
import { type Handle, sealHandle } from '../../src/domain/handle.ts'
import { isObject } from '../../src/domain/is-object.ts'
import type { RecordKind } from '../../src/domain/record.ts'
import { mintSecret } from '../../src/domain/secret.ts'
import { secretChangeKey, secretChangeKind } from '../../src/domain/secret-change.ts'
import { keyPolicy } from '../../src/keys/key-policy.ts'
import { type KeyRing, loadKeyRing } from '../../src/keys/key-ring.ts'
import {
  beginChange,
  mayRunUntil,
  type Resealing,
  sealWithAfter,
  sealWithBoth,
} from '../../src/keys/reseal.ts'
import { rotateKeys, rotationNeeds } from '../../src/keys/rules.ts'
import { deriveSealingKey, unseal, WrongSecret } from '../../src/keys/seal.ts'
import { sealedUnder } from '../../src/keys/sealing-keys.ts'
import { loadConfig } from '../../src/settings/load.ts'
import { openStore } from '../../src/storage/open.ts'
import type { Store } from '../../src/storage/store.ts'
import { defineTables, sqliteColumns } from '../../src/storage/tables.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { upstreamKind } from '../../src/users/rules/upstream.ts'
import { sealedKinds } from '../../src/users/sealed-kinds.ts'
import { upstreamDefaults } from '../../src/users/upstream-members.ts'
import { seededRandom, testClock } from '../helpers/clock.ts'
import { startPostgres } from '../storage/postgres-server.ts'

const policy = keyPolicy(loadConfig({ mode: 'dev' }))
const grantSecret = 'AAAAAAAAAAAAAAAAAAAAAA'
const context = { by: 'operator', at: 1000, from: 'me@here' } as const
const users = Array.from({ length: 120 }, (_, index) => `user_${String(index).padStart(3, '0')}`)
const random = seededRandom()
// Made by `lychgate keys secret`: any other one takes a tenth of a second to stretch.
const [before, after] = [mintSecret('sealing', random(32)), mintSecret('sealing', random(32))]
const clock = testClock()

t.test('what is sealed is declared, and all that is declared is sealed again', async (t) => {
  const files = globSync('src/**/*.ts').filter((file) => /recordKind[<(]/.test(readFileSync(file, 'utf8')))
  t.ok(files.length > 15)
  const kinds: RecordKind<unknown>[] = []
  let declarations = 0
  for (const file of files) {
    declarations += readFileSync(file, 'utf8').match(/^ +sealed: '/gm)?.length ?? 0
    for (const value of Object.values(await import(`../../${file}`)))
      if (isObject(value) && typeof value['sealed'] === 'string') kinds.push(value as never) // a kind of record
  }
  t.equal(kinds.length, declarations, 'every kind with something sealed is exported')
  t.strictSame(kinds.map(({ name }) => name).sort(), sealedKinds.map(({ name }) => name).sort())
  const sealedColumns = Object.values(defineTables(sqliteColumns)).flatMap((table) =>
    Object.values(getTableColumns(table))
      .filter(({ name }) => name.startsWith('sealed'))
      .map(({ name }) => `${getTableName(table)}.${name}`),
  )
  t.strictSame(sealedColumns, ['keys.sealed_private'])
})

const upstream = {
  ...upstreamDefaults,
  ...{ id: 'work', name: 'Work', issuer: 'https://login.example.com', clientId: 'lychgate' },
  ...{ createdAt: 1, updatedAt: 1 },
}

/** A server on this store. */
const serverOn = (store: Store, secret: string) =>
  loadKeyRing({ store, secret, policy, clock, random, server: 'production' })

/** A store with keys, a code and the secrets of users. */
async function filled(store: Store) {
  const keys = await serverOn(store, before)
  const code: Handle = {
    kind: 'code',
    grantId: 'AAAAAAAAAAAAAAAA',
    seq: 0,
    issuedAt: 5,
    expiresAt: 4e9,
  } as never
  const handle = sealHandle(code, keys.handles.current, grantSecret)
  await store.write(...users.map((userId) => put(secondFactorKind, recordOf(keys, userId))))
  // The second one has no secret.
  await store.write(
    put(upstreamKind, { ...upstream, sealedSecret: keys.seal(Buffer.from('of work'), 'work', upstreamKind) }),
    put(upstreamKind, { ...upstream, id: 'home' }),
  )
  return handle
}

function recordOf(keys: KeyRing, userId: string) {
  const sealedSecret = keys.seal(Buffer.from(`of ${userId}`), userId, secondFactorKind)
  return { userId, sealedSecret, recoveryHashes: [], createdAt: 1 }
}

/** Asserts that a server with this secret reads all that was stored. */
async function assertReads(t: Test, store: Store, secret: string, handle: string) {
  const keys = await serverOn(store, secret)
  t.ok(await keys.open(handle, 'code'), 'the code')
  const factors = await store.listKind(secondFactorKind, { madeUntil: 2, limit: 1000 })
  t.strictSame(
    factors.map(({ userId, sealedSecret }) => keys.unseal(sealedSecret, userId).toString()).sort(),
    users.map((userId) => `of ${userId}`),
  )
  const { sealedSecret = '' } = (await store.find(upstreamKind, 'work')) ?? {}
  t.equal(keys.unseal(sealedSecret, 'work').toString(), 'of work')
  t.strictSame(await store.find(upstreamKind, 'home'), { ...upstream, id: 'home' })
  t.ok(keys.algorithms.includes('RS256'))
}

class Killed extends Error {}

/** A store that ends the process at a write, before it or after it. */
function killedAt(store: Store, write: number, when: 'before' | 'after'): Store {
  let writes = 0
  return {
    ...store,
    transact: async (...args: Parameters<Store['transact']>) => {
      const isLast = ++writes === write
      if (isLast && when === 'before') throw new Killed()
      const result = await store.transact(...args)
      if (isLast) throw new Killed()
      return result
    },
  } as Store
}

/** What the command does. */
async function change(store: Store): Promise<false> {
  const [old, fresh] = [await deriveSealingKey(before), await deriveSealingKey(after)]
  const sources: Resealing = { store, random, kinds: sealedKinds }
  const begun = await beginChange(sources, old, fresh, context)
  if (begun.endingAt === undefined) await sealWithBoth(sources, begun, fresh, 1000)
  await sealWithAfter(sources, begun, fresh, context)
  return false
}

async function assertChanges(t: Test, store: Store) {
  t.teardown(() => store.close())
  const handle = await filled(store)
  const contents = await store.contents()
  const old = await deriveSealingKey(before)
  let isKilled = true
  for (let write = 1; isKilled; write += 1) {
    for (const when of ['before', 'after'] as const) {
      await store.replace(contents)
      isKilled = await change(killedAt(store, write, when)).catch((fault) => fault instanceof Killed)
      const known = await store.find(secretChangeKind, secretChangeKey)
      const isBegun = write > 1 || when === 'after'
      const isOver = isBegun && known === undefined
      if (isBegun) await assertReads(t, store, after, handle)
      if (known?.endingAt === undefined && !isOver) await assertReads(t, store, before, handle)
      else await t.rejects(serverOn(store, before), WrongSecret)
      // The operator runs the command again.
      if (isKilled && !isOver) await change(store)
    }
    await assertReads(t, store, after, handle)
    for (const { id, sealedPrivate } of await store.list('key'))
      t.throws(() => unseal(sealedPrivate, id, old), WrongSecret, 'the secret before opens no key')
    const factors = await store.listKind(secondFactorKind, { madeUntil: 2, limit: 1000 })
    t.strictSame(
      factors.filter(({ userId, sealedSecret }) => opens(sealedSecret, userId, old)),
      [],
      'and none of a user',
    )
  }
  const [event] = await store.audit({ since: 0, name: 'key-resealed', limit: 2 })
  t.match(event, { by: 'operator', from: 'me@here', facts: { keys: 4, secrets: users.length + 1 } })
}

function opens(sealed: string, userId: string, key: Buffer): boolean {
  try {
    return unseal(sealed, sealedUnder(userId), key).length > 0
  } catch {
    return false
  }
}

const postgres = await startPostgres(t)

t.test('killed at any write, both secrets open everything until the change ends: SQLite', (t) =>
  openStore('sqlite::memory:').then((store) => assertChanges(t, store)),
)

t.test('killed at any write, both secrets open everything until the change ends: PostgreSQL', async (t) => {
  await assertChanges(t, await openStore(await postgres.createDatabase()))
})

t.test('two servers, one with either secret, read what the other one seals', async (t) => {
  const url = await postgres.createDatabase()
  const [one, two] = [await openStore(url), await openStore(url)]
  t.teardown(() => Promise.all([one.close(), two.close()]))
  const node = await serverOn(one, before)
  const [old, fresh] = [await deriveSealingKey(before), await deriveSealingKey(after)]
  const sources: Resealing = { store: one, random, kinds: sealedKinds }
  const begun = await beginChange(sources, old, fresh, { ...context, at: clock() })
  t.strictSame(await beginChange(sources, old, fresh, context), begun, 'a change begins once')
  const other = await serverOn(two, after)
  t.equal(other.pseudonym('a'), node.pseudonym('a'))
  for (const [maker, reader, id] of [
    [node, other, 'ann'],
    [other, node, 'bea'],
  ] as const) {
    const sealed = maker.seal(Buffer.from(id), id, secondFactorKind)
    t.equal(reader.unseal(sealed, id).toString(), id)
    await rotate(maker)
    await reader.reload()
    t.strictSame(reader.jwks(), maker.jwks())
  }
  clock.advance(30)
  await node.reload()
  const seen = await one.find(secretChangeKind, secretChangeKey)
  if (seen === undefined) throw new Error('the change has begun')
  t.equal(seen.beforeSeenAt, clock())
  t.equal(mayRunUntil(seen, 60), clock() + 120)
  // The first server ends. The second one has not loaded its keys again when the change ends.
  const kept = other.seal(Buffer.from('cleo'), 'cleo', secondFactorKind)
  await one.write(put(secondFactorKind, { ...recordOf(other, 'cleo'), sealedSecret: kept }))
  await sealWithBoth(sources, seen, fresh, clock())
  await sealWithAfter(sources, seen, fresh, context)
  const resealed = (await one.find(secondFactorKind, 'cleo'))?.sealedSecret ?? ''
  t.not(resealed, kept)
  t.equal(other.unseal(resealed, 'cleo').toString(), 'cleo', 'before it loads its keys again')
  await other.reload()
  t.equal(other.unseal(resealed, 'cleo').toString(), 'cleo')
  t.notOk(opens(other.seal(Buffer.from('dora'), 'dora', secondFactorKind), 'dora', old))
  await t.rejects(node.reload(), WrongSecret)
})

t.test('what is sealed is stored only if the secret is still the one of the store', async (t) => {
  const store = await openStore('sqlite::memory:')
  t.teardown(() => store.close())
  await filled(store)
  const [old, fresh] = [await deriveSealingKey(before), await deriveSealingKey(after)]
  const sources: Resealing = { store, random, kinds: sealedKinds }
  const stored = async (keys: KeyRing, userId = 'eve') => {
    const record = recordOf(keys, userId)
    const require = keys.requireSealedNow(record.sealedSecret, userId)
    return await store
      .transact(secondFactorKind, userId, () => accept('stored', put(secondFactorKind, record), require))
      .catch((error) => error.code)
  }
  /** One that was rejected loads its keys again. */
  const storedSoon = async (keys: KeyRing) => {
    for (let times = 0; times < 200 && (await stored(keys)) !== 'stored'; times += 1)
      await new Promise(setImmediate)
    return await stored(keys)
  }
  const stopped = await serverOn(store, before)
  t.equal(await stored(stopped), 'stored')
  const change = await beginChange(sources, old, fresh, context)
  const restarted = await serverOn(store, after)
  t.equal(await stored(stopped), 'stored', 'until everything is sealed with both')
  t.equal(await stored(restarted), 'stored')
  await sealWithBoth(sources, change, fresh, clock())
  t.equal(await stored(stopped), 'temporarily_unavailable')
  t.equal(await stored(restarted), 'temporarily_unavailable', 'it seals with both')
  t.equal(await storedSoon(restarted), 'stored', 'and then with the new one alone')
  await sealWithAfter(sources, change, fresh, context)
  t.equal(await stored(stopped, 'finn'), 'temporarily_unavailable')
  t.equal(await store.find(secondFactorKind, 'finn'), undefined)
  t.equal(await stored(restarted), 'stored')

  // The next change, from the secret that the last one ended with.
  const third = mintSecret('sealing', random(32))
  const next = await beginChange(sources, fresh, await deriveSealingKey(third), context)
  t.equal(await stored(restarted), 'stored')
  t.equal(await stored(await serverOn(store, third)), 'stored')
  t.equal(await stored(stopped), 'temporarily_unavailable')
  await sealWithAfter(sources, next, await deriveSealingKey(third), context)
  t.equal(await stored(restarted), 'temporarily_unavailable')
  t.equal(await stored(await serverOn(store, third)), 'stored')
})

async function rotate(keys: KeyRing) {
  const algorithms = ['ES256'] as const
  await keys.change(
    {
      needs: (ring, now) => rotationNeeds(ring, algorithms, now),
      decide: (ring, made, now) => rotateKeys(ring, { algorithms, at: 'once' }, made, policy, now),
    },
    {},
  )
  clock.advance(5)
}

t.test('what neither secret opens stays, and is counted', async (t) => {
  const store = await openStore('sqlite::memory:')
  t.teardown(() => store.close())
  await filled(store)
  const foreign = { userId: 'zoe', sealedSecret: 'x', recoveryHashes: [], createdAt: 1 }
  await store.transact('keyRing', '', () => accept(undefined, put(secondFactorKind, foreign)))
  const [old, fresh] = [await deriveSealingKey(before), await deriveSealingKey(after)]
  const sources: Resealing = { store, random, kinds: sealedKinds }
  const begun = await beginChange(sources, old, fresh, context)
  await sealWithBoth(sources, begun, fresh, 1000)
  const expected = { keys: 4, secrets: users.length + 1, unopened: 1 }
  t.strictSame(await sealWithAfter(sources, begun, fresh, context), expected)
  t.strictSame(await store.find(secondFactorKind, 'zoe'), foreign)
})
