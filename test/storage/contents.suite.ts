import type { Test } from 'tap'
import { insert, remove, removeUser } from '../../src/domain/decision.ts'
import * as sample from './samples.ts'
import type { OpenEmpty } from './store.suite.ts'
import { grantOwners, insertGrant } from './store.suite.ts'

/** Reads and replaces everything in a store. */
export function contents(t: Test, openEmpty: OpenEmpty): void {
  t.test('replacing the contents restores what was read, and removes what was written since', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners, insertGrant, insert('key', sample.fullKey))
    await store.write(insert('auditEvent', sample.auditEvent))
    const before = await store.contents()
    const audited = await store.audit({ since: 0, limit: 10 })
    await store.write(removeUser(sample.user.id, 0))
    await store.write(insert('client', { ...sample.client, id: 'client_since' }))
    t.equal(await store.find('grant', sample.grant.id), undefined)
    await store.replace(before)
    t.strictSame(await store.contents(), before)
    t.strictSame(await store.find('grant', sample.grant.id), sample.grant)
    t.strictSame(await store.find('user', sample.user.id), sample.user)
    t.strictSame(await store.list('key'), [sample.fullKey])
    t.equal(await store.find('client', 'client_since'), undefined)
    await store.write(insert('auditEvent', sample.auditEvent))
    t.equal((await store.audit({ since: 0, limit: 10 })).length, audited.length + 1, 'numbers go on')
  })

  t.test('replacing the contents gives no grant of a deleted client to a new one', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners, insertGrant, remove('client', sample.client.id))
    await store.replace(await store.contents())
    await store.write(insert('client', { ...sample.client, id: 'client_since' }))
    t.equal(await store.find('grant', sample.grant.id), undefined)
    t.strictSame(await store.listOf('grant', sample.user.id), [])
  })

  t.test('contents that cannot be restored leave the store unchanged', async (t) => {
    const store = await openEmpty(t)
    await store.write(...grantOwners)
    const before = await store.contents()
    const twice = (before['clients'] ?? []).flatMap((row) => [row, row])
    await t.rejects(store.replace({ ...before, users: [], clients: twice }))
    t.strictSame(await store.contents(), before)
  })

  t.test('replacing everything with empty contents empties the store', async (t) => {
    const [store, empty] = [await openEmpty(t), {}]
    await store.write(...grantOwners)
    await store.replace(empty)
    t.strictSame(await store.list('client'), [])
    t.strictSame(await store.list('user'), [])
  })
}
