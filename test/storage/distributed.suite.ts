/** What holds where grants are on several machines: no transaction locks a copied row, and what ends something is waited for. */
import pg from 'pg'
import type { Test } from 'tap'
import { accept, insert, update } from '../../src/domain/decision.ts'
import { openStore } from '../../src/storage/open.ts'
import { lockNumber } from '../../src/storage/postgres/transaction.ts'
import { Overtaken } from '../../src/storage/store.ts'
import { lockUser } from '../../src/users/rules/user.ts'
import { patient } from '../helpers/nodes.ts'
import * as sample from './samples.ts'

/** @param emptied Returns the URL of a distributed store without rows. */
export function distributedEnds(t: Test, emptied: (t: Test) => Promise<string>): void {
  async function prepared(t: Test) {
    const url = await emptied(t)
    const [store, other] = [await openStore(url, patient), await openStore(url, patient)]
    const [observer, holding] = [new pg.Client(url), new pg.Client(url)]
    for (const client of [observer, holding]) await client.connect()
    t.teardown(() => Promise.all([store.close(), other.close(), observer.end(), holding.end()]))
    await store.write(insert('client', sample.client), insert('user', sample.user))
    await store.write(insert('session', sample.session))
    /** Resolves when this many transactions wait for an advisory lock or a row. */
    const waiting = async (count: number) => {
      const blocked = "select distinct pid from pg_locks where not granted and locktype <> 'virtualxid'"
      while (((await observer.query(blocked)).rowCount ?? 0) < count) await new Promise(setImmediate)
    }
    const hold = (...names: readonly string[]) =>
      holding.query(
        `begin; ${names.map((name) => `select pg_advisory_xact_lock(${lockNumber(name)})`).join(';')}`,
      )
    return { store, other, observer, holding, waiting, hold }
  }
  const { user, session, client, grant } = sample
  const insertion = { op: 'insertGrant', grant, basis: { sessionId: session.id } } as const
  const userLock = `user ${user.id}`
  const lockIt = (found = user) => lockUser(found, { by: 'operator', at: 1010 })

  t.test(
    'a grant waits for what decides about its user, and is rejected when the user is locked',
    async (t) => {
      const { store, other, holding, waiting, hold } = await prepared(t)
      await hold(userLock)
      const locked = other.transact('user', user.id, lockIt)
      await waiting(1)
      const inserted = store.write(insertion).catch((error: unknown) => error)
      await waiting(2)
      await holding.query('commit')
      await locked
      t.type(await inserted, Overtaken)
      t.equal(await store.find('grant', grant.id), undefined)
    },
  )

  t.test('what ends a user without a decision is waited for, too', async (t) => {
    const { store, other, holding, waiting, hold } = await prepared(t)
    await hold(userLock)
    const ended = other.write({ op: 'removeUser', userId: user.id, at: 1010 })
    await waiting(1)
    await holding.query('commit')
    await ended
    await t.rejects(store.write(insertion), Overtaken)
  })

  t.test('the lock of a user waits for a grant that is being inserted, and revokes it', async (t) => {
    const { store, other, holding, waiting } = await prepared(t)
    // The insertion has its lock, and waits for a row of a table that is not distributed.
    await holding.query(`begin; select from sessions where id = '${session.id}' for update`)
    const inserted = store.write(insertion)
    await waiting(1)
    const locked = other.transact('user', user.id, lockIt)
    await waiting(2)
    await holding.query('commit')
    await Promise.all([inserted, locked])
    t.match(await store.find('grant', grant.id), { revokedAt: 1010 })
  })

  t.test('the end of a session is waited for', async (t) => {
    const { store, holding, waiting } = await prepared(t)
    await holding.query(`begin; delete from sessions where id = '${session.id}'`)
    const inserted = store.write(insertion).catch((error: unknown) => error)
    await waiting(1)
    await holding.query('commit')
    t.type(await inserted, Overtaken)
  })

  t.test('clients that act for themselves wait for what ends them, and not for each other', async (t) => {
    const { store, other, holding, waiting, hold } = await prepared(t)
    let grants = 100
    const issue = () => {
      grants += 1
      const { userId: _, ...own } = { ...grant, id: sample.grantId(grants), clientId: client.id }
      return store.transact('actingClient', client.id, (found) =>
        found === undefined || found.client.lockedAt !== undefined
          ? accept('rejected')
          : accept(
              'issued',
              { op: 'insertGrant', grant: own, ...(found.owners && { owners: found.owners }) },
              {
                op: 'touchClient',
                clientId: client.id,
                at: 1_000_000 + grants,
              },
            ),
      )
    }
    t.strictSame(new Set(await Promise.all(Array.from({ length: 20 }, issue))), new Set(['issued']))
    await hold(`client ${client.id}`)
    const late = Array.from({ length: 3 }, issue)
    await waiting(3)
    const locked = other.write(update('client', { ...client, lockedAt: 5 }))
    await waiting(4)
    await holding.query('commit')
    await Promise.all([...late, locked])
    t.equal(await issue(), 'rejected')
  })
}
