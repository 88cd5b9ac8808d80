import type { Test } from 'tap'
import { accept, refuse, type Write } from '../../src/domain/decision.ts'
import { OAuthError } from '../../src/domain/errors.ts'
import type { Grant } from '../../src/domain/model.ts'
import { consentKey, RecordExists, type Store, type SweepBounds } from '../../src/storage/store.ts'
import * as sample from './samples.ts'
import { grantOwners, insertGrant, type OpenEmpty } from './store.suite.ts'

const lifetimes = { refreshExpiresAt: 3000, expiresAt: 4000 }

/** Why a grant is revoked here. */
const rule = 'rfc7009-2.1-refresh-cascades'

/** Part of the suite: the transitions of a grant. */
export function grantWrites(t: Test, openEmpty: OpenEmpty): void {
  const { id } = sample.grant
  const redeem: Write = { op: 'redeemGrant', grantId: id, at: 1010, ...lifetimes }
  const rotate = (fromSeq: number): Write => ({
    op: 'rotateGrant',
    grantId: id,
    fromSeq,
    at: 1020,
    ...lifetimes,
  })

  t.test('redeeming and rotating raise seq by one and move the ends', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners, insertGrant, redeem)
    t.strictSame(await store.find('grant', id), { ...sample.grant, seq: 1, rotatedAt: 1010, ...lifetimes })
    await store.write(rotate(1), rotate(2))
    t.strictSame(await store.find('grant', id), { ...sample.grant, seq: 3, rotatedAt: 1020, ...lifetimes })
  })

  t.test('redeeming without a refresh token leaves its end unset', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners, insertGrant, {
      op: 'redeemGrant',
      grantId: id,
      at: 1010,
      expiresAt: 2000,
    })
    t.strictSame(await store.find('grant', id), { ...sample.grant, seq: 1, rotatedAt: 1010, expiresAt: 2000 })
  })

  t.test(
    'a redemption or rotation that does not fit the row is refused, with all its siblings',
    async (t) => {
      const store = await openEmpty(t)
      await store.write(...grantOwners, insertGrant, redeem)
      for (const misfit of [redeem, rotate(0), rotate(2)]) {
        await t.rejects(store.write({ op: 'putThrottle', throttle: sample.throttle }, misfit), /met no row/)
      }
      await store.write({ op: 'revokeGrant', grantId: id, at: 1015, rule })
      await t.rejects(store.write({ op: 'putThrottle', throttle: sample.throttle }, rotate(1)), /met no row/)
      t.equal(await store.find('throttle', sample.throttle.key), undefined)
      t.match(await store.find('grant', id), { seq: 1, rotatedAt: 1010, revokedAt: 1015, revokedBy: rule })
    },
  )

  t.test('all grants of a person end together, or those at one client, and no others', async (t) => {
    const store = await openEmpty(t)
    const elsewhere = { ...sample.grant, id: sample.grantId(3), clientId: sample.fullClient.id }
    const stranger = { ...sample.grant, id: sample.grantId(4), accountId: sample.fullAccount.id }
    await store.write(...grantOwners, insertGrant)
    await store.write(
      { op: 'insertClient', client: sample.fullClient },
      { op: 'insertAccount', account: sample.fullAccount },
    )
    for (const grant of [elsewhere, stranger]) await store.write({ op: 'insertGrant', grant })
    const ends = async () => {
      const found = [id, elsewhere.id, stranger.id].map((grantId) => store.find('grant', grantId))
      return (await Promise.all(found)).map((grant) => [grant?.revokedAt, grant?.revokedBy])
    }
    const [of, none] = [{ accountId: sample.account.id, rule }, [undefined, undefined]]
    await store.write({ op: 'revokeGrantsOf', ...of, clientId: sample.client.id, at: 1015 })
    t.strictSame(await ends(), [[1015, rule], none, none])
    await store.write({ op: 'revokeGrantsOf', ...of, at: 1020 })
    t.strictSame(await ends(), [[1015, rule], [1020, rule], none])
    await t.rejects(store.write(redeem), /met no row/)
  })

  t.test('a revocation is visible at once, and a later one does not move it', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners, insertGrant)
    await store.write({ op: 'revokeGrant', grantId: id, at: 1015, rule })
    t.strictSame(await store.find('grant', id), { ...sample.grant, revokedAt: 1015, revokedBy: rule })
    await store.write({ op: 'revokeGrant', grantId: id, at: 1016, rule })
    t.equal((await store.find('grant', id))?.revokedAt, 1015)
  })

  t.test('revoked access tokens are listed with their grant only, each once', async (t) => {
    const store = await openEmpty(t)
    const [first, second] = [sample.bytes(5, 16), sample.bytes(6, 16)]
    await store.write(...grantOwners, insertGrant, { op: 'insertGrant', grant: sample.fullGrant })
    for (const tokenId of [first, second, first]) {
      await store.write({ op: 'revokeAccessToken', grantId: id, tokenId, expiresAt: 2000 })
    }
    t.strictSame(new Set((await store.find('grant', id))?.revokedTokens), new Set([first, second]))
    t.equal((await store.find('grant', id))?.revokedTokens.length, 2)
    t.strictSame(
      (await store.find('grant', sample.fullGrant.id))?.revokedTokens,
      sample.fullGrant.revokedTokens,
    )
  })

  t.test('an id that is not one of a grant cannot be written', async (t) => {
    const store = await openEmpty(t)
    await t.rejects(store.write({ op: 'insertGrant', grant: { ...sample.grant, id: 'short' } }), TypeError)
    await t.rejects(store.write({ op: 'revokeGrant', grantId: `${id}A`, at: 1, rule }), TypeError)
  })
}

