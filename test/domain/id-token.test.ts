import t from 'tap'
import { accessTokenHash } from '../../src/domain/jws.ts'
import {
  endingOf,
  grantIdOfJwt,
  jwtAccessTokenPayload,
  tokenIdOfJwt,
  verifyJwtAccessToken,
} from '../../src/domain/jwt-access-token.ts'
import { idTokenPayload } from '../../src/specs/oidc-core/rules.ts'
import { active, approvedAt, bytesOf, policy, signedApi } from '../helpers/samples.ts'

const grant = active(1, { nonce: 'n-1', resource: [signedApi.identifier] })
const facts = {
  issuer: 'https://auth.example',
  grant,
  sub: 'alice',
  accessToken: 'jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y',
  algorithm: 'RS256' as const,
  idTokenSeconds: 300,
  claims: {},
  signIn: {},
}

t.test('an ID Token names its user, issuer, client and times', async (t) => {
  t.strictSame(idTokenPayload(facts, approvedAt), {
    iss: 'https://auth.example',
    sub: 'alice',
    aud: 'client-1',
    exp: approvedAt + 300,
    iat: approvedAt,
    acr: 'urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport',
    amr: ['pwd'],
    nonce: 'n-1',
    at_hash: '77QmUPtjPfzWtF2AnpK9RQ',
  })
})

t.test('auth_time is present only when required, and absent values are omitted', async (t) => {
  t.equal(
    idTokenPayload({ ...facts, grant: { ...grant, authTimeOwed: true } }, 1)['auth_time'],
    approvedAt - 5,
  )
  const { nonce: _, ...without } = grant
  const least = idTokenPayload({ ...facts, grant: { ...without, methods: [] } }, 1)
  t.strictSame(Object.keys(least), ['iss', 'sub', 'aud', 'exp', 'iat', 'at_hash'])
})

t.test('acr is what was requested and met, or the class of the methods', async (t) => {
  t.equal(idTokenPayload({ ...facts, grant: { ...grant, acr: 'phr' } }, 1)['acr'], 'phr')
  t.equal(jwtAccessTokenPayload('i', { ...grant, acr: 'phr' }, access, tokenId, 1)['acr'], 'phr')
})

t.test('requested claims never replace the registered ones', async (t) => {
  const claims = { sub: 'bob', iss: 'https://evil.example', aud: 'x', exp: 0, nonce: 'x', name: 'Alice' }
  t.match(idTokenPayload({ ...facts, claims }, approvedAt), {
    sub: 'alice',
    iss: 'https://auth.example',
    aud: 'client-1',
    exp: approvedAt + 300,
    nonce: 'n-1',
    name: 'Alice',
  })
})

t.test('at_hash is the left half of the hash of the algorithm', async (t) => {
  t.equal(accessTokenHash(facts.accessToken, 'RS256'), '77QmUPtjPfzWtF2AnpK9RQ')
  t.equal(accessTokenHash(facts.accessToken, 'ES256'), '77QmUPtjPfzWtF2AnpK9RQ')
  t.equal(Buffer.from(accessTokenHash(facts.accessToken, 'EdDSA'), 'base64url').length, 32)
})

const tokenId = bytesOf('token', 16)
const access = {
  scope: ['courses:read'],
  resource: [signedApi.identifier],
  tokenFormat: 'jwt' as const,
  seconds: 50,
}
const claims = jwtAccessTokenPayload('https://auth.example', grant, access, tokenId, approvedAt)

t.test('a JWT access token names its grant and itself', async (t) => {
  t.strictSame(claims, {
    iss: 'https://auth.example',
    sub: 'alice',
    aud: 'https://signed.example',
    client_id: 'client-1',
    scope: 'courses:read',
    iat: approvedAt,
    exp: approvedAt + 50,
    auth_time: approvedAt - 5,
    acr: 'urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport',
    amr: ['pwd'],
    jti: `${grant.id}.${tokenId}`,
  })
  const unknown = jwtAccessTokenPayload('i', { ...grant, methods: [] }, access, tokenId, 1)
  t.notOk('amr' in unknown || 'acr' in unknown, 'amr and acr are present where they are known')
  t.equal(grantIdOfJwt(claims), grant.id)
  t.equal(tokenIdOfJwt(claims), tokenId)
  t.equal(tokenIdOfJwt({ jti: 'x' }), '')
  const narrowing = { scope: access.scope, resource: access.resource }
  t.strictSame(endingOf(claims), { kind: 'access', seq: 0, expiresAt: approvedAt + 50, tokenId, narrowing })
  t.strictSame(endingOf({ ...claims, scope: '' }).narrowing?.scope, [])
  const bound = jwtAccessTokenPayload('i', grant, access, tokenId, 1, { jkt: 'thumbprint' })
  t.strictSame(bound['cnf'], { jkt: 'thumbprint' })
  t.match(verifyJwtAccessToken({ ...claims, cnf: bound['cnf'] }, grant, policy, approvedAt), {
    confirmation: { jkt: 'thumbprint' },
  })
  const free = verifyJwtAccessToken(claims, grant, policy, approvedAt)
  t.strictSame([free !== undefined, 'confirmation' in (free ?? {})], [true, false])
  const two = { ...access, resource: ['https://a.example', 'https://b.example'] }
  t.strictSame(jwtAccessTokenPayload('i', grant, two, tokenId, 1)['aud'], two.resource)
  for (const jti of [
    undefined,
    5,
    '',
    grant.id,
    `${grant.id}.`,
    `${grant.id}.${tokenId}x`,
    ` ${claims['jti']}`,
  ]) {
    t.equal(grantIdOfJwt({ jti }), undefined)
  }
})

t.test('a JWT access token is valid only with its grant, its lifetime and its jti', async (t) => {
  t.match(verifyJwtAccessToken(claims, grant, policy, approvedAt + 49), {
    kind: 'access',
    scope: ['courses:read'],
    resource: ['https://signed.example'],
    expiresAt: approvedAt + 50,
    tokenId,
  })
  t.equal(verifyJwtAccessToken({ ...claims, scope: '' }, grant, policy, approvedAt), undefined)
  t.equal(verifyJwtAccessToken(claims, undefined, policy, approvedAt), undefined)
  t.equal(verifyJwtAccessToken(claims, grant, policy, approvedAt + 50), undefined)
  t.equal(verifyJwtAccessToken(claims, { ...grant, revokedAt: 1 }, policy, approvedAt), undefined)
  t.equal(verifyJwtAccessToken(claims, { ...grant, revokedTokens: [tokenId] }, policy, approvedAt), undefined)
  t.equal(verifyJwtAccessToken(claims, { ...grant, id: bytesOf('x', 12) }, policy, approvedAt), undefined)
  for (const changes of [{ exp: '1' }, { exp: undefined }, { iat: null }, { jti: 'x' }]) {
    t.equal(verifyJwtAccessToken({ ...claims, ...changes }, grant, policy, approvedAt), undefined)
  }
})
