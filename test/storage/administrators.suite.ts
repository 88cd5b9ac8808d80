import type { Test } from 'tap'
import { accept, type Decision, insert, put, remove, removeUser } from '../../src/domain/decision.ts'
import { changeGroup, createGroup, deleteGroup, type Group } from '../../src/domain/group.ts'
import type { User } from '../../src/domain/model.ts'
import type { Store } from '../../src/storage/store.ts'
import { systemRandom } from '../../src/system/system.ts'
import { addAdministrator, keepAdministrator, lastAdministrator } from '../../src/users/administrators.ts'
import { addToGroup, changeGroups, groupsOf, listGroups, removeFromGroup } from '../../src/users/groups.ts'
import { passkeyKind } from '../../src/users/rules/passkey.ts'
import { createUser, lockUser } from '../../src/users/rules/user.ts'
import * as sample from './samples.ts'
import type { OpenEmpty } from './store.suite.ts'

const context = { by: 'operator', at: 100 } as const
const isLast = { code: 'conflict', status: 409, detail: { rule: lastAdministrator } }
const keep = <T>(decision: Decision<T>) => keepAdministrator(decision, 'Admins', 200)

function user(username: string, passwordHash?: string): User {
  return createUser({ username, ...(passwordHash && { passwordHash }) }, systemRandom(16), 100)
}

function lock(store: Store, { id }: User) {
  return store.transact('user', id, (user) => keep(lockUser(user as User, { by: 'operator', at: 200 })))
}

function drop(store: Store, { id }: User) {
  return store.transact('user', id, () => keep(accept(undefined, removeUser(id, 200))))
}

function leave(store: Store, group: Group, { id }: User) {
  return removeFromGroup(store, group, id, context, keep)
}

/** Part of the suite: an administrator is left, whatever ends another one. */
export function administrators(t: Test, openEmpty: OpenEmpty): void {
  async function open(t: Test, ...users: readonly User[]) {
    const store = await openEmpty(t)
    for (const user of users)
      await addAdministrator(store, 'Admins', user.id, systemRandom(16), context, insert('user', user))
    const [group] = await listGroups(store)
    return { store, group: group as Group }
  }

  t.test('the first administrator makes the group, the next one joins it', async (t) => {
    const [ada, zoe] = [user('ada', 'hash'), user('zoe', 'hash')]
    const { store, group } = await open(t, ada, zoe)
    t.match(await listGroups(store), [{ name: 'Admins' }])
    for (const { id } of [ada, zoe]) {
      t.strictSame(await groupsOf(store, id), [group])
      t.match(await store.find('user', id), { id })
    }
  })

  t.test('the last administrator stays', async (t) => {
    const [ada, zoe, max] = [user('ada', 'hash'), user('zoe', 'hash'), user('max', 'hash')]
    const { store, group } = await open(t, ada, zoe)
    await store.write(insert('user', max))
    await lock(store, max)
    await lock(store, zoe)
    await drop(store, max)
    await t.rejects(lock(store, ada), isLast)
    await t.rejects(drop(store, ada), isLast)
    await t.rejects(leave(store, group, ada), isLast)
    const change = (decide: (groups: readonly Group[]) => Decision<Group>) =>
      changeGroups(store, (groups) => keep(decide(groups)))
    await t.rejects(
      change((groups) => deleteGroup(groups, group, context)),
      isLast,
    )
    await t.rejects(
      change((groups) => changeGroup(groups, group, { name: 'staff' }, context)),
      isLast,
    )
    t.match(await store.find('user', ada.id), ada)
    t.strictSame(await groupsOf(store, ada.id), [group])
    await change((groups) => changeGroup(groups, group, { name: 'ADMINS' }, context))
  })

  t.test('a member of a group below counts, until that has another parent', async (t) => {
    const [ada, zoe] = [user('ada', 'hash'), user('zoe', 'hash')]
    const { store, group } = await open(t, ada)
    const add = (name: string, parentId: string) =>
      changeGroups(store, (all) => createGroup(all, { name, parentId }, systemRandom(16), context))
    const below = await add('on call', group.id)
    const lowest = await add('tonight', below.id)
    await store.write(insert('user', zoe))
    await addToGroup(store, lowest, zoe.id, context)
    await leave(store, group, ada)
    const alone = changeGroups(store, (all) => keep(changeGroup(all, below, { parentId: '' }, context)))
    await t.rejects(alone, isLast)
    await t.rejects(drop(store, zoe), isLast)
  })

  t.test('a user who cannot sign in does not count', async (t) => {
    const [ada, invited] = [user('ada', 'hash'), user('invited')]
    const { store } = await open(t, ada, invited)
    await t.rejects(lock(store, ada), isLast)
    await store.write(put(passkeyKind, { ...sample.passkey, userId: invited.id }))
    await drop(store, ada)
    await store.write(remove(passkeyKind, sample.passkey.id))
    t.equal(await drop(store, invited), undefined, 'nothing is lost with one who cannot administer')
  })

  t.test('of a full page of members who cannot sign in the next page is read', async (t) => {
    const { store } = await open(t)
    const ada = user('ada', 'hash')
    const others = Array.from({ length: 60 }, (_, each) => user(`u${each}`))
    for (const user of [ada, ...others])
      await addAdministrator(store, 'Admins', user.id, systemRandom(16), context, insert('user', user))
    await t.rejects(drop(store, ada), isLast)
    const zoe = { ...user('zoe', 'hash'), id: 'user_~~~~~~~~~~~~~~~~~~~~~~' }
    await addAdministrator(store, 'Admins', zoe.id, systemRandom(16), context, insert('user', zoe))
    t.equal(await drop(store, ada), undefined, 'the last in the order of the list')
  })

  const ends = { lock, delete: drop, remove: undefined }
  for (const [name, end] of Object.entries(ends)) {
    t.test(`of two who ${name} each other at the same time, one stays`, async (t) => {
      const [ada, zoe] = [user('ada', 'hash'), user('zoe', 'hash')]
      const { store, group } = await open(t, ada, zoe)
      const both = [ada, zoe].map((user) => end?.(store, user) ?? leave(store, group, user))
      const results = await Promise.allSettled(both)
      t.strictSame(results.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
      const [failed] = results.filter((result) => result.status === 'rejected')
      t.match(failed?.reason, isLast)
    })
  }

  t.test('without an administrator everything is possible, and so it is if none is asked for', async (t) => {
    const ada = user('ada', 'hash')
    const { store, group } = await open(t, ada)
    await removeFromGroup(store, group, ada.id, context, (one) => keepAdministrator(one, undefined, 200))
    t.strictSame(await groupsOf(store, ada.id), [])
    await lock(store, ada)
    await drop(store, ada)
    t.equal(await store.find('user', ada.id), undefined)
  })
}
