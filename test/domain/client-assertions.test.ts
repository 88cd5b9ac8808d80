import t from 'tap'
import { type Jws, shown } from '../../src/domain/jws.ts'
import type { Client } from '../../src/domain/model.ts'
import {
  assertClaims,
  signatureRules,
  usedAssertionKind,
  useOf,
} from '../../src/specs/rfc7523-client-assertions/rules/claims.ts'
import { passedDuring } from '../helpers/checks.ts'
import { publicClient } from '../helpers/samples.ts'

type Members = Readonly<Record<string, unknown>>

const now = 1_800_000_000
const { id } = publicClient
const endpoint = 'https://auth.example/token'
const audience = { issuer: 'https://auth.example', endpoints: [endpoint, 'https://auth.example/revoke'] }
const legacy: Client = { ...publicClient, extra: { legacy_audience: true } }

function assertionOf(claims: Members, header: Members = {}): Jws {
  const whole = { iss: id, sub: id, aud: audience.issuer, exp: now + 60, jti: 'j', ...claims }
  return { header: { alg: 'ES256', ...header }, claims: whole, signed: '', signature: Buffer.alloc(0) }
}

const check =
  (claims: Members, header: Members = {}, client: Client = publicClient) =>
  () =>
    assertClaims(assertionOf(claims, header), client, audience, now)

t.test('an assertion may expire ten minutes ahead, and the clocks may differ by ten seconds', async (t) => {
  for (const claims of [
    { exp: now + 610 },
    { exp: now - 9 },
    { nbf: now + 10 },
    { iat: now + 10 },
    { exp: now + 0.5 },
    { jti: 'j'.repeat(256) },
  ])
    t.doesNotThrow(check(claims), JSON.stringify(claims))
  const wrong = [
    [{ exp: now + 611 }, 'rfc7523-3-exp', 'exp is more than 10 minutes ahead', now],
    [{ exp: now - 10 }, 'rfc7523-3-exp', 'exp is missing or over', now],
    [{ exp: undefined }, 'rfc7523-3-exp', 'exp is missing or over', now],
    [{ exp: String(now + 60) }, 'rfc7523-3-exp', 'exp is missing or over', now],
    [{ nbf: now + 11 }, 'rfc7523-3-nbf-iat', 'nbf is no instant, or in the future', now],
    [{ nbf: 'now' }, 'rfc7523-3-nbf-iat', 'nbf is no instant, or in the future', now],
    [{ iat: now + 11 }, 'rfc7523-3-nbf-iat', 'iat is no instant, or in the future', now],
    [{ iat: '1' }, 'rfc7523-3-nbf-iat', 'iat is no instant, or in the future', now],
    [{ jti: 'j'.repeat(257) }, 'rfc7523-3-jti-replay', 'jti is missing or longer than 256 characters'],
    [{ jti: '' }, 'rfc7523-3-jti-replay', 'jti is missing or longer than 256 characters'],
    [{ jti: undefined }, 'rfc7523-3-jti-replay', 'jti is missing or longer than 256 characters'],
    [{ jti: 7 }, 'rfc7523-3-jti-replay', 'jti is missing or longer than 256 characters'],
  ] as const
  for (const [claims, rule, message, stored] of wrong) {
    const received = shown(Object.values(claims)[0])
    const wanted = { code: 'invalid_client', message, detail: { rule, stored, received } }
    t.throws(check(claims), wanted, JSON.stringify(claims))
  }
})

t.test('the issuer and the subject of an assertion are the client', async (t) => {
  for (const claims of [{ iss: 'client-2' }, { sub: 'client-2' }, { iss: undefined }, { sub: [id] }])
    t.throws(
      check(claims),
      {
        code: 'invalid_client',
        message: 'iss or sub is not the client_id',
        detail: { rule: 'rfc7523-3-iss-sub', stored: id },
      },
      JSON.stringify(claims),
    )
})

