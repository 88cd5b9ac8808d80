import type { Test } from 'tap'
import { consentKey, consentKind } from '../../src/domain/connections.ts'
import {
  accept,
  endSession,
  insert,
  put,
  reject,
  remove,
  removeUser,
  update,
  type Write,
} from '../../src/domain/decision.ts'
import { OAuthError } from '../../src/domain/errors.ts'
import { mintGrantId } from '../../src/domain/grant.ts'
import { interactionKind } from '../../src/domain/interaction.ts'
import type { Client, Grant, GrantOfToken } from '../../src/domain/model.ts'
import {
  type FindKind,
  grantOfTokenKey,
  locksOf,
  Overtaken,
  RecordExists,
  sessionConsentKey,
} from '../../src/storage/store.ts'
import { userCredentials } from '../../src/users/factors.ts'
import { passkeyKind } from '../../src/users/rules/passkey.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { throttleKind } from '../../src/users/rules/throttle.ts'
import * as sample from './samples.ts'
import { grantOwners, insertGrant, type OpenEmpty } from './store.suite.ts'

const lifetimes = { refreshExpiresAt: 3000, expiresAt: 4000 }

/** The rule of a revocation in this file. */
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

  t.test('redeeming and rotating increment seq and move the expiry times', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners, insertGrant, redeem)
    t.strictSame(await store.find('grant', id), { ...sample.grant, seq: 1, rotatedAt: 1010, ...lifetimes })
    await store.write(rotate(1), rotate(2))
    t.strictSame(await store.find('grant', id), { ...sample.grant, seq: 3, rotatedAt: 1020, ...lifetimes })
  })

  t.test('extending moves the expiry times of the number it was decided on', async (t) => {
    const store = await openEmpty(t)
    const later = { refreshExpiresAt: 5000, expiresAt: 6000 }
    await store.write(...grantOwners, insertGrant, redeem, {
      op: 'extendGrant',
      grantId: id,
      seq: 1,
      ...later,
    })
    t.strictSame(await store.find('grant', id), { ...sample.grant, seq: 1, rotatedAt: 1010, ...later })
    await t.rejects(store.write({ op: 'extendGrant', grantId: id, seq: 2, ...lifetimes }))
  })

  t.test('redeeming deletes what only the code needed', async (t) => {
    const store = await openEmpty(t)
    const grant = { ...sample.grant, codeChallenge: sample.digest(8), nonce: 'n-0S6' }
    await store.write(...grantOwners, { op: 'insertGrant', grant })
    t.strictSame(await store.find('grant', id), grant)
    await store.write(redeem)
    const codeChallenge = Buffer.from(sample.digest(8), 'base64url').subarray(0, 8).toString('base64url')
    const redeemed = { ...sample.grant, codeChallenge, seq: 1, rotatedAt: 1010, ...lifetimes }
    t.strictSame(await store.find('grant', id), redeemed)
    await store.write(rotate(1))
    t.strictSame(await store.find('grant', id), { ...redeemed, seq: 2, rotatedAt: 1020 })
  })

  t.test(
    'a grant that ends with its refresh token and was approved at the time in its id is read back unchanged',
    async (t) => {
      const store = await openEmpty(t)
      const minted = { ...sample.grant, id: mintGrantId(Buffer.alloc(8, 7), 1000), seq: 1, rotatedAt: 1010 }
      const grant = { ...minted, refreshExpiresAt: 2000, expiresAt: 2000 }
      await store.write(...grantOwners, { op: 'insertGrant', grant })
      t.strictSame(await store.find('grant', grant.id), grant)
    },
  )

  t.test('redeeming without a refresh token leaves its expiry unset', async (t) => {
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
    'a redemption or rotation that does not match the row is rejected, with every write of its batch',
    async (t) => {
      const store = await openEmpty(t)
      await store.write(...grantOwners, insertGrant, redeem)
      for (const misfit of [redeem, rotate(0), rotate(2)]) {
        await t.rejects(store.write(put(throttleKind, sample.throttle), misfit), /met no row/)
      }
      await store.write({ op: 'revokeGrant', grantId: id, at: 1015, rule })
      await t.rejects(store.write(put(throttleKind, sample.throttle), rotate(1)), /met no row/)
      t.equal(await store.find(throttleKind, sample.throttle.key), undefined)
      t.match(await store.find('grant', id), { seq: 1, rotatedAt: 1010, revokedAt: 1015, revokedBy: rule })
    },
  )

  t.test('all grants of a user, or only those at one client, are revoked together', async (t) => {
    const store = await openEmpty(t)
    const elsewhere = { ...sample.grant, id: sample.grantId(3), clientId: sample.fullClient.id }
    const stranger = { ...sample.grant, id: sample.grantId(4), userId: sample.fullUser.id }
    await store.write(...grantOwners, insertGrant)
    const { lockedAt: _, ...unlocked } = sample.fullUser
    await store.write(insert('client', sample.fullClient), insert('user', unlocked))
    for (const grant of [elsewhere, stranger]) await store.write({ op: 'insertGrant', grant })
    const ends = async () => {
      const found = [id, elsewhere.id, stranger.id].map((grantId) => store.find('grant', grantId))
      return (await Promise.all(found)).map((grant) => [grant?.revokedAt, grant?.revokedBy])
    }
    const [of, none] = [{ userId: sample.user.id, rule }, [undefined, undefined]]
    await store.write({ op: 'revokeGrantsOf', ...of, clientId: sample.client.id, at: 1015 })
    t.strictSame(await ends(), [[1015, rule], none, none])
    await store.write({ op: 'revokeGrantsOf', ...of, at: 1020 })
    t.strictSame(await ends(), [[1015, rule], [1020, rule], none])
    await t.rejects(store.write(redeem), /met no row/)
  })

  t.test('the oldest grants of a user at one client are deleted, and no others', async (t) => {
    const store = await openEmpty(t)
    const elsewhere = { ...sample.grant, id: sample.grantId(1), clientId: sample.fullClient.id }
    const stranger = { ...sample.grant, id: sample.grantId(2), userId: sample.fullUser.id }
    const { lockedAt: _, ...unlocked } = sample.fullUser
    await store.write(...grantOwners, insert('client', sample.fullClient))
    await store.write(insert('user', unlocked))
    for (const grant of [elsewhere, stranger]) await store.write({ op: 'insertGrant', grant })
    const own = [3, 4, 5, 6].map(sample.grantId)
    for (const grantId of own)
      await store.write({ op: 'insertGrant', grant: { ...sample.grant, id: grantId } })
    const limit = (stay: number, isExchanged = false) =>
      store.write({
        op: 'deleteOldestGrants',
        userId: sample.user.id,
        clientId: sample.client.id,
        stay,
        isExchanged,
      })
    const left = async (userId: string) => (await store.listOf('grant', userId)).map((grant) => grant.id)
    await limit(4)
    t.strictSame(await left(sample.user.id), [elsewhere.id, ...own])
    await limit(2)
    t.strictSame(await left(sample.user.id), [elsewhere.id, ...own.slice(2)])
    t.strictSame(await left(sample.fullUser.id), [stranger.id])
    // `extra` may say anything else.
    const said = { ...sample.grant, id: own[0] ?? '', extra: { said: '"exchangedFrom":{' } }
    const subject = { grantId: said.id, tokenId: 'token', clientId: sample.client.id }
    const exchanged = { ...sample.grant, id: own[1] ?? '', exchangedFrom: subject }
    for (const grant of [said, exchanged]) await store.write({ op: 'insertGrant', grant })
    await limit(3)
    await limit(1, true)
    t.strictSame(await left(sample.user.id), [elsewhere.id, ...own], 'each kind has its own number')
    await limit(0, true)
    t.strictSame(await left(sample.user.id), [elsewhere.id, ...own.filter((id) => id !== exchanged.id)])
  })

  t.test('a revocation is visible at once, and a later one does not change its time', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners, insertGrant)
    await store.write({ op: 'revokeGrant', grantId: id, at: 1015, rule })
    t.strictSame(await store.find('grant', id), { ...sample.grant, revokedAt: 1015, revokedBy: rule })
    await store.write({ op: 'revokeGrant', grantId: id, at: 1016, rule })
    t.equal((await store.find('grant', id))?.revokedAt, 1015)
  })

  t.test('a revoked access token is found only together with its grant', async (t) => {
    const store = await openEmpty(t)
    const [first, second] = [sample.bytes(5, 16), sample.bytes(6, 16)]
    await store.write(...grantOwners, insertGrant, { op: 'insertGrant', grant: sample.fullGrant })
    for (const tokenId of [first, second, first]) {
      await store.write({ op: 'revokeAccessToken', grantId: id, tokenId, expiresAt: 2000 })
    }
    const find = (grantId: string, tokenId: string) =>
      store.find('grantOfToken', grantOfTokenKey(grantId, tokenId))
    const [grant, fullGrant] = [
      { ...ofAnyToken(sample.grant), client: ofGrant(sample.client) },
      { ...ofAnyToken(sample.fullGrant), client: ofGrant(sample.client) },
    ]
    for (const tokenId of [first, second])
      t.strictSame(await find(id, tokenId), { ...grant, revokedTokens: [tokenId] })
    t.strictSame(await find(id, sample.bytes(7, 16)), { ...grant, revokedTokens: [] })
    t.strictSame(await find(sample.fullGrant.id, first), { ...fullGrant, revokedTokens: [] })
    t.equal(await find(sample.grantId(99), first), undefined)
    t.equal(await find('no grant', first), undefined)
    t.equal(await find(id, 'a\0b').then((grant) => grant?.revokedTokens.length ?? 0), 0)
    t.strictSame(await store.find('grant', id), sample.grant, 'without a token nothing is said of any')
  })

  t.test('decisions about a token of a grant wait for decisions about the grant', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners, insertGrant)
    const tokenId = sample.bytes(5, 16)
    const revokeOne = () =>
      store.transact('grantOfToken', grantOfTokenKey(id, tokenId), (grant) =>
        grant?.revokedAt === undefined && grant?.revokedTokens.length === 0
          ? accept('revoked', { op: 'revokeAccessToken', grantId: id, tokenId, expiresAt: 2000 })
          : accept('nothing'),
      )
    const all = await Promise.all(Array.from({ length: 20 }, revokeOne))
    t.equal(all.filter((outcome) => outcome === 'revoked').length, 1)
    t.strictSame(locksOf('grantOfToken', grantOfTokenKey(id, tokenId)), locksOf('grant', id))
  })

  t.test('a grant is inserted only while its user, session and consent exist', async (t) => {
    const { user, session, consent } = sample
    const changed = { ...consent, allowed: [{ resource: 'https://api.example', scope: ['openid'] }] }
    const [of, sessionId] = [{ userId: user.id }, session.id]
    const locked: Write = update('user', { ...user, lockedAt: 1010 })
    const ends: readonly (readonly [string, Write, boolean])[] = [
      ['nothing', { op: 'touchClient', clientId: consent.clientId, at: 1010 }, true],
      ['the session', endSession(sessionId, 0), false],
      ['the sessions', { op: 'endSessionsOf', at: 0, ...of }, false],
      ['the access of the user', locked, false],
      ['the user', removeUser(user.id, 0), false],
      ['the consent', remove(consentKind, consentKey(user.id, consent.clientId)), false],
      ['the scope of the consent', put(consentKind, changed), false],
    ]
    for (const [what, end, isInserted] of ends) {
      const store = await openEmpty(t)
      await store.write(...grantOwners, insert('session', session), put(consentKind, consent), end)
      const other = put(throttleKind, sample.throttle)
      const written = store.write(other, { ...insertGrant, basis: { sessionId, consent } })
      if (isInserted) await written
      else await t.rejects(written, Overtaken, what)
      const isThere = async (kind: FindKind, key: string) => (await store.find(kind, key)) !== undefined
      t.equal(await isThere('grant', id), isInserted, what)
      t.equal(await isThere(throttleKind, sample.throttle.key), isInserted, `${what}: all or nothing`)
      const key = sessionConsentKey(session, consent.clientId)
      const found = await store.find('sessionConsent', key)
      const remembered = what.includes('scope') ? changed : consent
      t.strictSame(found?.consent, isInserted || what.includes('scope') ? remembered : undefined, what)
      if (found !== undefined) {
        const grant = { ...sample.grant, id: sample.grantId(8) }
        const insertion = { op: 'insertGrant', grant, owners: found.owners } as const
        await store.transact('sessionConsent', key, (there) => accept(there, insertion))
        t.strictSame(await store.find('grant', grant.id), grant, `${what}: with the owners that were found`)
      }
      // Without a consent only the user and the session are required.
      const again = { ...insertGrant, grant: { ...sample.grant, id: sample.grantId(7) } }
      const signedIn = store.write({ ...again, basis: { sessionId } })
      if (isInserted || what.includes('consent')) await t.resolves(signedIn, what)
      else await t.rejects(signedIn, Overtaken, what)
    }
  })

  t.test('a grant is not inserted for the session of another user', async (t) => {
    const store = await openEmpty(t)
    const session = { ...sample.session, userId: sample.fullUser.id }
    await store.write(...grantOwners, insert('user', sample.fullUser))
    await store.write(insert('session', session))
    await t.rejects(store.write({ ...insertGrant, basis: { sessionId: session.id } }), Overtaken)
  })

  t.test('while its user is locked a grant reads as revoked by the lock', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners, insertGrant)
    await store.write(update('user', { ...sample.user, lockedAt: 1010 }))
    const revoked = { revokedAt: 1010, revokedBy: 'lychgate-account-locked' }
    t.strictSame(await store.find('grant', id), { ...sample.grant, ...revoked })
    t.match(await store.listOf('grant', sample.user.id), [revoked])
    await store.write({ op: 'revokeGrant', grantId: id, at: 1005, rule })
    t.match(await store.find('grant', id), { revokedAt: 1005, revokedBy: rule }, 'what came first stays')
  })

  t.test('a session gets a new id and methods, unless it has ended', async (t) => {
    const store = await openEmpty(t)
    const { session } = sample
    const [by, methods] = [sample.digest(9), ['pwd', 'otp']]
    await store.write(insert('session', session))
    await store.write({ op: 'replaceSession', sessionId: session.id, by, methods })
    t.strictSame(await store.find('session', by), { ...session, id: by, methods })
    t.equal(await store.find('session', session.id), undefined)
    const late = store.write({ op: 'replaceSession', sessionId: session.id, by: sample.digest(10), methods })
    await t.rejects(late, Overtaken)
  })

  t.test('an id that is not a grant id cannot be written', async (t) => {
    const store = await openEmpty(t)
    await t.rejects(store.write({ op: 'insertGrant', grant: { ...sample.grant, id: 'short' } }), TypeError)
    await t.rejects(store.write({ op: 'revokeGrant', grantId: `${id}A`, at: 1, rule }), TypeError)
  })
}

