import t from 'tap'
import { auditEvent } from '../../src/domain/audit.ts'
import type { Client } from '../../src/domain/model.ts'
import {
  type ClientCredentialsRequest,
  issueToClient,
} from '../../src/specs/rfc6749-client-credentials/rules.ts'
import { passedDuring } from '../helpers/checks.ts'
import { approvedAt, operatorClient, otherApi, ownApi, policy, resultOf } from '../helpers/samples.ts'

const machine: Client = {
  ...operatorClient,
  authenticationMethod: 'client_secret_basic',
  redirectUris: [],
  grantTypes: ['client_credentials'],
  scope: ['openid', 'courses:read', 'pages:read'],
}
const asked: ClientCredentialsRequest = { scope: undefined, resource: [], from: '192.0.2.0/24' }
const fresh = { id: 'a'.repeat(16), secret: 'b'.repeat(22) }
const issue = (client: Client | undefined, request: Partial<ClientCredentialsRequest> = {}) =>
  issueToClient(client, { ...asked, ...request }, policy, fresh, approvedAt)

t.test('the grant has no user, one access token and no refresh token', async (t) => {
  const decision = issue(machine)
  t.match(decision, { result: { terms: { scope: ['courses:read'], resource: [ownApi.identifier] } } })
  const { grant } = 'result' in decision ? decision.result : {}
  t.match(grant, { clientId: machine.id, seq: 1, scope: ['courses:read', 'pages:read'], approvedAt })
  for (const absent of ['userId', 'refreshExpiresAt', 'nonce', 'codeChallenge'])
    t.notOk(grant && absent in grant, absent)
  if (grant === undefined) throw new Error('there is a grant')
  t.strictSame(decision.writes, [
    { op: 'insertGrant', grant, client: machine },
    auditEvent(
      'grant',
      { by: 'client', at: approvedAt, from: '192.0.2.0/24' },
      { clientId: machine.id, grant: grant.id, scope: 'courses:read pages:read' },
    ),
  ])
})

t.test(
  'in the transaction that reads the client, the grant has its owners and compares nothing',
  async (t) => {
    const owners = { clientSeq: 7 }
    const { writes } = issueToClient(machine, asked, policy, fresh, approvedAt, owners)
    t.match(writes[0], { op: 'insertGrant', owners })
    t.notHas(writes[0], { client: machine })
  },
)

t.test('a request that names nothing gets what the operator allowed, and no other scope', async (t) => {
  const access = (client: Client, request: Partial<ClientCredentialsRequest> = {}) => {
    const { scope, resource } = resultOf(issue(client, request)).terms
    return { scope, resource }
  }
  const scope = ['courses:read']
  t.strictSame(access(machine), { scope, resource: [ownApi.identifier] })
  const bound = { ...machine, resources: [otherApi.identifier] }
  t.strictSame(access(bound), { scope, resource: [otherApi.identifier] })
  t.strictSame(access(bound, { resource: [otherApi.identifier] }), { scope, resource: [otherApi.identifier] })
  t.strictSame(access(machine, { resource: [otherApi.identifier] }), {
    scope,
    resource: [otherApi.identifier],
  })
  t.strictSame(resultOf(issue(machine, { scope: 'courses:read' })).grant.scope, scope)
})

const own = ['courses:read', 'pages:read']

t.test('each rule that a request passes is recorded', async (t) => {
  const passed = (client: Client, request: Partial<ClientCredentialsRequest>) =>
    passedDuring(() => void issue(client, request))
      .filter(({ rule }) => /^rfc6749-4.4|not-granted/.test(rule))
      .map(({ rule, found, stored, received }) => [rule, found, stored, received])
  const common = [
    ['rfc6749-4.4.2-client-must-authenticate', 'client must authenticate', undefined, undefined],
    [
      'rfc6749-4.4-client-credentials-confidential',
      'the client is confidential and may act for itself',
      'client_secret_basic',
      undefined,
    ],
  ]
  const mayGet = 'resource is one that the client may get tokens for'
  t.strictSame(passed({ ...machine, resources: [otherApi.identifier] }, {}).slice(0, 4), [
    ...common,
    ['rfc6749-4.4.2-scope-preapproved', 'no scope: what the operator allowed', own, undefined],
    ['rfc8707-2.2-not-granted', mayGet, [otherApi.identifier], undefined],
  ])
  t.strictSame(passed(machine, { scope: 'courses:read' }).slice(0, 4), [
    ...common,
    ['rfc6749-4.4.2-scope-preapproved', 'scope is within what the operator allowed', own, ['courses:read']],
    ['rfc8707-2.2-not-granted', mayGet, undefined, undefined],
  ])
})

const absent = {
  message: 'the client was removed or locked in the meantime',
  detail: { rule: 'rfc6749-4.4.2-client-must-authenticate' },
}
const notConfidential = {
  message: 'only a confidential client that an operator added may act for itself',
  detail: { rule: 'rfc6749-4.4-client-credentials-confidential' },
}
const beyond = (received: string) => ({
  message: 'scope exceeds what the operator allowed this client',
  detail: { rule: 'rfc6749-4.4.2-scope-preapproved', stored: own, received },
})

const { scope: _, ...withoutScope } = machine

for (const [about, client, request, code, error] of [
  ['a client that was removed', undefined, {}, 'invalid_client', absent],
  ['a client that is locked', { ...machine, lockedAt: 1 }, {}, 'invalid_client', absent],
  [
    'a client without the grant type',
    { ...machine, grantTypes: [] },
    {},
    'unauthorized_client',
    notConfidential,
  ],
  [
    'a public client',
    { ...machine, authenticationMethod: 'none' },
    {},
    'unauthorized_client',
    notConfidential,
  ],
  [
    'a scope beyond what is allowed',
    machine,
    { scope: 'courses:read courses:write' },
    'invalid_scope',
    beyond('courses:write'),
  ],
  [
    'a scope about a user',
    machine,
    { scope: 'courses:read openid' },
    'invalid_scope',
    {
      ...beyond('openid'),
      message: 'scope openid is about a user, and this grant type has none',
    },
  ],
  [
    'a client without a scope',
    withoutScope,
    {},
    'invalid_target',
    { detail: { rule: 'rfc8707-2.2-invalid-combination' } },
  ],
  [
    'an unknown resource',
    machine,
    { resource: ['https://x.example'] },
    'invalid_target',
    { detail: { rule: 'rfc8707-2-unknown-invalid-target' } },
  ],
  [
    'a resource beyond what is allowed',
    { ...machine, resources: [ownApi.identifier] },
    { resource: [ownApi.identifier, otherApi.identifier] },
    'invalid_target',
    {
      message: 'resource is not one that the operator allowed this client',
      detail: {
        rule: 'rfc8707-2.2-not-granted',
        stored: [ownApi.identifier],
        received: otherApi.identifier,
      },
    },
  ],
] as const) {
  t.test(`${about} is ${code}`, async (t) => {
    t.throws(() => issue(client, request), { code, ...error })
  })
}
