import type { Test } from 'tap'
import { consentKind } from '../../src/domain/connections.ts'
import { insert, put, type Write } from '../../src/domain/decision.ts'
import type { AuditEvent, Grant, Rejection } from '../../src/domain/model.ts'
import { throttleKind } from '../../src/users/rules/throttle.ts'
import * as sample from './samples.ts'
import { grantOwners, type OpenEmpty } from './store.suite.ts'

/** Part of the suite: what the admin pages and the admin API read. */
export function overview(t: Test, openEmpty: OpenEmpty): void {
  const day = 86_400
  const event = (name: AuditEvent['name'], at: number, more: Partial<AuditEvent> = {}) =>
    insert('auditEvent', { name, at, by: 'user', facts: {}, ...more })

  t.test('rows are counted up to a limit', async (t) => {
    const store = await openEmpty(t)
    t.strictSame(await store.counts(10), { users: 0, clients: 0, groups: 0 })
    await store.write(
      insert('user', sample.user),
      insert('user', sample.fullUser),
      insert('client', sample.client),
    )
    t.strictSame(await store.counts(10), { users: 2, clients: 1, groups: 0 })
    t.strictSame(await store.counts(1), { users: 1, clients: 1, groups: 0 })
  })

  t.test('users are found by what their names begin with, each once, by pages of any size', async (t) => {
    const store = await openEmpty(t)
    const user = (username: string, email?: string) =>
      insert('user', { ...sample.user, id: `user_${username}`, username, ...(email && { email }) })
    // In the order of their bytes: no language sorts these so.
    const names = ['ali', 'ali-z', 'ali.b', 'ali2', 'alia', 'ali_', 'alié', 'ali\uffee', 'ali😀'].toSorted(
      (one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)),
    )
    await store.write(
      ...names.map((name) => user(name, `${name}@example.test`)),
      user('al'),
      user('alj'),
      user('bea', 'ali+bea@example.test'),
      // The user name of one is the address of another.
      user('cem@example.test', 'ali!cem@example.test'),
      user('ali!cem@example.test'),
      user('zed', 'zed@ali.test'),
    )
    const expected = [...names, 'ali!cem@example.test', 'bea', 'cem@example.test'].toSorted()
    const usersOf = (page: { users: readonly { username: string }[] }) =>
      page.users.map(({ username }) => username)
    for (const limit of [1, 2, 3, 5, 200]) {
      const all: string[] = []
      let after: string | undefined
      do {
        const found = await store.usersFrom({ prefix: 'ali', after, limit })
        t.ok(found.users.length <= limit + 1)
        all.push(...usersOf(found))
        after = found.next
      } while (after !== undefined)
      t.strictSame(all.toSorted(), expected, `pages of ${limit}`)
    }
    t.strictSame(usersOf(await store.usersFrom({ prefix: 'zed', limit: 9 })), ['zed'])
    t.strictSame(usersOf(await store.usersFrom({ prefix: 'nobody', limit: 9 })), [])
    const elsewhere = await store.usersFrom({ prefix: 'ali2', after: 'al', limit: 9 })
    t.strictSame(usersOf(elsewhere), ['ali2'], 'no other text to begin after shows others')
  })

  t.test('users are listed by whether they are locked', async (t) => {
    const store = await openEmpty(t)
    const user = (username: string, lockedAt?: number) =>
      insert('user', { ...sample.user, id: `user_${username}`, username, ...(lockedAt && { lockedAt }) })
    await store.write(user('one'), user('two', 5), user('three'), user('four', 6))
    const listed = async (only: 'locked' | 'unlocked', after?: number) =>
      (await store.page('user', { only, after, limit: 9 })).map(({ row }) => row.username)
    t.strictSame(await listed('locked'), ['two', 'four'])
    t.strictSame(await listed('unlocked'), ['one', 'three'])
    const [first] = await store.page('user', { only: 'locked', limit: 1 })
    t.strictSame(await listed('locked', first?.seq), ['four'])
  })

  t.test('sign-ins are counted by day', async (t) => {
    const store = await openEmpty(t)
    await store.write(
      event('sign-in', 3 * day),
      event('sign-in', 5 * day),
      event('sign-out', 5 * day + 1),
      event('sign-in', 6 * day - 1),
      event('sign-in', 6 * day),
    )
    t.strictSame(await store.signInsByDay(4 * day, 100), [
      { day: 5, count: 2 },
      { day: 6, count: 1 },
    ])
    t.strictSame(await store.signInsByDay(4 * day, 2), [
      { day: 5, count: 1 },
      { day: 6, count: 1 },
    ])
  })

  t.test('codes are counted by client, and those with a challenge', async (t) => {
    const store = await openEmpty(t)
    const without = sample.grant
    const { codeChallenge = '' } = sample.fullGrant
    const challenged = { ...without, codeChallenge }
    const device = { ...without, redirectUri: '' }
    const grants = [challenged, without, challenged, device].map((grant, at) => ({
      ...grant,
      id: sample.grantId(at + 1),
    }))
    await store.write(...grantOwners)
    await store.write(...grants.map((grant) => ({ op: 'insertGrant', grant }) as const))
    const { clientId } = sample.grant
    t.strictSame(await store.challenges(100), [{ clientId, codes: 3, challenges: 2 }])
    t.strictSame(await store.challenges(2), [{ clientId, codes: 1, challenges: 1 }], 'of the newest')
  })

  t.test('rejections are listed from the newest, by pages', async (t) => {
    const store = await openEmpty(t)
    const rejection = (id: string): Rejection => ({
      id,
      at: 1,
      method: 'GET',
      path: '/',
      status: 400,
      error: 'invalid_request',
      why: '',
      rule: '',
    })
    for (const id of ['a', 'b', 'c']) await store.write(insert('rejection', rejection(id)))
    const first = await store.rejections({ limit: 2 })
    t.strictSame(
      first.map(({ row }) => row),
      [rejection('c'), rejection('b')],
    )
    const second = await store.rejections({ limit: 2, before: first.at(-1)?.seq })
    t.strictSame(
      second.map(({ row }) => row.id),
      ['a'],
    )
  })

  t.test('the audit log is read from the newest, by pages and filters', async (t) => {
    const store = await openEmpty(t)
    t.strictSame(await store.auditPage({ limit: 2 }), { events: [] })
    await store.write(event('sign-in', 1, { userId: 'ann' }), event('sign-out', 2, { userId: 'ann' }))
    await store.write(event('sign-in', 3, { userId: 'ben', clientId: 'app' }))
    const first = await store.auditPage({ limit: 2 })
    t.strictSame(
      first.events.map(({ at }) => at),
      [3, 2],
    )
    const second = await store.auditPage({ limit: 2, before: first.next })
    t.strictSame([second.events.map(({ at }) => at), second.next], [[1], undefined])
    const timesOf = async (filter: object) =>
      (await store.auditPage({ limit: 9, ...filter })).events.map(({ at }) => at)
    t.strictSame(await timesOf({ userId: 'ann' }), [2, 1])
    t.strictSame(await timesOf({ userId: 'ann', name: 'sign-in' }), [1])
    t.strictSame(await timesOf({ name: 'sign-in' }), [3, 1])
    t.strictSame(await timesOf({ clientId: 'app' }), [3])
    t.strictSame(await timesOf({ since: 2 }), [3, 2])
    t.strictSame(await timesOf({ since: 2, userId: 'ann' }), [2])
    t.strictSame(await timesOf({ until: 2 }), [2, 1])
    t.strictSame(await timesOf({ since: 2, until: 2, userId: 'ann' }), [2])
  })

  t.test('the events of a user are read from the oldest, page by page', async (t) => {
    const store = await openEmpty(t)
    t.strictSame(await store.auditFrom({ userId: 'ann', limit: 2 }), { events: [] })
    for (const at of [1, 2, 3, 4, 5]) {
      await store.write(event('sign-in', at, { userId: 'ann' }), event('sign-in', at + 10, { userId: 'ben' }))
    }
    const times: number[][] = []
    let after: number | undefined
    do {
      const { events, next } = await store.auditFrom({ userId: 'ann', after, limit: 2 })
      times.push(events.map(({ at }) => at))
      after = next
    } while (after !== undefined)
    t.strictSame(times, [[1, 2], [3, 4], [5]])
    const all = await store.auditFrom({ userId: 'ann', limit: 9 })
    t.strictSame(all, { events: await store.audit({ since: 0, userId: 'ann', limit: 9 }) })
  })

  t.test('grants are listed by pages of any size: all, of a user, to a client', async (t) => {
    const store = await openEmpty(t)
    const [other, ben] = [
      { ...sample.client, id: 'client-2' },
      { ...sample.user, id: 'ben', username: 'ben', email: 'ben@example.test' },
    ]
    const { userId: _, ...own } = sample.grant
    const grants: readonly Grant[] = [
      sample.grant,
      { ...sample.grant, id: sample.grantId(2), userId: ben.id },
      { ...sample.grant, id: sample.grantId(3), clientId: other.id },
      { ...own, id: sample.grantId(4) },
    ]
    await store.write(...grantOwners, insert('client', other), insert('user', ben))
    await store.write(...grants.map((grant): Write => ({ op: 'insertGrant', grant })))
    const pagesOf = async (which: object, limit: number) => {
      const found: Grant[] = []
      let after: string | undefined
      do {
        const page = await store.grantsFrom({ ...which, after, limit })
        t.ok(page.grants.length <= limit)
        found.push(...page.grants)
        after = page.next
      } while (after !== undefined)
      return found
    }
    for (const limit of [1, 2, 3, 4, 9]) {
      t.strictSame(await pagesOf({}, limit), grants)
      t.strictSame(await pagesOf({ userId: sample.user.id }, limit), [grants[0], grants[2]])
      t.strictSame(await pagesOf({ clientId: sample.client.id }, limit), [grants[0], grants[1], grants[3]])
      t.strictSame(await pagesOf({ userId: ben.id, clientId: other.id }, limit), [])
    }
    for (const which of [{ userId: 'none' }, { clientId: 'none' }]) t.strictSame(await pagesOf(which, 2), [])
  })

  t.test('a page of the grants to a client looks at a part of all grants', async (t) => {
    const store = await openEmpty(t)
    const other = { ...sample.client, id: 'client-2' }
    await store.write(...grantOwners, insert('client', other))
    const grant = (n: number): Write => ({
      op: 'insertGrant',
      grant: { ...sample.grant, id: sample.grantId(n), ...(n === 2500 && { clientId: other.id }) },
    })
    for (let from = 1; from <= 2500; from += 100)
      await store.write(...Array.from({ length: 100 }, (_, n) => grant(from + n)))
    const first = await store.grantsFrom({ clientId: other.id, limit: 9 })
    t.strictSame(first, { grants: [], next: sample.grantId(2000) })
    const second = await store.grantsFrom({ clientId: other.id, limit: 9, after: first.next })
    t.strictSame([second.grants.map(({ id }) => id), second.next], [[sample.grantId(2500)], undefined])
  })

  t.test('sessions of all users, and some records of a client', async (t) => {
    const store = await openEmpty(t)
    const sessions = [1, 2, 3].map((n) => ({ ...sample.session, id: sample.digest(n), userId: `user ${n}` }))
    const consents = [1, 2, 3].map((n) => ({ ...sample.consent, userId: `user ${n}`, clientId: 'client-1' }))
    await store.write(
      ...sessions.map((session) => insert('session', session)),
      ...consents.map((consent) => put(consentKind, consent)),
      put(throttleKind, { key: 'another kind', failures: 1, expiresAt: 1 }),
    )
    const first = await store.sessionsFrom({ after: '', limit: 2 })
    const rest = await store.sessionsFrom({ after: first[1]?.id ?? '', limit: 2 })
    t.strictSame([first.length, rest.length], [2, 1])
    // The databases order texts differently.
    const ofUser = ({ userId }: { readonly userId: string }) => userId
    t.strictSame([...first, ...rest].map(ofUser).toSorted(), sessions.map(ofUser), 'each once')
    t.strictSame(
      [...first, ...rest].find((one) => ofUser(one) === 'user 1'),
      sessions[0],
    )
    t.equal((await store.someOfClient(consentKind, 'client-1', 2)).length, 2)
    const some = await store.someOfClient(consentKind, 'client-1', 9)
    t.strictSame(
      some.toSorted((one, other) => (one.userId < other.userId ? -1 : 1)),
      consents,
    )
    t.strictSame(await store.someOfClient(consentKind, 'client-2', 9), [])
    t.strictSame(await store.someOfClient(throttleKind, 'client-1', 9), [])
  })
}
