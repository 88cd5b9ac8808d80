import t from 'tap'
import { auditEvent } from '../../src/domain/audit.ts'
import { put, remove } from '../../src/domain/decision.ts'
import {
  describeDelivery,
  type FinishedDelivery,
  finishedDeliveryKind,
  type LogoutDelivery,
  logoutDeliveryKind,
  unreachableClients,
} from '../../src/domain/logout-delivery.ts'
import { leaseDelivery, settleDelivery, type Try } from '../../src/specs/oidc-backchannel-logout/rules.ts'

const delivery: LogoutDelivery = { sid: 'sid-1', userId: 'user', clientId: 'client', endedAt: 100 }
const keep = 1000
const failed: Try = { result: 'failed', error: 'no response in 5 s' }

/** The delivery as the writes of a decision store it. */
function stored(decision: ReturnType<typeof leaseDelivery> | ReturnType<typeof settleDelivery>) {
  const bodies = decision.writes.flatMap((write) =>
    write.op === 'put' && write.record.kind === logoutDeliveryKind.name ? write.record.body : [],
  )
  return bodies[0] === undefined ? undefined : logoutDeliveryKind.parse(bodies[0])
}

function lease(one: LogoutDelivery | undefined, now: number): LogoutDelivery | undefined {
  const decision = leaseDelivery(one, now)
  return 'result' in decision ? decision.result : undefined
}

t.test('one node leases a delivery that is due, until the lease ends', async (t) => {
  t.equal(lease(undefined, 100), undefined, 'another node has finished it')
  t.equal(lease(delivery, 99), undefined, 'it is not due')
  const leased = lease(delivery, 100)
  t.strictSame(leased, { ...delivery, leasedUntil: 115 })
  t.strictSame(stored(leaseDelivery(delivery, 100)), leased)
  t.equal(lease(leased, 114), undefined, 'another node has it')
  t.strictSame(lease(leased, 115), { ...delivery, leasedUntil: 130 }, 'that node has stopped')
  t.equal(lease({ ...delivery, dueAt: 200 }, 199), undefined)
})

t.test('a delivery is tried three times, with growing pauses', async (t) => {
  let current = lease(delivery, 100)
  for (const [tries, dueAt] of [
    [1, 111],
    [2, 172],
  ] as const) {
    if (current === undefined) throw new Error('it is due')
    const at = (current.leasedUntil ?? 0) - 14
    const decision = settleDelivery(current, current, failed, keep, at)
    t.match(decision, { result: 'retried' })
    const next: LogoutDelivery | undefined = stored(decision)
    t.strictSame(next, { ...delivery, tries, error: 'no response in 5 s', dueAt })
    t.equal(lease(next, dueAt - 1), undefined)
    current = lease(next, dueAt)
  }
  if (current === undefined) throw new Error('it is due')
  const last = settleDelivery(current, current, failed, keep, 173)
  const [error, tries] = ['no response in 5 s', 3]
  const finished = { ...delivery, outcome: 'failed', tries, error, finishedAt: 173, expiresAt: 1173 } as const
  t.strictSame(last, {
    result: 'failed',
    writes: [
      remove(logoutDeliveryKind, 'sid-1'),
      put(finishedDeliveryKind, finished),
      auditEvent(
        'client-logout-failed',
        { by: 'server', at: 173 },
        { clientId: 'client', user: 'user', sid: 'sid-1', tries, error },
      ),
    ],
  })
})

t.test('a delivery ends with its first success, or when the client has no URI any more', async (t) => {
  const leased = { ...delivery, leasedUntil: 115 }
  const delivered = settleDelivery(leased, leased, { result: 'delivered' }, keep, 101)
  const finished = { ...delivery, outcome: 'delivered', tries: 1, finishedAt: 101, expiresAt: 1101 } as const
  t.strictSame(delivered, {
    result: 'delivered',
    writes: [
      remove(logoutDeliveryKind, 'sid-1'),
      put(finishedDeliveryKind, finished),
      auditEvent(
        'client-logout-delivered',
        { by: 'server', at: 101 },
        { clientId: 'client', user: 'user', sid: 'sid-1', tries: 1 },
      ),
    ],
  })
  const { userId } = finishedDeliveryKind.rowOf(finished)
  t.equal(userId, undefined, 'it outlives the user')
  t.strictSame(settleDelivery(leased, leased, { result: 'dropped' }, keep, 101), {
    result: 'dropped',
    writes: [remove(logoutDeliveryKind, 'sid-1')],
  })
})

t.test('a try that was not sent does not count', async (t) => {
  const leased = { ...delivery, tries: 2, leasedUntil: 115 }
  const decision = settleDelivery(leased, leased, { result: 'postponed' }, keep, 101)
  t.match(decision, { result: 'postponed' })
  t.strictSame(stored(decision), { ...delivery, tries: 2, dueAt: 116 })
})

t.test('a node that lost its lease changes nothing', async (t) => {
  const leased = { ...delivery, leasedUntil: 115 }
  for (const current of [undefined, { ...delivery, leasedUntil: 130 }, delivery]) {
    const decision = settleDelivery(current, leased, { result: 'delivered' }, keep, 120)
    t.strictSame(decision, { result: undefined, writes: [] })
  }
})

t.test('a client is unreachable if it took nothing and failed to take something', async (t) => {
  const finished = (clientId: string, outcome: FinishedDelivery['outcome']): FinishedDelivery => ({
    ...{ ...delivery, clientId, outcome },
    ...{ tries: 3, finishedAt: 200, expiresAt: 300 },
  })
  const all = [finished('a', 'failed'), finished('b', 'failed'), finished('b', 'delivered')]
  t.strictSame(unreachableClients([...all, finished('c', 'delivered')]), ['a'])
})

t.test('a delivery is described: pending until it has finished', async (t) => {
  const pending = { state: 'pending', client_id: 'client', sub: 'user', sid: 'sid-1', ended_at: 100 }
  t.strictSame(describeDelivery(delivery), { ...pending, tries: 0, due_at: 100 })
  const tried = { ...delivery, tries: 1, dueAt: 111, error: 'no response in 5 s' }
  t.strictSame(describeDelivery(tried), { ...pending, tries: 1, due_at: 111, error: 'no response in 5 s' })
  const finished = { ...delivery, outcome: 'failed', tries: 3, finishedAt: 200, expiresAt: 300 } as const
  t.strictSame(describeDelivery(finished), { ...pending, state: 'failed', tries: 3, finished_at: 200 })
  const kinds = [logoutDeliveryKind, finishedDeliveryKind].map(({ name }) => name)
  t.strictSame(kinds, ['logoutDelivery', 'finishedLogoutDelivery'], 'they are stored')
})