/** Part of the suite: decisions and their writes. */
export function transactions(t: Test, openEmpty: OpenEmpty): void {
  const refusal = new OAuthError('invalid_grant', 'the code was already redeemed', {
    rule: 'rfc6749-4.1.2-code-replay-revokes',
  })

  t.test('a decision sees the record, and its writes are there when its result is', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners, insertGrant)
    const seen = await store.transact('grant', sample.grant.id, (grant) =>
      accept(grant, { op: 'revokeGrant', grantId: sample.grant.id, at: 1015, rule }),
    )
    t.strictSame(seen, sample.grant)
    t.equal((await store.find('grant', sample.grant.id))?.revokedAt, 1015)
  })

  t.test('every kind can be decided about, present or absent', async (t) => {
    const store = await openEmpty(t)
    const seen = (kind: Parameters<Store['find']>[0], key: string) =>
      store.transact(kind, key, (record) => accept(record !== undefined))
    const keys = {
      client: sample.client.id,
      account: sample.account.id,
      accountByLogin: sample.account.username,
      session: sample.session.id,
      interaction: sample.interaction.id,
      consent: consentKey(sample.account.id, sample.client.id),
      grant: sample.grant.id,
      throttle: sample.throttle.key,
      key: sample.key.id,
      refusal: sample.refusal.id,
    }
    const kinds = Object.keys(keys) as (keyof typeof keys)[] // The literal above has no other members.
    for (const kind of kinds) t.equal(await seen(kind, keys[kind]), false, kind)
    await store.write(...grantOwners, insertGrant, { op: 'insertSession', session: sample.session })
    await store.write(
      { op: 'insertInteraction', interaction: sample.interaction },
      { op: 'insertKey', key: sample.key },
    )
    await store.write(
      { op: 'putConsent', consent: sample.consent },
      { op: 'putThrottle', throttle: sample.throttle },
      { op: 'insertRefusal', refusal: sample.refusal },
    )
    for (const kind of kinds) t.equal(await seen(kind, keys[kind]), true, kind)
  })

  t.test('a decision that throws writes nothing and rejects with what it threw', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners, insertGrant)
    const decided = store.transact('grant', sample.grant.id, () => {
      throw refusal
    })
    t.equal(await decided.catch((error: unknown) => error), refusal)
    t.strictSame(await store.find('grant', sample.grant.id), sample.grant)
  })

  t.test('a refusal that is returned is thrown after its writes are committed', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners, insertGrant)
    const decided = store.transact('grant', sample.grant.id, () =>
      refuse(refusal, { op: 'revokeGrant', grantId: sample.grant.id, at: 1015, rule }),
    )
    t.equal(await decided.catch((error: unknown) => error), refusal)
    t.equal((await store.find('grant', sample.grant.id))?.revokedAt, 1015)
  })

  t.test('a job that faults in the database fails alone: what ran beside it is committed', async (t) => {
    const store = await openEmpty(t)
    await store.write({ op: 'insertClient', client: sample.client })
    const insert = (id: string) => store.write({ op: 'insertClient', client: { ...sample.client, id } })
    const throwing = store.transact('client', 'x', () => {
      throw refusal
    })
    const outcomes = await Promise.allSettled([
      insert('a'),
      insert(sample.client.id),
      insert('b'),
      throwing,
      insert('c'),
    ])
    t.strictSame(
      outcomes.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled'],
    )
    t.match(outcomes[1], { reason: RecordExists })
    t.match(outcomes[3], { reason: refusal })
    for (const id of ['a', 'b', 'c']) t.ok(await store.find('client', id), id)
  })
}

