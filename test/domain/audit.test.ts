import t from 'tap'
import { auditEvent, auditGrant, describeEvent, keyEvents } from '../../src/domain/audit.ts'
import { type Decision, insert, update, type Write } from '../../src/domain/decision.ts'
import { OAuthError } from '../../src/domain/errors.ts'
import type { AuditEvent, StoredKey } from '../../src/domain/model.ts'
import { active } from '../helpers/samples.ts'

const at = 20_000
const context = { by: 'operator', at, from: 'root@host' } as const
const eventsOf = (writes: readonly Write[]) =>
  writes.flatMap((write): readonly AuditEvent[] =>
    write.op === 'insert' && write.kind === 'auditEvent' ? [write.record] : [],
  )

t.test('an event has what is known of its place, its user, its client and its actor', async (t) => {
  const facts = { userId: 'alice', clientId: 'client-1', method: 'pwd' }
  t.strictSame(auditEvent('sign-in', { ...context, facts: { acting: 'bob' } }, facts), {
    op: 'insert',
    kind: 'auditEvent',
    record: {
      name: 'sign-in',
      at,
      by: 'operator',
      from: 'root@host',
      userId: 'alice',
      clientId: 'client-1',
      facts: { method: 'pwd', acting: 'bob' },
    },
  })
  const least = { name: 'sign-in', at, by: 'server', facts: {} }
  t.strictSame(eventsOf([auditEvent('sign-in', { by: 'server', at })]), [least])
})

const grant = active(1)
const redeeming: Write = { op: 'redeemGrant', grantId: grant.id, at, expiresAt: at + 60 }
const revoking: Write = { op: 'revokeGrant', grantId: grant.id, at, rule: 'rfc6749-4.1.2-code-single-use' }
const contextOf = () => ({ at, from: '192.0.2.0/24' })

t.test('a redeemed code is an event of its client', async (t) => {
  const decision = auditGrant({ result: 'done', writes: [redeeming] }, grant, contextOf)
  t.match(decision, { result: 'done', writes: [redeeming, {}] })
  t.strictSame(eventsOf(decision.writes), [
    {
      name: 'grant',
      at,
      by: 'client',
      from: '192.0.2.0/24',
      userId: 'alice',
      clientId: 'client-1',
      facts: { grant: grant.id, scope: 'openid courses:read courses:write' },
    },
  ])
})

t.test('a revocation names its rule, and the server revokes after a rejection', async (t) => {
  const one: Write = { op: 'revokeAccessToken', grantId: grant.id, tokenId: 'token', expiresAt: at }
  const asked = eventsOf(auditGrant({ result: undefined, writes: [revoking, one] }, grant, contextOf).writes)
  t.match(asked, [
    { name: 'revocation', by: 'client', facts: { rule: revoking.rule } },
    { name: 'revocation', by: 'client', facts: { rule: 'rfc7009-2-access-revocation' } },
  ])
  const rejection = new OAuthError('invalid_grant', 'used twice', { rule: revoking.rule })
  const replayed: Decision<never> = { rejection, writes: [revoking] }
  t.match(eventsOf(auditGrant(replayed, grant, contextOf).writes), [{ name: 'revocation', by: 'server' }])
})

t.test('a rotation is no event, and neither is anything of an unknown grant', async (t) => {
  const times = { fromSeq: 1, at, refreshExpiresAt: at + 60, expiresAt: at + 60 }
  const rotating: Write = { op: 'rotateGrant', grantId: grant.id, ...times }
  const unused = () => t.fail('nothing is to be described')
  const rotation = { result: 1, writes: [rotating] }
  t.equal(auditGrant(rotation, grant, unused as never), rotation)
  const unknown = { result: 1, writes: [redeeming] }
  t.equal(auditGrant(unknown, undefined, unused as never), unknown)
  const { userId: _, ...own } = grant
  const [event] = eventsOf(auditGrant(unknown, own, contextOf).writes)
  t.notOk(event === undefined || 'userId' in event, 'a grant of a client alone has no user')
})

const key: StoredKey = {
  id: 'k1',
  kind: 'signing',
  algorithm: 'ES256',
  sealedPrivate: 'sealed',
  createdAt: 1,
  activeAt: 10_000,
}
const other: StoredKey = { ...key, id: 'k2' }
const events = (before: readonly StoredKey[], ...writes: readonly Write[]) =>
  eventsOf(keyEvents(before, writes, context)).map(({ name, facts }) => [
    name,
    facts['key'],
    facts['retiredAt'],
  ])

t.test('a key that is made, gets an end, has it moved or has reached it is an event', async (t) => {
  t.strictSame(events([], insert('key', key)), [['key-made', 'k1', undefined]])
  t.match(eventsOf(keyEvents([], [insert('key', key)], context)), [
    { by: 'operator', from: 'root@host', facts: { algorithm: 'ES256', activeAt: 10_000 } },
  ])
  const ending = { ...key, retiredAt: at + 5 }
  // The key before it in the ring has an end already.
  const before = [{ ...other, retiredAt: 1 }, key]
  t.strictSame(events(before, update('key', ending)), [['key-rotated', 'k1', at + 5]])
  t.strictSame(events([other, ending], update('key', { ...ending, retiredAt: at + 6 })), [
    ['key-changed', 'k1', at + 6],
  ])
  t.strictSame(events([ending], update('key', key)), [['key-changed', 'k1', undefined]])
  t.strictSame(events([key], update('key', { ...key, activeAt: 5 })), [['key-changed', 'k1', undefined]])
  t.strictSame(events([key], update('key', { ...key, retiredAt: at })), [['key-retired', 'k1', at]])
})

t.test('the deletion of a key is its retirement, unless it is retired already', async (t) => {
  const deleting: Write = { op: 'delete', kind: 'key', key: 'k1' }
  t.strictSame(events([other, key], deleting), [['key-retired', 'k1', at]])
  t.strictSame(events([{ ...key, retiredAt: at - 1 }], deleting), [])
  t.strictSame(events([other], deleting), [])
  t.strictSame(events([key], { op: 'delete', kind: 'client', key: 'k1' }, redeeming), [])
})

t.test('an operator reads an event by the names of the wire', async (t) => {
  const event: AuditEvent = { name: 'sign-in', at, by: 'user', facts: { method: 'pwd' } }
  t.strictSame(describeEvent(event), { at, event: 'sign-in', by: 'user', facts: { method: 'pwd' } })
  t.strictSame(describeEvent({ ...event, from: '192.0.2.0/24', userId: 'alice', clientId: 'client-1' }), {
    at,
    event: 'sign-in',
    by: 'user',
    from: '192.0.2.0/24',
    sub: 'alice',
    client_id: 'client-1',
    facts: { method: 'pwd' },
  })
})
