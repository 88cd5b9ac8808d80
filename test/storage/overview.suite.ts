import type { Test } from 'tap'
import { insert } from '../../src/domain/decision.ts'
import type { AuditEvent, Rejection } from '../../src/domain/model.ts'
import * as sample from './samples.ts'
import type { OpenEmpty } from './store.suite.ts'

/** Part of the suite: what the admin pages read. */
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
  })
}
