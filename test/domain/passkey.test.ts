import t from 'tap'
import { update } from '../../src/domain/decision.ts'
import type { Passkey } from '../../src/domain/model.ts'
import { passkeyKind, usePasskey } from '../../src/users/rules/passkey.ts'

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
  ] as const) {
    const decision = usePasskey({ ...passkey, counter: before }, shown(now), 9)
    t.match(decision, { result: 'used' })
    const used = { ...passkey, counter: now, backedUp: true, usedAt: 9 }
    t.strictSame(decision.writes, [update(passkeyKind, used)])
  }
})

t.test('a counter that does not increase is reported as a copy, and nothing else changes', async (t) => {
  for (const counter of [5, 4, 0]) {
    const { writes, ...decision } = usePasskey(passkey, shown(counter), 9)
    t.strictSame(decision, { result: 'copied' })
    t.match(writes, [{ kind: 'auditEvent', record: { name: 'passkey-copied', userId: 'alice', at: 9 } }])
    t.equal(writes.length, 1)
  }
})

t.test('a passkey that was removed in between is rejected', async (t) => {
  t.strictSame(usePasskey(undefined, shown(6), 9), { result: 'gone', writes: [] })
})