/** Part of the suite: decisions at the same time. */
export function concurrency(t: Test, openEmpty: OpenEmpty): void {
  const { id } = sample.grant

  function redeem(grant: Grant | undefined) {
    if (grant?.seq !== 0)
      throw new OAuthError('invalid_grant', 'the code was already redeemed', {
        rule: 'rfc6749-4.1.2-code-replay-revokes',
      })
    return accept('won', { op: 'redeemGrant', grantId: id, at: 1010, ...lifetimes })
  }

  t.test('of 50 redemptions at once exactly one wins', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners, insertGrant)
    const outcomes = await Promise.allSettled(
      Array.from({ length: 50 }, () => store.transact('grant', id, redeem)),
    )
    t.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
    for (const outcome of outcomes) if (outcome.status === 'rejected') t.match(outcome.reason, OAuthError)
    t.equal((await store.find('grant', id))?.seq, 1)
  })

  t.test('40 failures counted at once in a bucket that did not exist are 40', async (t) => {
    const store = await openEmpty(t)
    const { key } = sample.throttle
    const count = () =>
      store.transact('throttle', key, (throttle) => {
        const failures = (throttle?.failures ?? 0) + 1
        return accept(failures, { op: 'putThrottle', throttle: { key, failures, expiresAt: 2000 } })
      })
    const counted = await Promise.all(Array.from({ length: 40 }, count))
    t.equal((await store.find('throttle', key))?.failures, 40)
    t.strictSame(new Set(counted).size, 40)
  })

  t.test('300 writes at once are all there', async (t) => {
    const store = await openEmpty(t)
    const ids = Array.from({ length: 300 }, (_, n) => `client ${n}`)
    await Promise.all(ids.map((id) => store.write({ op: 'insertClient', client: { ...sample.client, id } })))
    t.equal((await store.list('client')).length, 300)
  })

  t.test('decisions about all keys at once wait for each other, and see every key', async (t) => {
    const store = await openEmpty(t)
    await store.write({ op: 'insertKey', key: sample.fullKey })
    const add = (n: number) =>
      store.transact('keyRing', '', (ring = []) =>
        ring.length > 1
          ? accept('found')
          : accept('made', { op: 'insertKey', key: { ...sample.key, id: `${n}` } }),
      )
    const outcomes = await Promise.all(Array.from({ length: 20 }, (_, n) => add(n)))
    t.equal(outcomes.filter((outcome) => outcome === 'made').length, 1)
    t.strictSame(await store.find('keyRing', ''), await store.list('key'))
    t.equal((await store.list('key')).length, 2)
  })

  t.test('a revocation beside a rotation is never undone', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners, insertGrant)
    await Promise.allSettled([
      store.transact('grant', id, redeem),
      store.write({ op: 'revokeGrant', grantId: id, at: 1015, rule }),
      store.transact('grant', id, redeem),
    ])
    t.equal((await store.find('grant', id))?.revokedAt, 1015)
  })
}