/** Part of the suite: decisions and their writes. */
export function transactions(t: Test, openEmpty: OpenEmpty): void {
  const rejection = new OAuthError('invalid_grant', 'the code was already redeemed', {
    rule: 'rfc6749-4.1.2-code-replay-revokes',
  })

  t.test('a decision sees the record, and its writes are visible when its result is returned', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners, insertGrant)
    const seen = await store.transact('grant', sample.grant.id, (grant) =>
      accept(grant, { op: 'revokeGrant', grantId: sample.grant.id, at: 1015, rule }),
    )
    t.strictSame(seen, sample.grant)
    t.equal((await store.find('grant', sample.grant.id))?.revokedAt, 1015)
  })

  t.test('decisions work for every record kind, present or absent', async (t) => {
    const store = await openEmpty(t)
    const seen = (kind: FindKind, key: string) =>
      store.transact(kind, key, (record) => accept(record !== undefined))
    const keys: readonly (readonly [FindKind, string])[] = [
      ['client', sample.client.id],
      ['user', sample.user.id],
      ['userByLogin', sample.user.username],
      ['session', sample.session.id],
      [interactionKind, sample.interaction.id],
      [consentKind, consentKey(sample.user.id, sample.client.id)],
      ['grant', sample.grant.id],
      [throttleKind, sample.throttle.key],
      ['key', sample.key.id],
      ['rejection', sample.rejection.id],
    ]
    for (const [kind, key] of keys) t.equal(await seen(kind, key), false, key)
    await store.write(...grantOwners, insertGrant, insert('session', sample.session))
    await store.write(insert(interactionKind, sample.interaction), insert('key', sample.key))
    await store.write(
      put(consentKind, sample.consent),
      put(throttleKind, sample.throttle),
      insert('rejection', sample.rejection),
    )
    for (const [kind, key] of keys) t.equal(await seen(kind, key), true, key)
  })

  t.test('a decision that throws writes nothing and rejects with the error it threw', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners, insertGrant)
    const decided = store.transact('grant', sample.grant.id, () => {
      throw rejection
    })
    t.equal(await decided.catch((error: unknown) => error), rejection)
    t.strictSame(await store.find('grant', sample.grant.id), sample.grant)
  })

  t.test('an error that a decision returns is thrown after its writes are committed', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners, insertGrant)
    const decided = store.transact('grant', sample.grant.id, () =>
      reject(rejection, { op: 'revokeGrant', grantId: sample.grant.id, at: 1015, rule }),
    )
    t.equal(await decided.catch((error: unknown) => error), rejection)
    t.equal((await store.find('grant', sample.grant.id))?.revokedAt, 1015)
  })

  t.test('a job that fails in the database fails alone: the others of its batch are committed', async (t) => {
    const store = await openEmpty(t)
    await store.write(insert('client', sample.client))
    const add = (id: string) => store.write(insert('client', { ...sample.client, id }))
    const throwing = store.transact('client', 'x', () => {
      throw rejection
    })
    const outcomes = await Promise.allSettled([add('a'), add(sample.client.id), add('b'), throwing, add('c')])
    t.strictSame(
      outcomes.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled', 'rejected', 'fulfilled'],
    )
    t.match(outcomes[1], { reason: RecordExists })
    t.match(outcomes[3], { reason: rejection })
    for (const id of ['a', 'b', 'c']) t.ok(await store.find('client', id), id)
  })
}

