import t from 'tap'
import {
  type AtSessionEnd,
  atSessionEnd,
  atSessionEndKind,
  atSessionEndOf,
} from '../../src/domain/session-end.ts'

const at = 5000
const due: AtSessionEnd = {
  sid: 'sid-1',
  sessionId: 'session-1',
  userId: 'alice',
  clientId: 'client-1',
  expiresAt: 9000,
}
const done = { op: 'deleteRecord', kind: 'atSessionEnd', key: 'sid-1' }

t.test(
  'the end of a session inserts what its client gets, and revokes the grants that end with it',
  async (t) => {
    const inserts = {
      op: 'put',
      kind: 'record',
      record: {
        kind: 'logoutDelivery',
        id: 'sid-1',
        clientId: 'client-1',
        madeAt: at,
        body: JSON.stringify({ sid: 'sid-1', userId: 'alice', clientId: 'client-1', endedAt: at }),
      },
    }
    const revokes = {
      op: 'revokeGrantsOfSession',
      userId: 'alice',
      clientId: 'client-1',
      sid: 'sid-1',
      at,
      rule: 'oidc-bcl-2.7-refresh-tokens',
    }
    t.strictSame(atSessionEnd([], at), [])
    t.strictSame(atSessionEnd([due], at), [done])
    t.strictSame(atSessionEnd([{ ...due, inserts: 'logoutDelivery' }], at), [done, inserts])
    t.strictSame(atSessionEnd([{ ...due, revokes: revokes.rule }], at), [done, revokes])
    const both = { ...due, inserts: 'logoutDelivery', revokes: revokes.rule }
    const other = { ...due, sid: 'sid-2' }
    t.strictSame(atSessionEnd([both, other], at), [done, inserts, revokes, { ...done, key: 'sid-2' }])
  },
)

t.test('what is to be done is stored by its sid, for its user and its client', async (t) => {
  t.strictSame(atSessionEndKind.rowOf(due), {
    kind: 'atSessionEnd',
    id: 'sid-1',
    userId: 'alice',
    clientId: 'client-1',
    madeAt: undefined,
    expiresAt: 9000,
    body: JSON.stringify(due),
  })
})

t.test('a session that takes the place of another takes over what is to be done', async (t) => {
  const moved = { ...due, sessionId: 'session-2', expiresAt: 12_000 }
  const writes = atSessionEndOf({ id: 'session-2', expiresAt: 12_000 }, [due])
  t.strictSame(writes, [{ op: 'put', kind: 'record', record: atSessionEndKind.rowOf(moved) }])
})
