import type { Test } from 'tap'
import { consentKey, consentKind } from '../../src/domain/connections.ts'
import {
  accept,
  type Condition,
  endSession,
  endSessionsOf,
  insert,
  insertUse,
  put,
  remove,
  removeAll,
  removeUser,
  update,
  type Write,
} from '../../src/domain/decision.ts'
import { membershipKind } from '../../src/domain/group.ts'
import { interactionKind } from '../../src/domain/interaction.ts'
import { logoutDeliveryKind } from '../../src/domain/logout-delivery.ts'
import type { Consent, Grant } from '../../src/domain/model.ts'
import { insertOnce, RecordExists } from '../../src/storage/store.ts'
import { deleteLinksOf, insertLink, linkKinds } from '../../src/users/rules/one-time-link.ts'
import { passkeyKind } from '../../src/users/rules/passkey.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { throttleKind } from '../../src/users/rules/throttle.ts'
import * as sample from './samples.ts'
import { grantOwners, insertGrant, type OpenEmpty } from './store.suite.ts'

/** Every client a user is connected with, the one used last first. */
function connectionsOf(
  grants: readonly Grant[],
  consents: readonly Consent[],
  revokedTokens: ReadonlySet<string>,
  now: number,
) {
  const byId = new Map(grants.map((grant) => [grant.id, grant]))
  const isRevoked = (grant: Grant | undefined): boolean =>
    grant === undefined ||
    grant.revokedAt !== undefined ||
    (grant.exchangedFrom !== undefined &&
      (revokedTokens.has(grant.exchangedFrom.tokenId) || isRevoked(byId.get(grant.exchangedFrom.grantId))))
  const alive = Map.groupBy(
    grants.filter((grant) => !isRevoked(grant) && now < grant.expiresAt).reverse(),
    ({ clientId }) => clientId,
  )
  const remembered = new Map(consents.map((consent) => [consent.clientId, consent]))
  const usedAt = (clientId: string) => [
    remembered.get(clientId)?.grantedAt ?? 0,
    ...(alive.get(clientId) ?? []).map(({ rotatedAt, approvedAt }) => rotatedAt ?? approvedAt),
  ]
  return [...new Set([...alive.keys(), ...remembered.keys()])]
    .map((clientId) => ({
      clientId,
      grants: alive.get(clientId) ?? [],
      consent: remembered.get(clientId),
    }))
    .sort((one, other) => Math.max(...usedAt(other.clientId)) - Math.max(...usedAt(one.clientId)))
}

/** Part of the suite: no client hides the records of others. */
export function turns(t: Test, openEmpty: OpenEmpty): void {
  t.test('records are listed in turn: the first of every client before the second of any', async (t) => {
    const store = await openEmpty(t)
    const due = (sid: string, clientId: string, endedAt: number) =>
      put(logoutDeliveryKind, { sid, userId: 'user', clientId, endedAt })
    const many = Array.from({ length: 1100 }, (_, at) =>
      due(`busy-${String(at).padStart(4, '0')}`, 'busy', 1),
    )
    await store.write(insert('client', { ...sample.client, id: 'busy' }))
    for (const id of ['one', 'two']) await store.write(insert('client', { ...sample.client, id }))
    await store.write(
      ...many,
      due('b', 'one', 20),
      due('a', 'two', 20),
      due('c', 'two', 10),
      due('d', 'two', 31),
    )
    const list = async (limit: number, ofClient: number) =>
      (await store.listInTurn(logoutDeliveryKind, { madeUntil: 30, limit, ofClient })).map(({ sid }) => sid)
    t.strictSame(await list(100, 2), ['busy-0000', 'c', 'b', 'busy-0001', 'a'])
    t.strictSame(await list(3, 2), ['busy-0000', 'c', 'b'])
    t.strictSame(await list(100, 1), ['busy-0000', 'c', 'b'])
  })
}

