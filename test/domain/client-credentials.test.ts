import t from 'tap'
import type { Client } from '../../src/domain/model.ts'
import { type ClientCredentialsRequest, issueToClient } from '../../src/rfc6749-client-credentials/rules.ts'
import { approvedAt, integration, otherApi, ownApi, resources } from '../helpers/samples.ts'

const machine: Client = {
  ...integration,
  authenticationMethod: 'client_secret_basic',
  redirectUris: [],
  grantTypes: ['client_credentials'],
  scope: ['openid', 'courses:read', 'pages:read'],
}
const asked: ClientCredentialsRequest = { scope: undefined, resource: [], from: '192.0.2.0/24' }
const policy = { resources, aboutUsers: ['openid', 'profile', 'offline_access'] }
const fresh = { id: 'a'.repeat(16), secret: 'b'.repeat(22) }
const issue = (client: Client | undefined, request: Partial<ClientCredentialsRequest> = {}) =>
  issueToClient(client, { ...asked, ...request }, policy, fresh, approvedAt)

t.test('the grant has no user, one access token and no refresh token', async (t) => {
  const decision = issue(machine)
  t.match(decision, { result: { access: { scope: ['courses:read'], resource: [ownApi.identifier] } } })
  const { grant } = 'result' in decision ? decision.result : {}
  t.match(grant, { clientId: machine.id, seq: 1, scope: ['courses:read', 'pages:read'], approvedAt })
  for (const absent of ['userId', 'refreshExpiresAt', 'nonce', 'codeChallenge'])
    t.notOk(grant && absent in grant, absent)
  t.match(decision.writes, [
    { op: 'insertGrant', grant },
    { op: 'insert', kind: 'auditEvent' },
  ])
})

for (const [about, client, request, code] of [
  ['a client that was removed', undefined, {}, 'invalid_client'],
  ['a client without the grant type', { ...machine, grantTypes: [] }, {}, 'unauthorized_client'],
  ['a public client', { ...machine, authenticationMethod: 'none' }, {}, 'unauthorized_client'],
  ['a scope beyond what is allowed', machine, { scope: 'courses:write' }, 'invalid_scope'],
  ['a scope about a user', machine, { scope: 'openid' }, 'invalid_scope'],
  ['a client without a scope', { ...machine, scope: [] }, {}, 'invalid_target'],
  ['an unknown resource', machine, { resource: ['https://x.example'] }, 'invalid_target'],
  [
    'a resource beyond what is allowed',
    { ...machine, resources: [ownApi.identifier] },
    { resource: [otherApi.identifier] },
    'invalid_target',
  ],
] as const) {
  t.test(`${about} is ${code}`, async (t) => {
    t.throws(() => issue(client, request), { code })
  })
}
