import type { Test } from 'tap'
import { clientDocumentKind } from '../../src/domain/client-document.ts'
import { insert, insertUse, put, type Write } from '../../src/domain/decision.ts'
import { interactionKind } from '../../src/domain/interaction.ts'
import {
  grantOfTokenKey,
  insertOnce,
  type Store,
  type SweepBounds,
  type SweepResult,
} from '../../src/storage/store.ts'
import { throttleKind } from '../../src/users/rules/throttle.ts'
import * as sample from './samples.ts'
import { grantOwners, insertGrant, type OpenEmpty } from './store.suite.ts'

const bounds = (now: number, clientsUnusedSince: number, rejectionsKept: number): SweepBounds => {
  const unusedClientBytes = 1_000_000
  return { now, clientsUnusedSince, unusedClientBytes, clientsIdleSince: 0, rejectionsKept, auditedSince: 0 }
}

/** Part of the suite: the sweep. */
export function sweeps(t: Test, openEmpty: OpenEmpty): void {
  /** The store with records that expire at 2000, and others that do not. */
  async function filled(t: Test): Promise<Store> {
    const store = await openEmpty(t)
    const used = { ...sample.client, id: 'used', usedAt: 1001 }
    await store.write(insert('client', used), insert('client', sample.fullClient))
    await store.write(...grantOwners, insertGrant, { op: 'insertGrant', grant: sample.fullGrant })
    await store.write(insert('session', sample.session), put(throttleKind, sample.throttle))
    await store.write(insert(interactionKind, sample.interaction))
    await store.write(insert(interactionKind, sample.fullInteraction))
    const tokenId = sample.bytes(5, 16)
    await store.write({ op: 'revokeAccessToken', grantId: sample.fullGrant.id, tokenId, expiresAt: 2000 })
    return store
  }

  t.test('before anything has expired nothing is deleted', async (t) => {
    const store = await filled(t)
    t.equal((await store.sweep(bounds(1059, 1000, 100))).rows, 0)
    t.equal((await store.sweep(bounds(1060, 1000, 100))).rows, 1, 'the grant whose code expired at 1060')
    t.equal((await store.sweep(bounds(1999, 1000, 100))).rows, 0)
    t.ok(await store.find('session', sample.session.id))
  })

  t.test('exactly the expired records are deleted', async (t) => {
    const store = await filled(t)
    t.equal((await store.sweep(bounds(2000, 1000, 100))).rows, 4)
    t.equal(await store.find('grant', sample.grant.id), undefined)
    t.equal(await store.find('session', sample.session.id), undefined)
    t.equal(await store.find(throttleKind, sample.throttle.key), undefined)
    t.equal(await store.find(interactionKind, sample.interaction.id), undefined)
    t.strictSame(await store.find(interactionKind, sample.fullInteraction.id), sample.fullInteraction)
    t.match(await store.find('grant', sample.fullGrant.id), {
      id: sample.fullGrant.id,
      seq: sample.fullGrant.seq,
    })
    t.equal((await store.sweep(bounds(2000, 1000, 100))).rows, 0)
  })

  t.test(
    'a use is kept until it expires, and deleted then, however many digits its instant has',
    async (t) => {
      const store = await openEmpty(t)
      const instants = [999, 1999, 2000, 4_000_000_000]
      for (const expiresAt of instants) await store.write(insertUse({ id: sample.digest(1), expiresAt }))
      const isKept = async (expiresAt: number) =>
        !(await insertOnce(store, insertUse({ id: sample.digest(1), expiresAt })))
      t.equal((await store.sweep(bounds(998, 0, 100))).rows, 0)
      for (const expiresAt of instants) t.ok(await isKept(expiresAt), String(expiresAt))
      t.equal((await store.sweep(bounds(1999, 0, 100))).rows, 2)
      t.strictSame([await isKept(2000), await isKept(4_000_000_000), await isKept(999)], [true, true, false])
      t.strictSame(await store.sweep(bounds(2000, 0, 100)), { rows: 2, more: false })
      t.ok(await isKept(4_000_000_000))
    },
  )

  t.test("a revocation outlives its token by a day, as another node's clock may run ahead", async (t) => {
    const store = await filled(t)
    const isRevoked = async () =>
      (await store.find('grantOfToken', grantOfTokenKey(sample.fullGrant.id, sample.bytes(5, 16))))
        ?.revokedTokens.length === 1
    while ((await store.sweep(bounds(2000 + 86_399, 1000, 100))).rows > 0);
    t.equal(await isRevoked(), true)
    while ((await store.sweep(bounds(2000 + 86_400, 1000, 100))).rows > 0);
    t.equal(await isRevoked(), false)
  })

  t.test(
    "a registered client that was never used is deleted, a used one and an operator's are kept",
    async (t) => {
      const store = await filled(t)
      const added = (['integration', 'resource-server'] as const).map((origin) => {
        return { ...sample.client, id: origin, origin }
      })
      for (const client of added) await store.write(insert('client', client))
      t.equal((await store.sweep(bounds(1000, 1001, 100))).rows, 1)
      for (const { id } of added) t.ok(await store.find('client', id), id)
      t.equal(await store.find('client', sample.client.id), undefined)
      t.ok(await store.find('client', 'used'))
      t.ok(await store.find('client', sample.fullClient.id))
    },
  )

  t.test('of unused clients the oldest go beyond a number of bytes, with their records', async (t) => {
    const store = await openEmpty(t)
    const name = 'x'.repeat(10_000)
    const add = (id: string, more: object = {}) =>
      store.write(
        insert('client', { ...sample.client, id, name, ...more }),
        put(clientDocumentKind, { id, fetchedAt: 1000, freshUntil: 2000, digest: sample.digest(1) }),
      )
    // Two are of one second, which their order decides.
    for (let n = 0; n < 40; n++)
      await add(`unused-${n}`, { issuedAt: 1000 + (n >> 1), usedAt: 1000 + (n >> 1) })
    await add('used', { issuedAt: 900, usedAt: 1001 })
    await add('added', { issuedAt: 900, usedAt: 900, origin: 'integration' })
    const within = (unusedClientBytes: number) => ({ ...bounds(1000, 0, 0), unusedClientBytes })
    const left = async () =>
      (await store.list('client')).map(({ id }) => id).filter((id) => /^unused/.test(id))
    t.equal((await store.sweep(within(1_000_000))).rows, 0)
    t.equal((await store.sweep(within(310_000))).rows, 11, 'as many as are over')
    t.strictSame(
      (await left()).map((id) => Number(id.slice(7))),
      Array.from({ length: 29 }, (_, n) => n + 11),
    )
    t.equal(await store.find(clientDocumentKind, 'unused-10'), undefined)
    t.ok(await store.find(clientDocumentKind, 'unused-11'))
    t.equal((await store.sweep(within(310_000))).rows, 0, 'and no more')
    await add('unused-40', { issuedAt: 2000, usedAt: 2000 })
    t.equal((await store.sweep(within(310_000))).rows, 1, 'one more is over')
    t.equal((await store.sweep(within(64))).rows, 29)
    t.strictSame(await left(), [])
    for (const id of ['used', 'added']) t.ok(await store.find(clientDocumentKind, id), `${id} stays`)
  })

  t.test('more unused clients than one sweep deletes go in several', async (t) => {
    const store = await openEmpty(t)
    for (let n = 0; n < 1300; n += 100)
      await store.write(
        ...Array.from({ length: 100 }, (_, k) =>
          insert('client', { ...sample.client, id: `unused-${n + k}` }),
        ),
      )
    const within = { ...bounds(1000, 0, 0), unusedClientBytes: 64 }
    t.strictSame(await store.sweep(within), { rows: 200, more: true })
    let rows = 200
    for (let swept: SweepResult = { rows: 0, more: true }; swept.more; rows += swept.rows)
      swept = await store.sweep(within)
    t.equal(rows, 1300)
    t.equal((await store.list('client')).length, 0)
  })

  t.test("a registered client expires after its last use, an operator's does not", async (t) => {
    const store = await openEmpty(t)
    const uses = [1001, 1500, 1999, 2000]
    for (const usedAt of uses) {
      const client = { ...sample.client, id: `used-${usedAt}`, usedAt }
      await store.write(insert('client', client))
      await store.write(insert('client', { ...client, id: `added-${usedAt}`, origin: 'integration' }))
    }
    await store.write(insert('client', { ...sample.client, id: 'never' }))
    const idleSince = (since: number) => ({ ...bounds(9000, 0, 0), clientsIdleSince: since })
    t.equal((await store.sweep(idleSince(0))).rows, 0)
    t.equal((await store.sweep(idleSince(1001))).rows, 0)
    t.equal((await store.sweep(idleSince(2000))).rows, 3)
    const left = (await store.list('client')).map(({ id }) => id)
    t.strictSame(left, [...uses.map((usedAt) => `added-${usedAt}`), 'never', 'used-2000'])
  })

  t.test('the newest rejection records are kept and older ones deleted, whatever their time', async (t) => {
    const store = await openEmpty(t)
    for (let n = 0; n < 12; n++) {
      await store.write(insert('rejection', { ...sample.rejection, id: `request-${n}`, at: 100 - n }))
    }
    t.equal((await store.sweep(bounds(9000, 0, 12))).rows, 0)
    t.equal((await store.sweep(bounds(9000, 0, 5))).rows, 7)
    t.equal(await store.find('rejection', 'request-6'), undefined)
    t.equal((await store.find('rejection', 'request-7'))?.at, 93)
    await store.write(insert('rejection', { ...sample.rejection, id: 'another' }))
    t.equal((await store.sweep(bounds(9000, 0, 5))).rows, 1)
    t.equal((await store.sweep(bounds(9000, 0, 0))).rows, 5, 'none are kept')
  })

  t.test('the sweep counts active grants, and the store knows its number of rejection records', async (t) => {
    const store = await openEmpty(t)
    t.match(await store.activity(), { activeGrants: undefined, rejectionsKept: 0 })
    await store.write(...grantOwners)
    const ends = [2000, 3000, 3000, 3000]
    for (const [n, expiresAt] of ends.entries()) {
      await store.write({ op: 'insertGrant', grant: { ...sample.grant, id: sample.grantId(n), expiresAt } })
      await store.write(insert('rejection', { ...sample.rejection, id: `request-${n}` }))
    }
    await store.write({
      op: 'revokeGrant',
      grantId: sample.grantId(1),
      at: 1015,
      rule: 'rfc7009-2.1-refresh-cascades',
    })
    for (const [n, from] of [1, 2].entries()) {
      const exchangedFrom = {
        grantId: sample.grantId(from),
        tokenId: sample.bytes(n, 16),
        clientId: 'client',
      }
      const exchanged = { ...sample.grant, id: sample.grantId(10 + n), expiresAt: 3000, exchangedFrom }
      await store.write({ op: 'insertGrant', grant: exchanged })
    }
    await store.sweep(bounds(2000, 0, 3))
    t.match(
      await store.activity(),
      { activeGrants: 3, rejectionsKept: 3 },
      'not what a revoked one was exchanged for',
    )
    await store.sweep(bounds(3000, 0, 0))
    t.match(await store.activity(), { activeGrants: 0, rejectionsKept: 0 })
  })

  t.test(
    'expired grants behind thousands of active ones are reached, a bounded number per call',
    async (t) => {
      const store = await openEmpty(t)
      await store.write(...grantOwners)
      const insert = (n: number): Write => {
        const expiresAt = n < 4200 ? 9000 : 2000
        return { op: 'insertGrant', grant: { ...sample.grant, id: sample.grantId(n), expiresAt } }
      }
      for (let from = 0; from < 5200; from += 200) {
        await store.write(...Array.from({ length: 200 }, (_, n) => insert(from + n)))
      }
      const calls: SweepResult[] = []
      for (let call = 0; call < 8; call++) calls.push(await store.sweep(bounds(2000, 0, 100)))
      t.strictSame(calls[0], { rows: 0, more: false }, 'the first walk meets living grants only')
      t.equal(
        calls.reduce((sum, { rows }) => sum + rows, 0),
        1000,
      )
      t.ok(Math.max(...calls.map(({ rows }) => rows)) <= 500, 'no call takes them all')
      t.equal(calls[1]?.more, true)
      t.equal(calls[7]?.more, false)
      t.ok(await store.find('grant', sample.grantId(4199)))
      t.equal(await store.find('grant', sample.grantId(4200)), undefined)
      t.equal(await store.find('grant', sample.grantId(5199)), undefined)
      t.equal((await store.activity()).activeGrants, 4200, 'counted on the way, each once')
    },
  )

  t.test('two simultaneous sweeps run one after the other', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners)
    const insert = (n: number): Write => {
      return { op: 'insertGrant', grant: { ...sample.grant, id: sample.grantId(n), expiresAt: 2000 + n } }
    }
    await store.write(...Array.from({ length: 300 }, (_, n) => insert(n)))
    const both = await Promise.all([store.sweep(bounds(2099, 0, 0)), store.sweep(bounds(2149, 0, 0))])
    t.strictSame(
      both.map(({ rows }) => rows),
      [100, 50],
    )
    t.equal((await store.activity()).activeGrants, 150)
  })
}

/** Part of the suite: the sweep of an audit log without partitions. */
export function auditSweeps(t: Test, openEmpty: OpenEmpty): void {
  t.test(
    'audit events older than the limit are deleted, a bounded number per call; without a limit none are',
    async (t) => {
      const store = await openEmpty(t)
      const event = (at: number): Write => insert('auditEvent', { ...sample.auditEvent, at })
      await store.write(...Array.from({ length: 240 }, (_, n) => event(1000 + n)))
      const auditedSince = (since: number) => ({ ...bounds(9000, 0, 0), auditedSince: since })
      t.equal((await store.sweep(auditedSince(0))).rows, 0)
      t.equal((await store.sweep(auditedSince(1000))).rows, 0)
      t.strictSame(await store.sweep(auditedSince(1230)), { rows: 200, more: true })
      t.strictSame(await store.sweep(auditedSince(1230)), { rows: 30, more: false })
      t.strictSame(await store.sweep(auditedSince(1230)), { rows: 0, more: false })
      const left = await store.audit({ since: 0, limit: 100 })
      t.equal(left[0]?.at, 1230)
      t.equal(left.length, 10)
    },
  )
}