/** Part of the suite: records are read back as they were written. */
export function roundTrips(t: Test, openEmpty: OpenEmpty): void {
  t.test('every record is read back exactly as written, with and without its optional members', async (t) => {
    const store = await openEmpty(t)
    for (const record of [sample.client, sample.fullClient]) {
      await store.write(insert('client', record))
      t.strictSame(await store.find('client', record.id), record)
    }
    for (const record of [sample.user, sample.fullUser, sample.invitedAccount]) {
      await store.write(insert('user', record))
      t.strictSame(await store.find('user', record.id), record)
      t.strictSame(await store.find('userByLogin', record.username), record)
    }
    for (const record of [sample.session, sample.fullSession]) {
      await store.write(insert('session', record))
      t.strictSame(await store.find('session', record.id), record)
    }
    for (const record of [sample.interaction, sample.fullInteraction, sample.pageInteraction]) {
      await store.write(insert(interactionKind, record))
      t.strictSame(await store.find(interactionKind, record.id), record)
    }
    for (const record of [sample.passkey, sample.fullPasskey]) {
      await store.write(insert(passkeyKind, record))
      t.strictSame(await store.find(passkeyKind, record.id), record)
    }
    for (const record of [sample.secondFactor, sample.fullSecondFactor]) {
      await store.write(put(secondFactorKind, record))
      t.strictSame(await store.find(secondFactorKind, record.userId), record)
    }
    for (const record of [sample.link, sample.fullLink]) {
      await store.write(insertLink(record))
      t.strictSame(await store.find(linkKinds[record.purpose], record.id), record)
    }
    for (const record of [sample.consent, sample.fullConsent]) {
      await store.write(put(consentKind, record))
      t.strictSame(await store.find(consentKind, consentKey(record.userId, record.clientId)), record)
    }
    for (const record of [sample.grant, sample.fullGrant]) {
      await store.write({ op: 'insertGrant', grant: record })
      t.strictSame(await store.find('grant', record.id), record)
    }
    for (const record of [sample.key, sample.fullKey]) {
      await store.write(insert('key', record))
      t.strictSame(await store.find('key', record.id), record)
    }
    for (const record of [sample.rejection, sample.fullRejection]) {
      await store.write(insert('rejection', record))
      t.strictSame(await store.find('rejection', record.id), record)
    }
    await store.write(put(throttleKind, sample.throttle))
    t.strictSame(await store.find(throttleKind, sample.throttle.key), sample.throttle)
  })

  t.test('audit events are read back as written: the newest that match, oldest first', async (t) => {
    const store = await openEmpty(t)
    const { auditEvent, fullAuditEvent } = sample
    const other = { ...fullAuditEvent, userId: 'user_other', clientId: 'client_other', at: 1020 }
    for (const event of [auditEvent, fullAuditEvent, other]) await store.write(insert('auditEvent', event))
    const wanted = async (filter: object) => await store.audit({ since: 0, limit: 10, ...filter })
    t.strictSame(await wanted({}), [auditEvent, fullAuditEvent, other])
    t.strictSame(await wanted({ limit: 2 }), [fullAuditEvent, other])
    t.strictSame(await wanted({ since: 1020 }), [other])
    t.strictSame(await wanted({ since: 1021 }), [])
    t.strictSame(await wanted({ name: 'key-made' }), [auditEvent])
    t.strictSame(await wanted({ userId: 'user_other' }), [other])
    t.strictSame(await wanted({ clientId: sample.client.id, name: 'consent' }), [fullAuditEvent])
    t.strictSame(await wanted({ clientId: sample.client.id, userId: 'user_other' }), [])
  })

  t.test('of several inserts of one use the first succeeds, alone or at once', async (t) => {
    const store = await openEmpty(t)
    const use = { id: sample.digest(1), expiresAt: 2000 }
    await store.write(insertUse(use))
    await t.rejects(store.write(insertUse(use)), RecordExists)
    await store.write(insertUse({ ...use, expiresAt: 2001 }), insertUse({ ...use, id: sample.digest(2) }))
    const raced = { ...use, id: sample.digest(3) }
    const results = await Promise.all(Array.from({ length: 20 }, () => insertOnce(store, insertUse(raced))))
    t.equal(results.filter((isFirst) => isFirst).length, 1)
  })

  t.test('an audit event is written together with its change or not at all', async (t) => {
    const store = await openEmpty(t)
    const insertClient = insert('client', sample.client)
    const event: Write = insert('auditEvent', sample.auditEvent)
    await store.write(insertClient, event)
    await t.rejects(store.write(event, insertClient), RecordExists)
    t.strictSame(await store.audit({ since: 0, limit: 10 }), [sample.auditEvent])
  })

  t.test('a code challenge that is not a canonical SHA-256 is read back unchanged', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners)
    for (const [n, codeChallenge] of [`${'A'.repeat(42)}B`, '~'.repeat(43), 'x'.repeat(128)].entries()) {
      await store.write({
        op: 'insertGrant',
        grant: { ...sample.grant, id: sample.grantId(n), codeChallenge },
      })
      t.equal((await store.find('grant', sample.grantId(n)))?.codeChallenge, codeChallenge)
    }
  })

  t.test('an unknown key reads as undefined, whatever its form', async (t) => {
    const store = await openEmpty(t)
    for (const key of ['', 'nothing', sample.grantId(1), 'nul \0 nul', '€'.repeat(3000)]) {
      for (const kind of ['client', 'user', 'userByLogin', 'session', 'grant', 'key', 'rejection'] as const) {
        t.equal(await store.find(kind, key), undefined, JSON.stringify([kind, key.slice(0, 20)]))
      }
      for (const kind of [interactionKind, consentKind, throttleKind, passkeyKind, secondFactorKind]) {
        t.equal(await store.find(kind, key), undefined, JSON.stringify([kind.name, key.slice(0, 20)]))
      }
    }
  })

  t.test('lists are complete and oldest first', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners, insert('key', sample.key))
    await store.write(insert('client', sample.fullClient))
    await store.write(insert('user', sample.fullUser), insert('key', sample.fullKey))
    t.strictSame(await store.list('client'), [sample.fullClient, sample.client])
    t.strictSame(await store.list('user'), [sample.fullUser, sample.user])
    t.strictSame(await store.list('key'), [sample.fullKey, sample.key])
  })

  t.test('the records of a user are listed for that user alone, oldest first', async (t) => {
    const store = await openEmpty(t)
    const stranger = sample.fullUser.id
    const own = { id: sample.grantId(3), clientId: sample.client.id }
    await store.write(...grantOwners, insertGrant)
    for (const session of [sample.fullSession, sample.session]) await store.write(insert('session', session))
    for (const passkey of [sample.fullPasskey, sample.passkey])
      await store.write(insert(passkeyKind, passkey))
    for (const consent of [sample.fullConsent, sample.consent]) await store.write(put(consentKind, consent))
    await store.write({ op: 'insertGrant', grant: { ...sample.fullGrant, ...own } })
    await store.write({
      op: 'insertGrant',
      grant: { ...sample.grant, id: sample.grantId(4), clientId: 'gone' },
    })
    const { id } = sample.user
    t.strictSame(await store.listOf('session', id), [sample.session, sample.fullSession])
    t.strictSame(await store.listOf(passkeyKind, id), [sample.passkey, sample.fullPasskey])
    t.strictSame(await store.listOf(consentKind, id), [sample.consent, sample.fullConsent])
    t.strictSame(await store.listOf('grant', id), [sample.grant, { ...sample.fullGrant, ...own }])
    for (const kind of ['session', passkeyKind, consentKind, 'grant'] as const)
      t.strictSame(await store.listOf(kind, stranger), [])
  })

  t.test('connections are counted and paged as computed from all grants and consents', async (t) => {
    const store = await openEmpty(t)
    const { id: userId } = sample.user
    const clientIds = Array.from({ length: 9 }, (_, n) => `client-${n}`)
    await store.write(insert('user', sample.user))
    for (const id of clientIds) await store.write(insert('client', { ...sample.client, id }))
    const { revokedAt: _, revokedBy: __, exchangedFrom: ___, ...valid } = sample.fullGrant
    for (let n = 0; n < 60; n += 1) {
      const grant: Grant = {
        ...valid,
        userId,
        id: sample.grantId(n + 1),
        clientId: clientIds[n % 5] ?? '',
        approvedAt: 1000 + n,
        rotatedAt: 1000 + ((n * 7) % 60),
        refreshExpiresAt: 2000 + n,
        expiresAt: 2000 + n,
        ...(n % 6 === 0 && { revokedAt: 1500, revokedBy: 'test' }),
      }
      await store.write({ op: 'insertGrant', grant })
    }
    const revokedTokens = new Set<string>()
    const exchange = async (id: number, from: number, clientId: string, isRevoked = false) => {
      const subject = { grantId: sample.grantId(from), tokenId: sample.bytes(id, 16) }
      const members = { id: sample.grantId(id), clientId, userId, refreshExpiresAt: 2070, expiresAt: 2070 }
      const grant = { ...valid, ...members, exchangedFrom: { ...subject, clientId: 'client-0' } }
      await store.write({ op: 'insertGrant', grant })
      if (!isRevoked) return
      revokedTokens.add(subject.tokenId)
      await store.write({ op: 'revokeAccessToken', ...subject, expiresAt: 2070 })
    }
    // Of a valid grant, of a revoked one, of one that is not stored, and each once more; and of a revoked token.
    for (const [turn, from] of [54, 55, 99].entries()) {
      await exchange(101 + turn, from, 'client-7')
      await exchange(111 + turn, 101 + turn, turn === 0 ? 'client-0' : 'client-8')
    }
    await exchange(120, 54, 'client-8', true)
    for (const [n, clientId] of ['client-1', 'client-5', 'client-6'].entries())
      await store.write(put(consentKind, { ...sample.consent, userId, clientId, grantedAt: 3000 + n }))
    for (const now of [1999, 2030, 2057, 2100]) {
      const expected = connectionsOf(
        await store.listOf('grant', userId),
        await store.listOf(consentKind, userId),
        revokedTokens,
        now,
      )
      const summaries = expected.map(({ clientId, grants, consent }) => ({
        clientId,
        grants: grants.length,
        remembered: consent !== undefined,
      }))
      const { count, page } = await store.connections(userId, { now, limit: 3, offset: 0 })
      t.equal(count, expected.length)
      const next = await store.connections(userId, { now, limit: 9, offset: 3 })
      t.strictSame([...page, ...next.page], summaries)
      t.strictSame(await store.connections(userId, { now, limit: 9, offset: 9 }), { count: 0, page: [] })
      for (const { clientId, grants } of expected)
        t.strictSame(await store.grantsOf(userId, [clientId], { now, limit: 4 }), grants.slice(0, 4))
      const both = expected.slice(0, 2)
      t.strictSame(
        await store.grantsOf(userId, [...both.map(({ clientId }) => clientId), 'none'], { now, limit: 3 }),
        both.flatMap(({ grants }) => grants.slice(0, 3)).sort((one, other) => (one.id < other.id ? 1 : -1)),
        'the newest of each',
      )
      t.strictSame(await store.grantsOf(userId, [], { now, limit: 3 }), [])
    }
    t.strictSame(await store.connections('nobody', { now: 1, limit: 9, offset: 0 }), { count: 0, page: [] })
    t.strictSame(await store.grantsOf('nobody', ['client-1'], { now: 1, limit: 9 }), [])
  })

  t.test('a store reports whether it has users, and which of them a development server made', async (t) => {
    const store = await openEmpty(t)
    t.strictSame(await store.population(), { isEmpty: true, seeded: [] })
    await store.write(insert('user', sample.user))
    t.strictSame(await store.population(), { isEmpty: false, seeded: [] })
    const seeded = { ...sample.user, id: 'account-9', username: 'zoe', seeded: true }
    await store.write(insert('user', seeded), insert('user', sample.fullUser))
    t.strictSame(await store.population(), { isEmpty: false, seeded: ['grace', 'zoe'] })
  })

  t.test('a store reports whether a condition holds, outside of a transaction', async (t) => {
    const store = await openEmpty(t)
    const isThere: Condition['holds'] = function* (read) {
      return (yield* read.find('user', sample.user.id)) !== undefined
    }
    t.equal(await store.holds(isThere), false)
    await store.write(insert('user', sample.user))
    t.equal(await store.holds(isThere), true)
  })

  t.test('an open store responds to a ping', async (t) => {
    const store = await openEmpty(t)
    await t.resolves(store.ping())
  })
}

