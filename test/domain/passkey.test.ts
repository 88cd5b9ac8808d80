import t from 'tap'
import { auditEvent } from '../../src/domain/audit.ts'
import { insert, update } from '../../src/domain/decision.ts'
import type { Passkey, UserCredentials } from '../../src/domain/model.ts'
import { addPasskey, mostPasskeys, passkeyKind, usePasskey } from '../../src/users/rules/passkey.ts'
import { createUser } from '../../src/users/rules/user.ts'
import { session } from '../helpers/samples.ts'

const passkey: Passkey = {
  id: 'id',
  userId: 'alice',
  publicKey: 'key',
  counter: 5,
  transports: [],
  name: 'Laptop',
  backedUp: false,
  createdAt: 1,
  usedAt: 1,
}
const shown = (counter: number) => ({ counter, backedUp: true, from: '192.0.2.7' })

t.test('a passkey whose counter increases, or that has none, is accepted', async (t) => {
  for (const [before, now] of [
    [5, 6],
    [0, 1],
    [0, 0],
    [1, 2],
  ] as const) {
    const decision = usePasskey({ ...passkey, counter: before }, shown(now), 9)
    t.match(decision, { result: 'used' })
    const used = { ...passkey, counter: now, backedUp: true, usedAt: 9 }
    t.strictSame(decision.writes, [update(passkeyKind, used)])
  }
})

t.test('a counter that does not increase is reported as a copy, and nothing else changes', async (t) => {
  for (const [before, counter] of [
    [5, 5],
    [5, 4],
    [5, 0],
    [1, 1],
    [1, 0],
  ] as const) {
    t.strictSame(usePasskey({ ...passkey, counter: before }, shown(counter), 9), {
      result: 'copied',
      writes: [
        auditEvent(
          'passkey-copied',
          { by: 'user', at: 9, from: '192.0.2.7' },
          { userId: 'alice', name: 'Laptop' },
        ),
      ],
    })
  }
})

t.test('a passkey that was removed in between is rejected', async (t) => {
  t.strictSame(usePasskey(undefined, shown(6), 9), { result: 'gone', writes: [] })
})

const owner: UserCredentials = {
  user: createUser({ username: 'alice' }, 'alice', 1),
  passkeys: [],
  sessions: [{ ...session, id: 'another' }, session],
}
const context = { by: 'user', at: 9, from: '192.0.2.7' } as const
const passkeys = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ ...passkey, id: `id ${index}` }))

t.test('a passkey is added together with its event, up to twenty of one user', async (t) => {
  t.equal(mostPasskeys, 20)
  for (const count of [0, 19])
    t.strictSame(addPasskey({ ...owner, passkeys: passkeys(count) }, passkey, session.id, context), {
      result: 'added',
      writes: [
        insert(passkeyKind, passkey),
        auditEvent('passkey-added', context, { userId: 'alice', name: 'Laptop' }),
      ],
    })
  t.strictSame(addPasskey({ ...owner, passkeys: passkeys(20) }, passkey, session.id, context), {
    result: 'full',
    writes: [],
  })
})

t.test('no passkey is added for a user who is gone, locked or signed out', async (t) => {
  const gone = { result: 'gone', writes: [] }
  const locked = { ...owner, user: { ...owner.user, lockedAt: 5 } }
  const signedOut = { ...owner, sessions: [{ ...session, id: 'another' }] }
  for (const current of [undefined, locked, signedOut, { ...owner, sessions: [] }])
    t.strictSame(addPasskey(current, passkey, session.id, context), gone)
})

t.test(
  'a passkey is stored by its credential id, with its user, in the order of their creation',
  async (t) => {
    t.match(passkeyKind.rowOf({ ...passkey, createdAt: 3 }), {
      kind: 'passkey',
      id: 'id',
      userId: 'alice',
      madeAt: 3,
    })
  },
)
