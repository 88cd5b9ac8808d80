import t from 'tap'
import { bearerChallenge, bearerError, parseBearer, readToken } from '../../src/domain/bearer.ts'

t.test('no header, and another scheme, count as no token', async (t) => {
  for (const header of [
    undefined,
    '',
    'Basic YTpi',
    'Bearerx abc',
    'DPoP abc',
    ' Bearer abc',
    'Bear er x',
    '\0Bearer a',
  ]) {
    t.strictSame(parseBearer(header), { kind: 'absent' }, JSON.stringify(header))
  }
})

t.test('the scheme is case-insensitive, and spaces around the token are ignored', async (t) => {
  for (const header of ['Bearer a.b-c_d~e+f/g==', 'bearer a.b-c_d~e+f/g==', 'BEARER   a.b-c_d~e+f/g==  ']) {
    t.strictSame(parseBearer(header), { kind: 'token', token: 'a.b-c_d~e+f/g==' }, header)
  }
})

t.test('Bearer with anything but one b64token is malformed', async (t) => {
  for (const header of [
    'Bearer',
    'Bearer ',
    'bearer\t',
    'Bearer\tabc',
    'Bearer a b',
    'Bearer a,b',
    'Bearer "a"',
    'Bearer a=b',
    'Bearer =',
    'Bearer é',
    'Bearer a\0',
    'Bearer a\n',
    `Bearer ${'a'.repeat(8193)}`,
  ]) {
    t.strictSame(parseBearer(header), { kind: 'malformed' }, JSON.stringify(header.slice(0, 20)))
  }
  t.match(parseBearer(`Bearer ${'a'.repeat(8192)}`), { kind: 'token' })
})

t.test('a very long header is parsed in one pass', async (t) => {
  const started = performance.now()
  parseBearer(`Bearer ${' '.repeat(100_000)}a${'='.repeat(100_000)} ${' '.repeat(100_000)}x`)
  // One pass takes milliseconds. One pass per character takes many times as long as is allowed here.
  t.ok(performance.now() - started < 5000)
})

t.test('a challenge has each member once, the error first', async (t) => {
  const resourceMetadata = 'https://a.example/.well-known/oauth-protected-resource'
  t.equal(bearerChallenge({ resourceMetadata }), `Bearer resource_metadata="${resourceMetadata}"`)
  t.equal(bearerChallenge({ resourceMetadata, scope: [] }), `Bearer resource_metadata="${resourceMetadata}"`)
  const rejection = bearerError('insufficient_scope', 'not enough', resourceMetadata, {
    rule: 'x',
    scope: ['a', 'b'],
  })
  t.match(rejection, { code: 'insufficient_scope', status: 403 })
  t.equal(
    rejection.headers['www-authenticate'],
    `Bearer error="insufficient_scope", error_description="not enough", scope="a b", resource_metadata="${resourceMetadata}"`,
  )
  t.strictSame(rejection.detail.received, ['a', 'b'], 'the scope, where the operation needs one')
  const invalid = bearerError('invalid_token', 'x', resourceMetadata, { rule: 'x', received: 'y' })
  t.match(invalid, { status: 401, detail: { rule: 'x', received: 'y' } })
  t.equal(bearerError('invalid_request', 'x', resourceMetadata, { rule: 'x' }).status, 400)
})

t.test('a token is read under the scheme that it is sent with', async (t) => {
  const dpop = { name: 'DPoP', member: 'jkt', challenge: { algs: 'ES256 EdDSA' } }
  const other = { ...dpop, name: 'Other' }
  const token = { kind: 'token', token: 'abc' } as const
  t.strictSame(readToken('dpop abc', [other, dpop]), { scheme: dpop, credentials: token })
  t.strictSame(readToken('DPoP a b', [other, dpop]), { scheme: dpop, credentials: { kind: 'malformed' } })
  t.strictSame(readToken('Bearer abc', [other, dpop]), { scheme: undefined, credentials: token })
  t.strictSame(readToken(undefined, [dpop]), { scheme: undefined, credentials: { kind: 'absent' } })
  t.equal(
    bearerChallenge({ scheme: dpop, error: 'invalid_token' }),
    'DPoP error="invalid_token", algs="ES256 EdDSA"',
  )
  t.equal(bearerChallenge({ scope: ['a'], description: 'x' }), 'Bearer error_description="x", scope="a"')
})