/** Part of the suite: updates. */
export function replacements(t: Test, openEmpty: OpenEmpty): void {
  t.test('an update replaces every member, and unsets absent ones', async (t) => {
    const store = await openEmpty(t)
    const client = { ...sample.client, id: sample.fullClient.id }
    const user = { ...sample.user, id: sample.fullUser.id }
    const interaction = { ...sample.interaction, id: sample.fullInteraction.id }
    const key = { ...sample.key, id: sample.fullKey.id }
    await store.write(
      insert('client', sample.fullClient),
      insert('user', sample.fullUser),
      insert(interactionKind, sample.fullInteraction),
      insert('key', sample.fullKey),
      update('client', client),
      update('user', user),
      update(interactionKind, interaction),
      update('key', key),
    )
    t.strictSame(await store.find('client', client.id), client)
    t.strictSame(await store.find('user', user.id), user)
    t.strictSame(await store.find(interactionKind, interaction.id), interaction)
    t.strictSame(await store.find('key', key.id), key)
  })

  t.test('writing a consent or a throttle again replaces it', async (t) => {
    const store = await openEmpty(t)
    const consent = { ...sample.fullConsent, allowed: [], grantedAt: 1500 }
    const throttle = { ...sample.throttle, failures: 9, expiresAt: 2500 }
    await store.write(put(consentKind, sample.fullConsent), put(consentKind, consent))
    await store.write(put(throttleKind, sample.throttle), put(throttleKind, throttle))
    t.strictSame(await store.find(consentKind, consentKey(consent.userId, consent.clientId)), consent)
    t.strictSame(await store.find(throttleKind, throttle.key), throttle)
  })

  t.test('a passkey is updated, a second factor replaced, and optional members are unset', async (t) => {
    const store = await openEmpty(t)
    const passkey = { ...sample.passkey, counter: 9, usedAt: 1500 }
    const secondFactor = { ...sample.secondFactor, userId: sample.fullSecondFactor.userId }
    await store.write(insert(passkeyKind, sample.passkey), update(passkeyKind, passkey))
    await store.write(put(secondFactorKind, sample.fullSecondFactor), put(secondFactorKind, secondFactor))
    t.strictSame(await store.find(passkeyKind, passkey.id), passkey)
    t.strictSame(await store.find(secondFactorKind, secondFactor.userId), secondFactor)
  })

  t.test('extending a session moves only its idle expiry', async (t) => {
    const store = await openEmpty(t)
    await store.write(insert('session', sample.session))
    await store.write({ op: 'extendSession', sessionId: sample.session.id, idleExpiresAt: 2500 })
    t.strictSame(await store.find('session', sample.session.id), { ...sample.session, idleExpiresAt: 2500 })
  })

  t.test('touching a client counts as a use even in the second of its registration', async (t) => {
    const store = await openEmpty(t)
    await store.write(insert('client', sample.client))
    await store.write({ op: 'touchClient', clientId: sample.client.id, at: sample.client.issuedAt })
    t.equal((await store.find('client', sample.client.id))?.usedAt, sample.client.issuedAt + 1)
    await store.write({ op: 'touchClient', clientId: sample.client.id, at: 5000 })
    t.strictSame(await store.find('client', sample.client.id), { ...sample.client, usedAt: 5000 })
  })

  t.test('that a client has used PKCE is written down once, and only where it matters', async (t) => {
    const store = await openEmpty(t)
    const { id } = sample.client
    const client = { ...sample.client, name: 'A "pkceAutoSince":1 name', pkceOptional: true }
    await store.write(insert('client', client), { op: 'learnPkce', clientId: id, at: 5000 })
    t.strictSame(await store.find('client', id), client)
    const auto = { ...client, pkceAutoSince: 4000 }
    await store.write(update('client', auto), { op: 'learnPkce', clientId: id, at: 5000 })
    const learned = { ...auto, pkceOptional: false, pkceLearnedAt: 5000 }
    t.strictSame(await store.find('client', id), learned)
    await store.write({ op: 'learnPkce', clientId: id, at: 6000 })
    t.strictSame(await store.find('client', id), learned)
  })
}

