import t from 'tap'
import type { TokenFacts } from '../../src/domain/access-token.ts'
import type { Client } from '../../src/domain/model.ts'
import {
  type ExchangeRequest,
  type Exchanger,
  exchangeToken,
  readExchange,
} from '../../src/specs/rfc8693-token-exchange/rules.ts'
import { type Actor, accessTokenType, tokenExchange } from '../../src/specs/rfc8693-token-exchange/schema.ts'
import { active, approvedAt, bytesOf, operatorClient, otherApi, ownApi, policy } from '../helpers/samples.ts'

const now = approvedAt + 10
const fresh = { id: bytesOf('fresh', 12), secret: bytesOf('fresh secret', 16) }
const api: Client = {
  ...operatorClient,
  origin: 'resource-server',
  authenticationMethod: 'client_secret_basic',
  grantTypes: [tokenExchange],
  introspects: [ownApi.identifier],
}
const subject: TokenFacts = {
  kind: 'access',
  grant: active(1, { acr: 'phr', methods: ['pwd', 'otp'] }),
  scope: ['courses:read', 'courses:write'],
  resource: [ownApi.identifier, otherApi.identifier],
  issuedAt: approvedAt,
  expiresAt: approvedAt + 60,
  tokenId: bytesOf('token', 16),
}
const all: ExchangeRequest = { subjectToken: 'x', scope: undefined, targets: [] }
const run = (
  request: Partial<ExchangeRequest> = {},
  changes: Partial<TokenFacts> = {},
  exchanger: Partial<Exchanger> = {},
  mayAct: readonly unknown[] = [],
) =>
  exchangeToken(
    { ...subject, ...changes },
    mayAct,
    { ...all, ...request },
    { client: api, confirmation: undefined, from: 'here', ...exchanger },
    policy,
    fresh,
    now,
  )

t.test('an exchanged token has a grant of its own that names the subject token', async (t) => {
  const decision = run({ scope: 'courses:read', targets: [otherApi.identifier] })
  if ('rejection' in decision) throw decision.rejection
  const { grant, terms } = decision.result
  t.match(grant, {
    ...fresh,
    clientId: api.id,
    userId: 'alice',
    scope: ['courses:read'],
    resource: [otherApi.identifier],
    acr: 'phr',
    methods: ['pwd', 'otp'],
    authenticatedAt: subject.grant.authenticatedAt,
    exchangedFrom: { grantId: subject.grant.id, tokenId: subject.tokenId, clientId: subject.grant.clientId },
    extra: { act: { sub: api.id } },
  })
  t.equal(grant.refreshExpiresAt, undefined)
  t.equal(terms.seconds, 40, 'the lifetime of the API')
  t.match(decision.writes, [
    { op: 'insertGrant' },
    { record: { name: 'grant', by: 'client', userId: 'alice', facts: { exchanged: subject.grant.id } } },
  ])
  const late = run({}, { expiresAt: now + 5 })
  t.match(late, { result: { terms: { seconds: 5 }, grant: { expiresAt: now + 5 } } })
})

const chainOf = (length: number): Actor =>
  length === 1 ? { sub: 'first' } : { sub: 'next', act: chainOf(length - 1) }
const ofChain = (length: number) => ({ grant: active(1, { extra: { act: chainOf(length) } }) })

t.test('the client becomes the current actor of a chain, whose first client stays known', async (t) => {
  t.match(run({}, ofChain(1)), {
    result: { grant: { extra: { act: { sub: api.id, act: { sub: 'first' } } } } },
  })
  t.match(run({}, ofChain(7)), { result: { grant: { clientId: api.id } } })
  t.throws(() => run({}, ofChain(8)), { code: 'invalid_request' })
  const exchangedFrom = { grantId: bytesOf('root', 12), tokenId: 'token', clientId: 'app' }
  const decision = run({}, { grant: active(1, { exchangedFrom }) })
  t.match(decision, { result: { grant: { exchangedFrom: { grantId: subject.grant.id, clientId: 'app' } } } })
})

const bound = { jkt: 'key' }
const { userId: _, ...withoutUser } = active(1)
const rejected: readonly (readonly [what: string, code: string, given: Parameters<typeof run>])[] = [
  ['a public client', 'unauthorized_client', [{}, {}, { client: { ...api, authenticationMethod: 'none' } }]],
  ['a refresh token', 'invalid_request', [{}, { kind: 'refresh' }]],
  ['a token for another API', 'invalid_request', [{}, { resource: [otherApi.identifier] }]],
  ['a token without a user', 'invalid_request', [{}, { grant: withoutUser }]],
  ['a bound token without a proof', 'invalid_request', [{}, { confirmation: bound }]],
  ['may_act of another client', 'invalid_request', [{}, {}, {}, [{ sub: 'other' }]]],
  ['may_act without a subject', 'invalid_request', [{}, {}, {}, ['x']]],
  ['one of two may_act', 'invalid_request', [{}, {}, {}, [{ sub: api.id }, { sub: 'other' }]]],
  ['more scope', 'invalid_scope', [{ scope: 'courses:read openid' }]],
  [
    'scope that the client may not have',
    'invalid_scope',
    [{ scope: 'courses:write' }, {}, { client: { ...api, scope: ['courses:read'] } }],
  ],
  ['another API', 'invalid_target', [{ targets: ['https://signed.example'] }]],
  [
    'an API beside one that is meant',
    'invalid_target',
    [{ targets: [ownApi.identifier, 'https://x.example'] }],
  ],
  [
    'an API that the client may not have',
    'invalid_target',
    [{ targets: [otherApi.identifier] }, {}, { client: { ...api, resources: [ownApi.identifier] } }],
  ],
]
for (const [what, code, given] of rejected)
  t.test(`${what} is rejected`, async (t) => {
    t.throws(() => run(...given), { code })
  })

t.test(
  'a key that the request proves is enough for a bound token, and may_act for the one it names',
  async (t) => {
    t.match(run({}, { confirmation: bound }, { confirmation: { jkt: 'other' } }), { result: {} })
    t.match(run({}, {}, {}, [{ sub: api.id }]), { result: {} })
  },
)

t.test('a request has a subject token with its type, and no actor', async (t) => {
  const request = { subject_token: 'x', subject_token_type: accessTokenType }
  t.match(readExchange({ ...request, audience: 'a', resource: ['b', 'c'], scope: 's' }), {
    subjectToken: 'x',
    scope: 's',
    targets: ['b', 'c', 'a'],
  })
  for (const wrong of [
    { subject_token: undefined },
    { subject_token_type: undefined },
    { subject_token_type: 'urn:ietf:params:oauth:token-type:jwt' },
    { actor_token: 'x' },
    { actor_token_type: accessTokenType },
    { requested_token_type: 'urn:ietf:params:oauth:token-type:id_token' },
  ])
    t.throws(() => readExchange({ ...request, ...wrong }), { code: 'invalid_request' })
})
