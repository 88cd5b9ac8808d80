import t from 'tap'
import { OAuthError } from '../../src/domain/errors.ts'
import type { Jws } from '../../src/domain/jws.ts'
import { parseKeySet } from '../../src/domain/key-set.ts'
import type { Parameters } from '../../src/domain/parameters.ts'
import {
  failureOf,
  isForeign,
  readAssertion,
} from '../../src/specs/rfc7523-client-assertions/rules/assertion.ts'
import { assertCanSign } from '../../src/specs/rfc7523-client-assertions/rules/registration.ts'
import { makeClientKey } from '../helpers/assertions.ts'
import { publicClient } from '../helpers/samples.ts'

const { id } = publicClient

function assertionOf(claims: Readonly<Record<string, unknown>>): Jws {
  const whole = { iss: id, sub: id, ...claims }
  return { header: { alg: 'ES256' }, claims: whole, signed: '', signature: Buffer.alloc(0) }
}

const own = { iss: id, sub: id }
const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const jwt = (claims: object) => `${part({ alg: 'ES256' })}.${part(claims)}.${part({})}`
const type = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer'
const read = (parameters: Parameters, alwaysUnauthorized = false) =>
  readAssertion(parameters, { alwaysUnauthorized })
const readToken = (text: string, more: Parameters = {}) =>
  read({ client_assertion_type: type, client_assertion: text, ...more })

t.test('an assertion names its client by sub, unless another issuer made it', async (t) => {
  t.equal(read({}), undefined)
  t.equal(read({ client_id: id, client_secret: 'x' }), undefined, 'it authenticates in another way')
  for (const sub of [id, '!', '~', 'c'.repeat(200)]) {
    const text = jwt({ iss: sub, sub })
    t.strictSame(readToken(text), { clientId: sub, proof: text })
    t.strictSame(readToken(text, { client_id: sub }), { clientId: sub, proof: text })
  }
  const foreign = jwt({ iss: 'https://issuer.example', sub: 'repo:a/b c' })
  t.strictSame(readToken(foreign), { proof: foreign })
  t.strictSame(readToken(foreign, { client_id: id }), { proof: foreign })
})

t.test('another issuer is a URL, and not the client itself', async (t) => {
  for (const [iss, isOther] of [
    ['https://issuer.example', true],
    ['http://127.0.0.1:9500', true],
    [id, false],
    ['issuer https://a.example', false],
    ['httpss://issuer.example', false],
    [['https://issuer.example'], false],
    [undefined, false],
  ] as const)
    t.equal(isForeign(assertionOf({ iss })), isOther, JSON.stringify(iss))
  // The client_id of a client that publishes its metadata is a URL.
  const published = 'https://app.example/client'
  t.equal(isForeign(assertionOf({ iss: published, sub: published })), false)
})

t.test('parameters that are no assertion of one client are rejected, and the log says why', async (t) => {
  const rule = 'rfc7523-2.2-parameters'
  const noJwt = 'client_assertion is not one signed JWT without repeated members'
  const token = jwt(own)
  const whole = { client_assertion_type: type, client_assertion: token }
  const wrongSub = { rule: 'rfc7523-3-iss-sub', received: 'sub is not a client_id', stored: undefined }
  const wrong: readonly (readonly [Parameters, object])[] = [
    [{ client_assertion: token }, { rule, received: 'client_assertion_type: absent', stored: type }],
    [
      { ...whole, client_assertion_type: 'urn:x' },
      { rule, received: 'client_assertion_type: urn:x', stored: type },
    ],
    [{ client_assertion_type: type }, { rule, received: noJwt, stored: undefined }],
    [
      { ...whole, client_assertion: 'a.b' },
      { rule, received: noJwt, stored: undefined },
    ],
    ...[undefined, 7, '', ' a', 'a ', 'a b', 'é', 'c'.repeat(201)].map(
      (sub) => [{ ...whole, client_assertion: jwt({ iss: id, sub }) }, wrongSub] as const,
    ),
    [
      { ...whole, client_id: 'client-2' },
      { rule: 'rfc7523-3-client-id-agrees', received: 'client_id: client-2', stored: `sub: ${id}` },
    ],
  ]
  for (const [parameters, detail] of wrong)
    for (const always of [true, false]) {
      const error = { code: 'invalid_client', message: 'client authentication failed' }
      const status = always ? 401 : 400
      const about = JSON.stringify(parameters)
      t.throws(() => read(parameters, always), { ...error, status, detail }, about)
    }
})

t.test('an assertion that is not accepted has a reason, and any other error stays one', async (t) => {
  const error = new OAuthError('invalid_client', 'exp is over', {
    rule: 'rfc7523-3-exp',
    stored: 1,
    received: 2,
  })
  t.strictSame(failureOf(error), { rule: 'rfc7523-3-exp', why: 'exp is over', stored: 1, received: 2 })
  const other = new RangeError('out of memory')
  t.throws(() => failureOf(other), other)
})

t.test(
  'a client registers a key for its algorithm, where its keys are, or an issuer it trusts',
  async (t) => {
    const [ec, rsa] = [makeClientKey('ES256').jwk, makeClientKey('RS256').jwk]
    const jwks = (...keys: readonly object[]) => ({ keys: parseKeySet({ keys }) })
    const trusted = [{ issuer: 'https://issuer.example', subject: 's' }]
    const signing = (name: string) => ({ token_endpoint_auth_signing_alg: name })
    for (const [index, extra] of [
      { jwks: jwks(ec) },
      { jwks: jwks(ec), ...signing('ES256') },
      { jwks: jwks(rsa), ...signing('PS256') },
      { jwks: jwks(ec, rsa), ...signing('RS256') },
      { jwks: jwks(rsa, ec), ...signing('RS256'), trusted_issuers: trusted },
      { jwks_uri: 'https://app.example/keys' },
      { jwks_uri: 'https://app.example/keys', trusted_issuers: trusted },
      { trusted_issuers: trusted, ...signing('RS256') },
    ].entries())
      t.doesNotThrow(() => assertCanSign(extra), String(index))
    const none = 'private_key_jwt needs jwks, jwks_uri or trusted_issuers'
    const unfit = 'jwks has no key for token_endpoint_auth_signing_alg'
    for (const [extra, message] of [
      [{}, none],
      [signing('RS256'), none],
      [{ jwks: jwks(ec), ...signing('RS256') }, unfit],
      [{ jwks: jwks(ec), ...signing('RS256'), trusted_issuers: trusted }, unfit],
    ] as const) {
      const detail = { rule: 'rfc7523-2.2-registration' }
      t.throws(() => assertCanSign(extra), { code: 'invalid_client_metadata', message, detail }, message)
    }
  },
)