/** Part of the suite: unique keys. */
export function uniqueness(t: Test, openEmpty: OpenEmpty): void {
  t.test(
    'a second user with the same user name or email address is rejected with RecordExists',
    async (t) => {
      const store = await openEmpty(t)
      await store.write(insert('user', sample.fullUser))
      const sameName = { ...sample.user, username: sample.fullUser.username }
      const sameEmail = { ...sample.user, email: 'grace@example.org' }
      await t.rejects(store.write(insert('user', sameName)), RecordExists)
      await t.rejects(store.write(insert('user', sameEmail)), RecordExists)
      t.equal(await store.find('user', sample.user.id), undefined)
      await store.write(insert('user', sample.user))
      await t.rejects(store.write(update('user', sameEmail)), RecordExists)
      t.strictSame(await store.find('user', sample.user.id), sample.user)
    },
  )

  t.test('any number of users have no email address', async (t) => {
    const store = await openEmpty(t)
    await store.write(insert('user', sample.user))
    await t.resolves(store.write(insert('user', { ...sample.user, id: 'x', username: 'x' })))
  })

  t.test('a user is found by email address, unless that is the user name of another', async (t) => {
    const store = await openEmpty(t)
    await store.write(insert('user', sample.fullUser))
    t.strictSame(await store.find('userByLogin', 'grace@example.org'), sample.fullUser)
    const namesake = { ...sample.user, username: 'grace@example.org' }
    await store.write(insert('user', namesake))
    t.strictSame(await store.find('userByLogin', 'grace@example.org'), namesake)
  })

  t.test('a rejected write leaves no other write of its batch', async (t) => {
    const store = await openEmpty(t)
    await store.write(insert('client', sample.client))
    const writes: Write[] = [insert('user', sample.user), insert('client', sample.client)]
    await t.rejects(store.write(...writes), RecordExists)
    t.equal(await store.find('user', sample.user.id), undefined)
  })
}

