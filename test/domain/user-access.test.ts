import t from 'tap'
import {
  endSessions,
  endSessionsAndConnections,
  everyConnection,
  removeCodes,
  removePasskeys,
} from '../../src/users/rules/operator-acts.ts'
import { passkeyKind } from '../../src/users/rules/passkey.ts'
import { secondFactorKind } from '../../src/users/rules/second-factor.ts'
import { createUser } from '../../src/users/rules/user.ts'
import * as sample from '../storage/samples.ts'

const at = 20_000
const context = { by: 'operator', at, from: 'root@host' } as const
const user = createUser({ username: 'ada' }, Buffer.alloc(16, 1), 100)
const userId = user.id
const ending = { op: 'endSessionsOf', userId, at }
const event = (name: string, facts: object, more = {}) => ({
  op: 'insert',
  kind: 'auditEvent',
  record: { name, at, by: 'operator', from: 'root@host', userId, ...more, facts },
})

t.test('the codes of a user go with every session, which may have begun with one', async (t) => {
  t.strictSame(removeCodes(user, context), {
    result: undefined,
    writes: [
      { op: 'deleteRecord', kind: secondFactorKind.name, key: userId },
      ending,
      event('second-factor-removed', {}),
    ],
  })
})

t.test('the passkeys of a user go with every session, and are counted', async (t) => {
  const passkeys = [sample.passkey, { ...sample.passkey, id: 'another' }]
  t.strictSame(removePasskeys({ user, passkeys }, context), {
    result: 2,
    writes: [
      { op: 'deleteRecords', kind: passkeyKind.name, userId },
      ending,
      event('passkeys-removed', { passkeys: 2 }),
    ],
  })
})

const ended = event('session-ended', { which: 'all' })
const live = { ...sample.session, userId, expiresAt: at + 1, idleExpiresAt: at + 1 }
const over = { ...live, expiresAt: at }

t.test('sessions end without anything else of the user', async (t) => {
  t.strictSame(endSessions(user, [live, over], context), { result: 1, writes: [ending, ended] })
  t.strictSame(endSessions(user, [over], context), { result: 0, writes: [ending] }, 'no live one ended')
  t.strictSame(endSessions(user, [], context), { result: 0, writes: [ending] })
})

t.test('all access ends with the sessions, the grants and what was remembered', async (t) => {
  const rule = 'oidc-core-16.18-user-revocation'
  const revocation = (clientId: string) => event('revocation', { rule }, { clientId })
  t.strictSame(
    endSessionsAndConnections(user, [live], [{ clientId: 'client-1' }, { clientId: 'client-2' }], context),
    {
      result: undefined,
      writes: [
        ending,
        ended,
        { op: 'revokeGrantsOf', userId, at, rule },
        { op: 'deleteRecords', kind: 'consent', userId },
        revocation('client-1'),
        revocation('client-2'),
        { op: 'deleteRecords', kind: 'personal-token', userId },
      ],
    },
  )
  t.equal(everyConnection, 100_000, 'how many clients a revocation of all of them reaches')
})
