import t from 'tap'
import type { Jws } from '../../src/domain/jws.ts'
import { assertRequestObject, parametersOf } from '../../src/specs/rfc9101-request-objects/rules.ts'
import { passedDuring } from '../helpers/checks.ts'
import { publicClient } from '../helpers/samples.ts'

const now = 1_800_000_000
const issuer = 'https://auth.example'
const { id } = publicClient
const code = 'invalid_request_object'

type Members = Readonly<Record<string, unknown>>

function jwsOf(claims: Members, header: Members = {}): Jws {
  return { header, claims, signed: '', signature: Buffer.alloc(0) }
}

const valid = { client_id: id, iss: id, aud: issuer, exp: now + 60, nbf: now, iat: now }
const assertValid = (claims: Members, header: Members = {}) =>
  assertRequestObject(jwsOf({ ...valid, ...claims }, header), publicClient, issuer, now)

t.test('a request object is typed as one, from the client of the request, for this server', async (t) => {
  const types = [
    'JWT',
    'oauth-authz-req+jwt',
    'application/oauth-authz-req+jwt',
    'Application/jwt',
    undefined,
  ]
  for (const typ of types) t.doesNotThrow(() => assertValid({}, { typ }), String(typ))
  for (const claims of [{ iss: undefined }, { sub: 'alice' }, { aud: ['https://b.example', issuer] }])
    t.doesNotThrow(() => assertValid(claims), JSON.stringify(claims))
  t.strictSame(passedDuring(() => assertValid({}))[3], {
    rule: 'rfc9101-5-client-id-in-query',
    found: 'client id in query',
    stored: id,
    received: id,
  })
  const ofHeader = 'the header of the request object has a member that is not accepted'
  const ofType = 'typ is that of another kind of JWT; use oauth-authz-req+jwt'
  for (const [header, rule, message, received] of [
    [{ crit: ['exp'] }, 'rfc9101-4-signed-jwt', ofHeader, 'crit'],
    ...['at+jwt', 'xjwt', 'jwtx', 'oauth-authz-req+jwt;', '', 7].map(
      (typ) => [{ typ }, 'rfc9101-10.8-explicit-type', ofType, typ] as const,
    ),
  ] as const)
    t.throws(() => assertValid({}, header), { code, message, detail: { rule, received } }, String(received))
})

t.test('a request object contains no other one, and names its client', async (t) => {
  const nested = 'a request object must not have request or request_uri'
  const ofClient = 'client_id of the request object is missing, or not the client_id of the request'
  const ofIssuer = 'iss of the request object is not the client_id'
  const ofAudience = 'aud of the request object is not the issuer'
  for (const [claims, rule, message, received, stored] of [
    [{ request: 'a.b.c' }, 'rfc9101-10.3-nested-forbidden', nested, 'request'],
    [{ request_uri: '' }, 'rfc9101-10.3-nested-forbidden', nested, 'request_uri'],
    [{ client_id: 'x' }, 'rfc9101-5-client-id-in-query', ofClient, 'x', id],
    [{ client_id: undefined }, 'rfc9101-5-client-id-in-query', ofClient, undefined, id],
    [{ iss: 'x' }, 'rfc9101-4-iss-aud', ofIssuer, 'x', id],
    [{ iss: null }, 'rfc9101-4-iss-aud', ofIssuer, 'null', id],
    [{ sub: id }, 'rfc9101-10.8-explicit-type', 'sub of the request object must not be the client_id', id],
    [{ aud: 'x' }, 'rfc9101-4-iss-aud', ofAudience, 'x', issuer],
    [{ aud: ['x'] }, 'rfc9101-4-iss-aud', ofAudience, '["x"]', issuer],
    [{ aud: undefined }, 'rfc9101-4-iss-aud', ofAudience, undefined, issuer],
  ] as const)
    t.throws(
      () => assertValid(claims),
      { code, message, detail: { rule, received, stored } },
      JSON.stringify(claims),
    )
})

