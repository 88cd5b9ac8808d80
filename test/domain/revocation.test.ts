import t from 'tap'
import { revokeJwt, revokeToken } from '../../src/specs/rfc7009-revocation/rules.ts'
import { passedDuring } from '../helpers/checks.ts'
import { active, approvedAt, bytesOf, opened, otherClient, publicClient } from '../helpers/samples.ts'

const grant = active(3)
const at = approvedAt + 5
const nothing = { result: undefined, writes: [] }

t.test('any refresh token of a grant, old or current, revokes the grant', async (t) => {
  for (const seq of [1, 2, 3]) {
    const handle = opened(active(seq), 'refresh')
    t.strictSame(revokeToken(handle, grant, publicClient, at).writes, [
      { op: 'revokeGrant', grantId: grant.id, at, rule: 'rfc7009-2.1-refresh-cascades' },
    ])
  }
})

t.test('an access token revokes only itself', async (t) => {
  const handle = opened(grant, 'access')
  t.strictSame(revokeToken(handle, grant, publicClient, at).writes, [
    { op: 'revokeAccessToken', grantId: grant.id, tokenId: handle.tokenId, expiresAt: handle.expiresAt },
  ])
})

t.test('a dead or unknown token is no error and no write', async (t) => {
  const [access, refreshToken] = [opened(grant, 'access'), opened(grant, 'refresh')]
  t.strictSame(revokeToken(access, undefined, publicClient, at), nothing)
  t.strictSame(revokeToken(access, { ...grant, secret: bytesOf('x', 16) }, publicClient, at), nothing)
  const passed = passedDuring(() => revokeToken(access, undefined, publicClient, at))
  t.match(passed, [{ rule: 'rfc7009-2.2-unknown-token-200' }])
  t.strictSame(revokeToken(access, grant, publicClient, access.expiresAt), nothing)
  t.strictSame(revokeToken(access, { ...grant, revokedTokens: [access.tokenId] }, publicClient, at), nothing)
  t.strictSame(revokeToken(refreshToken, { ...grant, revokedAt: 1 }, publicClient, at), nothing)
})

t.test('the token of another client is rejected and stays valid', async (t) => {
  for (const kind of ['access', 'refresh'] as const) {
    t.throws(() => revokeToken(opened(grant, kind), grant, otherClient, at), {
      code: 'invalid_grant',
      status: 400,
      detail: { rule: 'rfc7009-2.1-issued-to-client' },
    })
  }
  t.throws(() => revokeJwt(claims, grant, otherClient.id, at), { code: 'invalid_grant' })
})

const tokenId = bytesOf('token', 16)
const claims = {
  jti: `${grant.id}.${tokenId}`,
  iat: approvedAt,
  exp: approvedAt + 50,
  aud: 'x',
  scope: 'a b',
}

t.test('a signed access token is revoked by its jti', async (t) => {
  t.strictSame(revokeJwt(claims, grant, publicClient.id, at).writes, [
    { op: 'revokeAccessToken', grantId: grant.id, tokenId, expiresAt: approvedAt + 50 },
  ])
  t.strictSame(revokeJwt(claims, undefined, publicClient.id, at), nothing)
  t.strictSame(revokeJwt(claims, grant, publicClient.id, approvedAt + 50), nothing)
  t.strictSame(revokeJwt(claims, { ...grant, revokedTokens: [tokenId] }, publicClient.id, at), nothing)
  t.strictSame(revokeJwt({ ...claims, jti: 'x' }, grant, publicClient.id, at), nothing)
})