const bounds = (now: number, clientsUnusedSince: number, refusalsKept: number): SweepBounds => {
  return { now, clientsUnusedSince, refusalsKept, auditedSince: 0 }
}

/** Part of the suite: the sweep. */
export function sweeps(t: Test, openEmpty: OpenEmpty): void {
  /** The store with records that end at 2000, and some that do not. */
  async function filled(t: Test): Promise<Store> {
    const store = await openEmpty(t)
    const used = { ...sample.client, id: 'used', usedAt: 1001 }
    await store.write({ op: 'insertClient', client: used }, { op: 'insertClient', client: sample.fullClient })
    await store.write(...grantOwners, insertGrant, { op: 'insertGrant', grant: sample.fullGrant })
    await store.write(
      { op: 'insertSession', session: sample.session },
      { op: 'putThrottle', throttle: sample.throttle },
    )
    await store.write({ op: 'insertInteraction', interaction: sample.interaction })
    await store.write({ op: 'insertInteraction', interaction: sample.fullInteraction })
    const tokenId = sample.bytes(5, 16)
    await store.write({ op: 'revokeAccessToken', grantId: sample.fullGrant.id, tokenId, expiresAt: 2000 })
    return store
  }

  t.test('before anything has expired nothing goes', async (t) => {
    const store = await filled(t)
    t.equal(await store.sweep(bounds(1059, 1000, 100)), 0)
    t.equal(await store.sweep(bounds(1060, 1000, 100)), 1, 'the grant whose code expired at 1060')
    t.equal(await store.sweep(bounds(1999, 1000, 100)), 0)
    t.ok(await store.find('session', sample.session.id))
  })

  t.test('what has expired goes, and nothing else', async (t) => {
    const store = await filled(t)
    t.equal(await store.sweep(bounds(2000, 1000, 100)), 4)
    t.equal(await store.find('grant', sample.grant.id), undefined)
    t.equal(await store.find('session', sample.session.id), undefined)
    t.equal(await store.find('throttle', sample.throttle.key), undefined)
    t.equal(await store.find('interaction', sample.interaction.id), undefined)
    t.strictSame(await store.find('interaction', sample.fullInteraction.id), sample.fullInteraction)
    t.match(await store.find('grant', sample.fullGrant.id), {
      id: sample.fullGrant.id,
      seq: sample.fullGrant.seq,
    })
    t.equal(await store.sweep(bounds(2000, 1000, 100)), 0)
  })

  t.test('a revocation outlives its token by a day, against a clock that ran ahead', async (t) => {
    const store = await filled(t)
    const isRevoked = async () =>
      (await store.find('grant', sample.fullGrant.id))?.revokedTokens.includes(sample.bytes(5, 16))
    while ((await store.sweep(bounds(2000 + 86_399, 1000, 100))) > 0);
    t.equal(await isRevoked(), true)
    while ((await store.sweep(bounds(2000 + 86_400, 1000, 100))) > 0);
    t.equal(await isRevoked(), false)
  })

  t.test('a registered client that was never used goes, a used or an added one stays', async (t) => {
    const store = await filled(t)
    const added = (['integration', 'resource-server'] as const).map((origin) => {
      return { ...sample.client, id: origin, origin }
    })
    for (const client of added) await store.write({ op: 'insertClient', client })
    t.equal(await store.sweep(bounds(1000, 1001, 100)), 1)
    for (const { id } of added) t.ok(await store.find('client', id), id)
    t.equal(await store.find('client', sample.client.id), undefined)
    t.ok(await store.find('client', 'used'))
    t.ok(await store.find('client', sample.fullClient.id))
  })

  t.test('the last refusals stay and older ones go, whatever their time', async (t) => {
    const store = await openEmpty(t)
    for (let n = 0; n < 12; n++) {
      await store.write({
        op: 'insertRefusal',
        refusal: { ...sample.refusal, id: `request-${n}`, at: 100 - n },
      })
    }
    t.equal(await store.sweep(bounds(9000, 0, 12)), 0)
    t.equal(await store.sweep(bounds(9000, 0, 5)), 7)
    t.equal(await store.find('refusal', 'request-6'), undefined)
    t.equal((await store.find('refusal', 'request-7'))?.at, 93)
    await store.write({ op: 'insertRefusal', refusal: { ...sample.refusal, id: 'another' } })
    t.equal(await store.sweep(bounds(9000, 0, 5)), 1)
    t.equal(await store.sweep(bounds(9000, 0, 0)), 5, 'none are kept')
  })

  t.test(
    'audit events from before the bound go, a batch a call, and stay for ever without one',
    async (t) => {
      const store = await openEmpty(t)
      const insert = (at: number): Write => ({ op: 'insertAuditEvent', event: { ...sample.auditEvent, at } })
      await store.write(...Array.from({ length: 100 }, (_, n) => insert(1000 + n)))
      const auditedSince = (since: number) => ({ ...bounds(9000, 0, 0), auditedSince: since })
      t.equal(await store.sweep(auditedSince(0)), 0)
      t.equal(await store.sweep(auditedSince(1000)), 0)
      t.equal(await store.sweep(auditedSince(1090)), 80)
      t.equal(await store.sweep(auditedSince(1090)), 10)
      t.equal(await store.sweep(auditedSince(1090)), 0)
      const left = await store.audit({ since: 0, limit: 100 })
      t.equal(left[0]?.at, 1090)
      t.equal(left.length, 10)
    },
  )

  t.test(
    'the sweep counts the grants that live, and the store knows how many refusals it keeps',
    async (t) => {
      const store = await openEmpty(t)
      t.match(await store.activity(), { activeGrants: undefined, refusalsKept: 0 })
      await store.write(...grantOwners)
      const ends = [2000, 3000, 3000, 3000]
      for (const [n, expiresAt] of ends.entries()) {
        await store.write({ op: 'insertGrant', grant: { ...sample.grant, id: sample.grantId(n), expiresAt } })
        await store.write({ op: 'insertRefusal', refusal: { ...sample.refusal, id: `request-${n}` } })
      }
      await store.write({ op: 'revokeGrant', grantId: sample.grantId(1), at: 1015, rule })
      await store.sweep(bounds(2000, 0, 3))
      t.match(await store.activity(), { activeGrants: 2, refusalsKept: 3 })
      await store.sweep(bounds(3000, 0, 0))
      t.match(await store.activity(), { activeGrants: 0, refusalsKept: 0 })
    },
  )

  t.test('expired grants behind thousands of living ones are reached, a bounded batch a call', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners)
    const insert = (n: number): Write => {
      const expiresAt = n < 4200 ? 9000 : 2000
      return { op: 'insertGrant', grant: { ...sample.grant, id: sample.grantId(n), expiresAt } }
    }
    await store.write(...Array.from({ length: 4400 }, (_, n) => insert(n)))
    const batches: number[] = []
    for (let call = 0; call < 5; call++) batches.push(await store.sweep(bounds(2000, 0, 100)))
    t.equal(batches[0], 0, 'the first walk meets living grants only')
    t.equal(
      batches.reduce((sum, count) => sum + count),
      200,
    )
    t.ok(Math.max(...batches) < 200, 'no call takes them all')
    t.ok(await store.find('grant', sample.grantId(4199)))
    t.equal(await store.find('grant', sample.grantId(4200)), undefined)
    t.equal(await store.find('grant', sample.grantId(4399)), undefined)
    t.equal((await store.activity()).activeGrants, 4200, 'counted on the way, each once')
  })
}