t.test('exp and nbf are at most an hour away, and the clocks may differ by ten seconds', async (t) => {
  for (const claims of [
    { exp: undefined, nbf: undefined, iat: undefined },
    { exp: now - 9 },
    { exp: now + 3610 },
    { nbf: now + 10 },
    { nbf: now - 3610 },
    { iat: now + 10 },
    { iat: 0 },
  ])
    t.doesNotThrow(() => assertValid(claims), JSON.stringify(claims))
  const over = 'exp of the request object is over'
  const notYet = (name: string) => `${name} of the request object is no instant, or in the future`
  for (const [claims, message, received] of [
    [{ exp: now - 10 }, over, now - 10],
    [{ exp: String(now + 60) }, over, String(now + 60)],
    [{ exp: null }, over, 'null'],
    [{ exp: now + 3611 }, 'exp of the request object is more than 60 minutes ahead', now + 3611],
    [{ nbf: now + 11 }, notYet('nbf'), now + 11],
    [{ nbf: String(now) }, notYet('nbf'), String(now)],
    [{ iat: now + 11 }, notYet('iat'), now + 11],
    [{ iat: String(now) }, notYet('iat'), String(now)],
    [{ nbf: now - 3611 }, 'nbf of the request object is more than 60 minutes ago', now - 3611],
  ] as const)
    t.throws(
      () => assertValid(claims),
      { code, message, detail: { rule: 'rfc9101-4-exp-nbf', received, stored: now } },
      JSON.stringify(claims),
    )
})

const names = ['client_id', 'scope', 'state', 'max_age', 'resource', 'claims', 'registration']
const limits = { parameters: 12, parameterBytes: 20, jsonDepth: 3 }
const read = (claims: Members, changes: Partial<typeof limits> = {}) => ({
  ...parametersOf(jwsOf(claims), names, { ...limits, ...changes }),
})

t.test('the parameters are the members of a request object that are not its own claims', async (t) => {
  t.strictSame(read({ ...valid, sub: 'alice', jti: 'j', scope: 'openid', state: '' }), {
    client_id: id,
    scope: 'openid',
  })
  for (const [name, value, parameter] of [
    ['max_age', 60, '60'],
    ['other', 'text', 'text'],
    ['resource', 'https://a.example', 'https://a.example'],
    ['resource', ['https://a.example'], ['https://a.example']],
    ['resource', ['a', 'b'], ['a', 'b']],
    ['claims', { userinfo: {} }, '{"userinfo":{}}'],
    ['claims', ['a'], '["a"]'],
    ['registration', { a: 1 }, '{"a":1}'],
    ['state', 'é'.repeat(10), 'é'.repeat(10)],
  ] as const)
    t.strictSame(read({ [name]: value }), { [name]: parameter }, name)
  for (const unknown of [{ a: 1 }, ['a'], true, null])
    t.strictSame(read({ unknown }), {}, `${JSON.stringify(unknown)} of an unknown name is ignored`)
  t.strictSame(read({ unknown: true }, { parameterBytes: 0 }), {}, 'what is ignored has no length')
})

t.test('a parameter has the type of its name, and is neither long nor broken', async (t) => {
  const long = 'x'.repeat(21)
  for (const [name, value] of [
    ['scope', ['openid']],
    ['state', {}],
    ['max_age', true],
    ['claims', null],
    ['claims', true],
    ['resource', []],
    ['resource', ['a', 1]],
    ['resource', { a: 'b' }],
    ['resource', ['a', long]],
    ['resource', ['a', 'b\0']],
    ['state', 'a\0'],
    ['state', '\ud800'],
    ['state', `${'é'.repeat(10)}x`],
    ['claims', { userinfo: { name: null } }],
  ] as const)
    t.throws(
      () => read({ [name]: value }),
      {
        code,
        message: `${name} of the request object has a wrong type, or is too long`,
        detail: {
          rule: 'rfc9101-4-parameters',
          received: typeof value === 'string' ? value : JSON.stringify(value),
        },
      },
      `${name} ${JSON.stringify(value)}`,
    )
  t.throws(() => read({ unknown: long }), {
    code,
    message: 'a parameter of the request object has a wrong type, or is too long',
    detail: { rule: 'rfc9101-4-parameters', received: long },
  })
})

t.test('a request object has as many members, as deep, as the limits allow', async (t) => {
  const many = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, 'x']))
  t.equal(Object.keys(read(many(12))).length, 12)
  const message =
    'the request object has too many members, or is nested too deep (limits.parameters, limits.jsonDepth)'
  for (const [claims, received] of [
    [many(13), 13],
    [{ claims: { a: { b: {} } } }, 1],
  ] as const)
    t.throws(() => read(claims), {
      code,
      message,
      detail: { rule: 'rfc9101-4-parameters', received, stored: 12 },
    })
})
