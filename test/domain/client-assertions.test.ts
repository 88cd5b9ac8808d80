import t from 'tap'
import { type Jws, shown } from '../../src/domain/jws.ts'
import { assertClaims, useOf } from '../../src/rfc7523-client-assertions/rules/claims.ts'
import { publicClient } from '../helpers/samples.ts'

const now = 1_800_000_000
const { id } = publicClient
const audience = { issuer: 'https://auth.example', endpoints: ['https://auth.example/token'] }

function assertionOf(claims: Readonly<Record<string, unknown>>): Jws {
  const whole = { iss: id, sub: id, aud: audience.issuer, exp: now + 60, jti: 'j', ...claims }
  return { header: { alg: 'ES256' }, claims: whole, signed: '', signature: Buffer.alloc(0) }
}

const check = (claims: Readonly<Record<string, unknown>>) => () =>
  assertClaims(assertionOf(claims), publicClient, audience, now)

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
    [{ exp: now + 611 }, 'rfc7523-3-exp', 'exp is more than 10 minutes ahead'],
    [{ exp: now - 10 }, 'rfc7523-3-exp', 'exp is missing or over'],
    [{ nbf: now + 11 }, 'rfc7523-3-nbf-iat', 'nbf is no instant, or in the future'],
    [{ iat: now + 11 }, 'rfc7523-3-nbf-iat', 'iat is no instant, or in the future'],
    [{ jti: 'j'.repeat(257) }, 'rfc7523-3-jti-replay', 'jti is missing or longer than 256 characters'],
  ] as const
  for (const [claims, rule, message] of wrong)
    t.throws(check(claims), { code: 'invalid_client', message, detail: { rule } }, JSON.stringify(claims))
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
})