t.test('the audience is the issuer alone, unless an operator marked the client', async (t) => {
  const rejected = { code: 'invalid_client', message: 'aud is not the issuer alone' }
  const rule = 'rfc7523-3-aud'
  for (const aud of [undefined, [audience.issuer], endpoint, [endpoint], 'https://other.example', true])
    for (const client of [publicClient, { ...legacy, extra: { legacy_audience: 'true' } }])
      t.throws(
        check({ aud }, {}, client),
        { ...rejected, detail: { rule, stored: audience.issuer, received: shown(aud) } },
        JSON.stringify(aud),
      )
  for (const aud of [
    audience.issuer,
    endpoint,
    [audience.issuer],
    ['https://other.example', audience.issuer],
    ['https://other.example', endpoint],
  ])
    t.doesNotThrow(check({ aud }, {}, legacy), JSON.stringify(aud))
  for (const aud of [undefined, [], 'https://other.example', ['https://other.example']])
    t.throws(check({ aud }, {}, legacy), { ...rejected, detail: { rule } }, JSON.stringify(aud))
})

t.test('the header names no key, nothing critical and no other kind of token', async (t) => {
  const types = ['JWT', 'jwt', 'application/jwt', 'jose', 'Client-Authentication+JWT']
  for (const typ of [undefined, ...types]) t.doesNotThrow(check({}, { typ }), String(typ))
  const rule = 'rfc7523-3-valid-jwt'
  for (const typ of ['at+jwt', 'jwtx', 'dpop+jwt', 'application/', 'x/jwt', '', null])
    t.throws(
      check({}, { typ }),
      {
        code: 'invalid_client',
        message: 'typ is that of another kind of JWT',
        detail: { rule, received: shown(typ) },
      },
      String(typ),
    )
  for (const name of ['crit', 'jwk'])
    t.throws(check({}, { [name]: {} }), {
      code: 'invalid_client',
      message: 'the header has a member that is not accepted',
      detail: { rule, received: name },
    })
})

t.test('an assertion passes each of its rules', async (t) => {
  t.strictSame(
    passedDuring(check({})).map(({ rule, stored, received }) => [rule, stored, received]),
    [
      ['rfc7523-3-valid-jwt', undefined, undefined],
      ['rfc7523-3-valid-jwt', undefined, undefined],
      ['rfc7523-3-iss-sub', id, id],
      ['rfc7523-3-aud', audience.issuer, audience.issuer],
      ['rfc7523-3-exp', now, now + 60],
      ['rfc7523-3-exp', now, now + 60],
      ['rfc7523-3-nbf-iat', now, undefined],
      ['rfc7523-3-nbf-iat', now, undefined],
      ['rfc7523-3-jti-replay', undefined, 'j'],
    ],
  )
  t.strictSame(signatureRules, {
    code: 'invalid_client',
    signature: 'rfc7523-3-signature',
    algorithm: 'rfc7523-3-alg-registered',
  })
})

t.test('what was received is shown unchanged up to a limit', async (t) => {
  for (const value of [undefined, 7, 'text']) t.equal(shown(value), value)
  t.equal(shown(['a']), '["a"]')
  t.equal(shown(null), 'null')
  t.equal(shown('x'.repeat(300)), 'x'.repeat(200))
})

t.test('an assertion counts as used until it has expired for sure, for its issuer', async (t) => {
  const used = useOf(assertionOf({ exp: now + 60.5 }), id)
  t.match(used, { clientId: id, expiresAt: now + 71 })
  t.equal(useOf(assertionOf({}), 'other').id, used.id, 'for every client')
  t.not(useOf(assertionOf({ iss: 'https://issuer.example' }), id).id, used.id)
  t.not(useOf(assertionOf({ jti: 'k' }), id).id, used.id)
  t.match(usedAssertionKind.rowOf(used), {
    kind: 'client-assertion',
    id: used.id,
    clientId: id,
    expiresAt: now + 71,
  })
})