/** Part of the suite: simultaneous decisions. */
export function concurrency(t: Test, openEmpty: OpenEmpty): void {
  const { id } = sample.grant

  function redeem(grant: Grant | undefined) {
    if (grant?.seq !== 0)
      throw new OAuthError('invalid_grant', 'the code was already redeemed', {
        rule: 'rfc6749-4.1.2-code-replay-revokes',
      })
    return accept('won', { op: 'redeemGrant', grantId: id, at: 1010, ...lifetimes })
  }

  t.test('of 50 simultaneous redemptions exactly one succeeds', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners, insertGrant)
    const outcomes = await Promise.allSettled(
      Array.from({ length: 50 }, () => store.transact('grant', id, redeem)),
    )
    t.equal(outcomes.filter(({ status }) => status === 'fulfilled').length, 1)
    for (const outcome of outcomes) if (outcome.status === 'rejected') t.match(outcome.reason, OAuthError)
    t.equal((await store.find('grant', id))?.seq, 1)
  })

  t.test('40 simultaneous failures in a new bucket count as 40', async (t) => {
    const store = await openEmpty(t)
    const { key } = sample.throttle
    const count = () =>
      store.transact(throttleKind, key, (throttle) => {
        const failures = (throttle?.failures ?? 0) + 1
        return accept(failures, put(throttleKind, { key, failures, expiresAt: 2000 }))
      })
    const counted = await Promise.all(Array.from({ length: 40 }, count))
    t.equal((await store.find(throttleKind, key))?.failures, 40)
    t.strictSame(new Set(counted).size, 40)
  })

  t.test('300 simultaneous writes are all committed', async (t) => {
    const store = await openEmpty(t)
    const ids = Array.from({ length: 300 }, (_, n) => `client ${n}`)
    await Promise.all(ids.map((id) => store.write(insert('client', { ...sample.client, id }))))
    t.equal((await store.list('client')).length, 300)
  })

  t.test(
    'simultaneous decisions about all keys run one after the other, and each sees every key',
    async (t) => {
      const store = await openEmpty(t)
      await store.write(insert('key', sample.fullKey))
      const add = (n: number) =>
        store.transact('keyRing', '', (ring = []) =>
          ring.length > 1 ? accept('found') : accept('made', insert('key', { ...sample.key, id: `${n}` })),
        )
      const outcomes = await Promise.all(Array.from({ length: 20 }, (_, n) => add(n)))
      t.equal(outcomes.filter((outcome) => outcome === 'made').length, 1)
      t.strictSame(await store.find('keyRing', ''), await store.list('key'))
      t.equal((await store.list('key')).length, 2)
    },
  )

  t.test(
    'each of many simultaneous decisions about the credentials of a user sees the writes of the others',
    async (t) => {
      const store = await openEmpty(t)
      const { id: userId } = sample.user
      await store.write(insert('user', sample.user))
      const add = (n: number) =>
        store.transact(userCredentials, userId, (current) =>
          (current?.passkeys.length ?? 0) >= 3
            ? accept('full')
            : accept('added', insert(passkeyKind, { ...sample.passkey, id: `${n}`, userId })),
        )
      const outcomes = await Promise.all(Array.from({ length: 20 }, (_, n) => add(n)))
      t.equal(outcomes.filter((outcome) => outcome === 'added').length, 3)
      const session = { ...sample.session, userId }
      const secondFactor = { ...sample.secondFactor, userId }
      await store.write(insert('session', session), put(secondFactorKind, secondFactor))
      const found = await store.find(userCredentials, userId)
      const passkeys = await store.listOf(passkeyKind, userId)
      t.strictSame(found, { user: sample.user, passkeys, secondFactor, sessions: [session] })
      t.equal(await store.find(userCredentials, 'nobody'), undefined)
    },
  )

  t.test('a simultaneous rotation never undoes a revocation', async (t) => {
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

/** What is read of a client with a grant. */
function ofGrant({ origin, scope, resources, grantTypes, extra }: Client): GrantOfToken['client'] {
  return { origin, scope, resources, grantTypes, extra }
}

/** A grant without what only its code and its next tokens need. */
function ofAnyToken({
  redirectUriSent: _sent,
  codeChallenge: _challenge,
  nonce: _nonce,
  authTimeOwed: _owed,
  absoluteExpiresAt: _end,
  ...others
}: Grant): Omit<GrantOfToken, 'revokedTokens' | 'client'> {
  return others
}