/** Part of the suite: deletions and what they delete with them. */
export function removals(t: Test, openEmpty: OpenEmpty): void {
  t.test('deleting a client deletes its grants and consents', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners, insertGrant, put(consentKind, sample.consent))
    await store.write(put(consentKind, sample.fullConsent))
    await store.write(remove('client', sample.client.id))
    t.equal(await store.find('client', sample.client.id), undefined)
    t.equal(await store.find('grant', sample.grant.id), undefined)
    await store.transact('grant', sample.grant.id, (grant) => accept(t.equal(grant, undefined)))
    t.equal(await store.find(consentKind, consentKey(sample.user.id, sample.client.id)), undefined)
    t.ok(await store.find(consentKind, consentKey(sample.user.id, sample.fullClient.id)))
  })

  t.test('a new client or user gets no grant of a deleted one', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners, insertGrant)
    await store.write(remove('client', sample.client.id), removeUser(sample.user.id, 0))
    await store.write(
      { op: 'insertGrant', grant: { ...sample.grant, id: sample.grantId(3) } },
      insert('client', sample.client),
      insert('user', sample.user),
    )
    t.equal(await store.find('grant', sample.grant.id), undefined)
    t.equal(await store.find('grant', sample.grantId(3)), undefined)
    t.strictSame(await store.listOf('grant', sample.user.id), [])
  })

  t.test('deleting a user deletes their grants, sessions and consents', async (t) => {
    const store = await openEmpty(t)
    const other = { ...sample.fullSession, userId: sample.fullUser.id }
    await store.write(...grantOwners, insertGrant, put(consentKind, sample.consent))
    await store.write(insert('session', sample.session), insert('session', other))
    await store.write(
      insert(passkeyKind, sample.passkey),
      put(secondFactorKind, sample.secondFactor),
      insertLink(sample.fullLink),
    )
    await store.write(removeUser(sample.user.id, 0))
    t.equal(await store.find('user', sample.user.id), undefined)
    t.equal(await store.find(passkeyKind, sample.passkey.id), undefined)
    t.equal(await store.find(secondFactorKind, sample.user.id), undefined)
    t.equal(await store.find(linkKinds[sample.fullLink.purpose], sample.fullLink.id), undefined)
    t.equal(await store.find('grant', sample.grant.id), undefined)
    t.equal(await store.find(consentKind, consentKey(sample.user.id, sample.client.id)), undefined)
    t.equal(await store.find('session', sample.session.id), undefined)
    t.strictSame(await store.find('session', other.id), other)
  })

  t.test('a deletion deletes the record it names and no other', async (t) => {
    const store = await openEmpty(t)
    const second = { ...sample.throttle, key: 'second' }
    await store.write(insert('session', sample.session), put(throttleKind, sample.throttle))
    await store.write(insert('session', sample.fullSession), put(throttleKind, second))
    await store.write(insert(interactionKind, sample.interaction), insert('key', sample.key))
    await store.write(remove(interactionKind, sample.interaction.id))
    await store.write(remove('key', sample.key.id), remove(throttleKind, sample.throttle.key))
    await store.write(endSession(sample.session.id, 0))
    t.equal(await store.find(interactionKind, sample.interaction.id), undefined)
    t.equal(await store.find('key', sample.key.id), undefined)
    t.equal(await store.find(throttleKind, sample.throttle.key), undefined)
    t.equal(await store.find('session', sample.session.id), undefined)
    t.ok(await store.find(throttleKind, 'second'))
    t.ok(await store.find('session', sample.fullSession.id))
    await store.write(endSessionsOf(sample.user.id, 0))
    t.equal(await store.find('session', sample.fullSession.id), undefined)
  })

  t.test('passkeys, second factors, one-time links and consents are deleted one by one', async (t) => {
    const store = await openEmpty(t)
    const { id: userId } = sample.user
    for (const passkey of [sample.passkey, sample.fullPasskey])
      await store.write(insert(passkeyKind, passkey))
    for (const link of [sample.link, sample.fullLink]) await store.write(insertLink(link))
    for (const consent of [sample.consent, sample.fullConsent]) await store.write(put(consentKind, consent))
    await store.write(put(secondFactorKind, sample.secondFactor))
    await store.write(remove(passkeyKind, sample.passkey.id))
    await store.write(remove(linkKinds[sample.link.purpose], sample.link.id))
    await store.write(remove(consentKind, consentKey(userId, sample.consent.clientId)))
    t.strictSame(await store.listOf(passkeyKind, userId), [sample.fullPasskey])
    t.strictSame(await store.listOf(consentKind, userId), [sample.fullConsent])
    t.equal(await store.find(linkKinds[sample.link.purpose], sample.link.id), undefined)
    t.strictSame(await store.find(linkKinds[sample.fullLink.purpose], sample.fullLink.id), sample.fullLink)
    await store.write(...deleteLinksOf(userId), removeAll(consentKind, userId))
    await store.write(remove(secondFactorKind, userId))
    t.strictSame(await store.listOf(consentKind, userId), [])
    t.equal(await store.find(linkKinds[sample.fullLink.purpose], sample.fullLink.id), undefined)
    t.equal(await store.find(secondFactorKind, userId), undefined)
  })

  t.test('every one-time link for one purpose is deleted at once, for any user', async (t) => {
    const store = await openEmpty(t)
    for (const link of [sample.link, sample.fullLink]) await store.write(insertLink(link))
    await store.write(removeAll(linkKinds[sample.link.purpose]))
    t.equal(await store.find(linkKinds[sample.link.purpose], sample.link.id), undefined)
    t.strictSame(await store.find(linkKinds[sample.fullLink.purpose], sample.fullLink.id), sample.fullLink)
  })

  t.test('records are listed and deleted by what their keys begin with', async (t) => {
    const store = await openEmpty(t)
    const userId = sample.user.id
    const records = ['b', 'a', 'é', 'c'].map((groupId) => ({ groupId, userId, addedAt: 1 }))
    const others = ['u1', 'u3', 'u2'].map((id) => ({ groupId: 'c', userId: id, addedAt: 1 }))
    for (const record of [...records, ...others]) await store.write(put(membershipKind, record))
    const list = async (prefix: string, after?: string, limit = 10) => {
      const found = await store.listFrom(membershipKind, { prefix, after, limit })
      return found.map((one) => one.userId)
    }
    t.strictSame(await list('c '), [userId, 'u1', 'u2', 'u3'])
    t.strictSame(await list('c ', 'c u1', 2), ['u2', 'u3'])
    t.strictSame(await list('é '), [userId])
    t.strictSame(await list('c u1x'), [])
    await store.write({ op: 'deleteRecordsFrom', kind: membershipKind.name, prefix: 'c ' })
    t.strictSame(await list('c '), [])
    const left = await store.listOf(membershipKind, userId)
    t.strictSame(left.map(({ groupId }) => groupId).sort(), ['a', 'b', 'é'])
  })

  t.test('all sessions of a user but the one to keep end together', async (t) => {
    const store = await openEmpty(t)
    const other = { ...sample.session, id: sample.digest(20), userId: sample.fullUser.id }
    for (const session of [sample.session, sample.fullSession, other])
      await store.write(insert('session', session))
    await store.write(endSessionsOf(sample.user.id, 0, sample.session.id))
    t.strictSame(await store.listOf('session', sample.user.id), [sample.session])
    t.strictSame(await store.find('session', other.id), other)
  })
}
