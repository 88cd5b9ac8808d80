import t from 'tap'
import { clientDocumentKind, deniedDocumentKind } from '../../src/domain/client-document.ts'
import { consentKind } from '../../src/domain/connections.ts'
import {
  endSession,
  endSessionsOf,
  insert,
  insertUse,
  put,
  remove,
  removeAll,
  removeUser,
  update,
} from '../../src/domain/decision.ts'
import {
  groupAdministrationKind,
  groupKind,
  groupNameKind,
  groupTreeKey,
  groupTreeKind,
  membershipKind,
} from '../../src/domain/group.ts'
import { auditEventNames, clientOrigins, consentRules, defaultGrantTypes } from '../../src/domain/model.ts'
import { omitUndefined } from '../../src/domain/omit-undefined.ts'
import { useKind } from '../../src/domain/record.ts'
import { wellKnownUrl } from '../../src/domain/well-known.ts'
import { publicClient } from '../helpers/samples.ts'

const consent = { userId: 'alice', clientId: 'client-1', allowed: [], grantedAt: 7 }
const row = {
  kind: 'consent',
  id: 'alice client-1',
  userId: 'alice',
  clientId: 'client-1',
  madeAt: 7,
  expiresAt: undefined,
  body: JSON.stringify(consent),
}

t.test('the names of kinds are stored: a database of the version before is found by them', async (t) => {
  const names = [consentKind, clientDocumentKind, deniedDocumentKind].map(({ name }) => name)
  t.strictSame(names, ['consent', 'client-document', 'denied-client-document'])
  const ofGroups = [groupKind, groupNameKind, membershipKind, groupAdministrationKind, groupTreeKind]
  const wanted = ['group', 'groupName', 'membership', 'groupAdministration', 'groupTree']
  t.strictSame(
    ofGroups.map(({ name }) => name),
    wanted,
  )
  t.equal(groupTreeKind.rowOf({ revision: 1 }).id, 'tree')
  t.equal(groupTreeKey, 'tree')
  t.equal(useKind, 'use')
})

t.test('what clients and the audit log are stored with stays, too', async (t) => {
  t.strictSame(defaultGrantTypes, ['authorization_code', 'refresh_token'])
  t.strictSame(clientOrigins, ['registered', 'integration', 'resource-server'])
  t.strictSame(consentRules, ['always', 'remember', 'skip'])
  const names = [
    'sign-in sign-in-failed sign-out consent consent-refused grant revocation',
    'registration registration-changed registration-deleted registration-token-made registration-token-revoked',
    'client-added client-changed client-secret-changed client-pkce-learned client-locked client-unlocked client-removed',
    'client-access-denied client-logout-delivered client-logout-failed',
    'user-added user-invited user-changed user-exported user-email-verified user-password-changed',
    'user-locked user-unlocked user-removed personal-token-made personal-token-revoked link-made link-deleted email-tested session-ended',
    'passkey-added passkey-removed passkeys-removed passkey-copied recovery-codes-made recovery-code-used',
    'second-factor-added second-factor-removed upstream-linked upstream-unlinked',
    'upstream-added upstream-changed upstream-deleted',
    'group-created group-changed group-deleted group-member-added group-member-removed',
    'scope-added scope-changed scope-deleted resource-added resource-changed resource-deleted',
    'key-made key-rotated key-changed key-retired key-reseal-begun key-resealed store-moved store-resumed',
    'store-partitioned store-distributed',
  ]
  t.strictSame(auditEventNames, names.join(' ').split(' '))
})

t.test('a member that is undefined is left out', async (t) => {
  const kept = omitUndefined({ a: 1, b: undefined, c: '', d: null, e: 0 })
  t.strictSame(Object.entries(kept), Object.entries({ a: 1, c: '', d: null, e: 0 }))
})

t.test('a well-known URL has its name between host and path', async (t) => {
  t.equal(wellKnownUrl('https://auth.example', 'x'), 'https://auth.example/.well-known/x')
  t.equal(wellKnownUrl('https://auth.example/', 'x'), 'https://auth.example/.well-known/x')
  t.equal(wellKnownUrl('https://auth.example/a/b?c', 'x'), 'https://auth.example/.well-known/x/a/b?c')
})

t.test('a record is a row of the common table, and a client of its own', async (t) => {
  t.strictSame(insert(consentKind, consent), { op: 'insert', kind: 'record', record: row })
  t.strictSame(update(consentKind, consent), { op: 'update', kind: 'record', record: row })
  t.strictSame(put(consentKind, consent), { op: 'put', kind: 'record', record: row })
  t.strictSame(consentKind.parse(row.body), consent)
  t.strictSame(insert('client', publicClient), { op: 'insert', kind: 'client', record: publicClient })
  t.strictSame(update('client', publicClient), { op: 'update', kind: 'client', record: publicClient })
  t.strictSame(remove(consentKind, row.id), { op: 'deleteRecord', kind: 'consent', key: row.id })
  t.strictSame(remove('client', 'client-1'), { op: 'delete', kind: 'client', key: 'client-1' })
})

t.test('the uses that expire first come first', async (t) => {
  t.strictSame(insertUse({ id: 'hash', expiresAt: 1_800_000_000 }), {
    op: 'insert',
    kind: 'record',
    record: { kind: 'use', id: '001800000000hash', body: '', isBrief: true },
  })
})

t.test('a write names only what it is about', async (t) => {
  t.strictSame(removeAll(consentKind), { op: 'deleteRecords', kind: 'consent' })
  t.strictSame(removeAll(consentKind, 'alice'), { op: 'deleteRecords', kind: 'consent', userId: 'alice' })
  const next = { id: 'next', expiresAt: 9 }
  t.strictSame(endSession('old', 5), { op: 'endSession', sessionId: 'old', at: 5 })
  t.strictSame(endSession('old', 5, next), { op: 'endSession', sessionId: 'old', at: 5, continuedBy: next })
  t.strictSame(endSessionsOf('alice', 5), { op: 'endSessionsOf', userId: 'alice', at: 5 })
  t.strictSame(endSessionsOf('alice', 5, 'this'), {
    op: 'endSessionsOf',
    userId: 'alice',
    at: 5,
    except: 'this',
  })
  t.strictSame(removeUser('alice', 5), { op: 'removeUser', userId: 'alice', at: 5 })
})
