import t from 'tap'
import {
  consentKey,
  consentKind,
  describeGrant,
  endConnection,
  endConnections,
  endGrant,
  stateOfGrant,
} from '../../src/domain/connections.ts'
import { insert, remove, removeAll } from '../../src/domain/decision.ts'
import type { Grant } from '../../src/domain/model.ts'
import { approved } from '../helpers/samples.ts'

const now = 1000
const withdrawal = { userId: 'alice', by: 'user', at: now, from: '192.0.2.0/24' } as const

function grantOf(id: string, clientId: string, members: Partial<Grant> = {}): Grant {
  return { ...approved, id, clientId, userId: 'alice', approvedAt: 10, expiresAt: 2000, ...members }
}

t.test('a grant ends once, and only for its own user', async (t) => {
  const grant = grantOf('1', 'a')
  const rule = 'oidc-core-16.18-user-revocation'
  const event = { name: 'revocation', at: now, by: 'user', from: '192.0.2.0/24', clientId: 'a' } as const
  t.strictSame(endGrant(grant, withdrawal), {
    result: true,
    writes: [
      { op: 'revokeGrant', grantId: '1', at: now, rule },
      remove(consentKind, consentKey('alice', 'a')),
      insert('auditEvent', { ...event, userId: 'alice', facts: { grant: '1', rule } }),
    ],
  })
  const { userId: _, ...ownGrant } = grant
  const { userId: __, ...ofOperator } = withdrawal
  t.strictSame(endGrant(ownGrant, ofOperator).writes, [
    { op: 'revokeGrant', grantId: '1', at: now, rule },
    insert('auditEvent', { ...event, facts: { grant: '1', rule } }),
  ])
  for (const other of [
    undefined,
    grantOf('1', 'a', { userId: 'bob' }),
    grantOf('1', 'a', { revokedAt: 1 }),
    grantOf('1', 'a', { expiresAt: now }),
  ])
    t.strictSame(endGrant(other, withdrawal), { result: false, writes: [] })
})

t.test('revoking a client, and all clients, emits an event for each', async (t) => {
  const event = (clientId: string, rule: string) =>
    insert('auditEvent', {
      name: 'revocation',
      at: now,
      by: 'user',
      from: '192.0.2.0/24',
      userId: 'alice',
      clientId,
      facts: { rule },
    })
  const user = 'oidc-core-16.18-user-revocation'
  t.strictSame(endConnection({ clientId: 'a' }, withdrawal), [
    { op: 'revokeGrantsOf', userId: 'alice', clientId: 'a', at: now, rule: user },
    remove(consentKind, consentKey('alice', 'a')),
    event('a', user),
  ])
  const both = ['a', 'b'].map((clientId) => ({ clientId }))
  t.strictSame(endConnections(both, withdrawal, 'a-rule'), [
    { op: 'revokeGrantsOf', userId: 'alice', at: now, rule: 'a-rule' },
    removeAll(consentKind, 'alice'),
    event('a', 'a-rule'),
    event('b', 'a-rule'),
  ])
})

t.test('the state of a grant is that of its code, its tokens or its end', async (t) => {
  t.equal(stateOfGrant(grantOf('1', 'a', { expiresAt: now + 1 }), now), 'approved')
  t.equal(stateOfGrant(grantOf('1', 'a', { seq: 1 }), now), 'active')
  t.equal(stateOfGrant(grantOf('1', 'a', { expiresAt: now, seq: 1 }), now), 'expired')
  t.equal(stateOfGrant(grantOf('1', 'a', { expiresAt: now, revokedAt: 0 }), now), 'revoked')
})

t.test('a grant is described without its secret, and without what did not happen', async (t) => {
  const least = {
    grant: '1',
    state: 'approved',
    sub: 'alice',
    client_id: 'a',
    scope: 'openid courses:read courses:write',
    resource: approved.resource,
    redirect_uri: approved.redirectUri,
    approved_at: 10,
    authenticated_at: approved.authenticatedAt,
    expires_at: 2000,
  }
  t.strictSame(describeGrant(grantOf('1', 'a'), now), least)
  const { redirect_uri: _, ...without } = least
  t.strictSame(describeGrant(grantOf('1', 'a', { redirectUri: '' }), now), without)
  const used = { seq: 2, rotatedAt: 20, refreshExpiresAt: 1900, revokedAt: 30, revokedBy: 'a-rule' }
  t.strictSame(describeGrant({ ...grantOf('1', 'a', used), username: 'al' }, now), {
    ...least,
    state: 'revoked',
    username: 'al',
    refreshed_at: 20,
    refresh_token_expires_at: 1900,
    revoked_at: 30,
    revoked_by: 'a-rule',
  })
})
