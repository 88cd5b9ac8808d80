import t from 'tap'
import {
  type Ending,
  mayPresent,
  type TokenFacts,
  verifyAccessToken,
  verifyRefreshToken,
  whyInactive,
  withinSubject,
} from '../../src/domain/access-token.ts'
import { currentGrant } from '../../src/domain/current-grant.ts'
import type { GrantOfToken } from '../../src/domain/model.ts'
import {
  active,
  approved,
  approvedAt,
  bytesOf,
  opened,
  operatorClient,
  otherApi,
  otherClient,
  ownApi,
  policy,
  publicClient,
  resources,
} from '../helpers/samples.ts'

const ending: Ending = { kind: 'access', seq: 2, expiresAt: approvedAt + 100, tokenId: 'token' }
const why = (changes: Partial<Ending> = {}, grant: GrantOfToken | undefined = active(2), now = approvedAt) =>
  whyInactive({ ...ending, ...changes }, grant, policy, now)

t.test('nothing is held against a token or code that is valid', async (t) => {
  t.equal(why(), undefined)
  t.equal(why({ seq: 1 }), undefined, 'an access token outlives a rotation')
  t.equal(why({ kind: 'refresh' }), undefined)
  t.equal(why({ kind: 'code', seq: 0 }, approved), undefined)
  t.equal(why({}, active(2), approvedAt + 99), undefined)
})

t.test('an expired token or code names the rule of its kind', async (t) => {
  const rules = {
    access: 'rfc6750-5.3-short-lived',
    refresh: 'rfc9700-4.14.2-inactive-expiry',
    code: 'rfc6749-4.1.2-code-short-lived',
  } as const
  for (const kind of ['access', 'refresh', 'code'] as const) {
    const expected = { rule: rules[kind], why: `it expired at ${approvedAt + 100}` }
    for (const now of [approvedAt + 100, approvedAt + 101])
      t.strictSame(
        whyInactive({ ...ending, kind }, active(2, { refreshExpiresAt: approvedAt + 100 }), policy, now),
        expected,
      )
  }
})

t.test('the row says when the current refresh token expires, and only that one', async (t) => {
  const later = active(2, { refreshExpiresAt: approvedAt + 500 })
  t.equal(why({ kind: 'refresh' }, later, approvedAt + 100), undefined)
  t.match(why({ kind: 'refresh' }, later, approvedAt + 500), { rule: 'rfc9700-4.14.2-inactive-expiry' })
  t.match(why({ kind: 'refresh', seq: 1 }, later, approvedAt + 100), {
    why: `it expired at ${approvedAt + 100}`,
  })
  t.match(why({}, later, approvedAt + 100), { rule: 'rfc6750-5.3-short-lived' })
})

t.test('the facts of a bound token name the key, and those of another name none', async (t) => {
  const grant = active(2)
  const confirmation = { jkt: 'the thumbprint' }
  for (const handle of [
    opened(grant, 'access', { confirmation }),
    opened(grant, 'refresh', { confirmation }),
  ]) {
    const verified =
      handle.kind === 'access'
        ? verifyAccessToken(handle, grant, policy, approvedAt)
        : verifyRefreshToken(handle, grant, policy, approvedAt)
    t.strictSame(verified?.confirmation, confirmation, handle.kind)
  }
  t.notOk('confirmation' in (verifyAccessToken(opened(grant, 'access'), grant, policy, approvedAt) ?? {}))
  t.notOk('confirmation' in (verifyRefreshToken(opened(grant, 'refresh'), grant, policy, approvedAt) ?? {}))
})

t.test('a token of a removed grant says so, and whether it had expired', async (t) => {
  t.match(whyInactive(ending, undefined, policy, approvedAt), {
    rule: 'lychgate-grant-exists',
    why: /^its grant is no longer stored; by its own times it is valid until 10100$/,
  })
  t.match(whyInactive(ending, undefined, policy, approvedAt + 100), {
    rule: 'rfc6750-5.3-short-lived',
    why: /^it expired at 10100, and its grant is no longer stored$/,
  })
})

t.test('a revoked grant names its reason, and a revocation without one that of RFC 7009', async (t) => {
  const revoked = active(2, { revokedAt: approvedAt, revokedBy: 'rfc7009-2.1-refresh-cascades' })
  t.match(why({}, revoked), { rule: 'rfc7009-2.1-refresh-cascades', why: /was revoked at 10000/ })
  t.match(why({}, active(2, { revokedAt: approvedAt })), { rule: 'rfc7009-2.1-immediate' })
  t.match(why({}, revoked, approvedAt + 200), { rule: 'rfc7009-2.1-refresh-cascades' }, 'before its expiry')
})

t.test('a token may be revoked alone, newer than its grant, or used', async (t) => {
  t.match(why({}, active(2, { revokedTokens: ['token'] })), { rule: 'rfc7009-2-access-revocation' })
  t.equal(why({}, active(2, { revokedTokens: ['another'] })), undefined)
  t.match(why({ seq: 3 }), { rule: 'lychgate-grant-exists', why: /restored from a backup/ })
  t.match(why({ kind: 'code', seq: 0 }, active(1)), { rule: 'rfc6749-4.1.2-code-single-use' })
  t.match(why({ kind: 'refresh', seq: 1 }), { rule: 'rfc9700-4.14.2-reuse-revokes-family' })
})

t.test('a token is presented only by its client and its resource servers', async (t) => {
  const [grant, tokenId] = [active(3), bytesOf('token', 16)]
  const token = (kind: TokenFacts['kind'], resource = [otherApi.identifier]): TokenFacts => {
    const times = { issuedAt: approvedAt, expiresAt: approvedAt + 50 }
    return { kind, grant, scope: ['courses:read'], resource, tokenId, ...times }
  }
  const server = (...introspects: string[]) => ({
    ...operatorClient,
    origin: 'resource-server' as const,
    introspects,
  })
  t.ok(mayPresent(publicClient, token('access'), resources))
  t.ok(mayPresent(publicClient, token('refresh'), resources))
  t.notOk(mayPresent(otherClient, token('access'), resources))
  t.notOk(mayPresent(operatorClient, token('access'), resources))
  t.ok(mayPresent(server(otherApi.identifier), token('access'), resources))
  t.notOk(mayPresent(server(otherApi.identifier), token('refresh'), resources))
  t.notOk(mayPresent(server(ownApi.identifier), token('access'), resources))
  t.ok(mayPresent(server('https://auth.example/'), token('access', [ownApi.identifier]), resources))
  t.notOk(mayPresent(server(), token('access', []), resources))
  // A resource that is in the configuration no more.
  const former = 'https://former.example'
  t.ok(mayPresent(server(former), token('access', [former]), resources))
})

t.test('an exchanged token may do what is left of the token that it was exchanged for', async (t) => {
  const part = { scope: ['courses:read', 'courses:write'], resource: [ownApi.identifier] }
  const left = (changes: Partial<GrantOfToken>, wanted = part) =>
    withinSubject(wanted, { tokenId: 'token' }, active(1, changes), policy)
  t.strictSame(left({}), part)
  t.strictSame(left({ revokedTokens: ['another'] }), part)
  t.strictSame(left({ scope: ['courses:read'] }), { ...part, scope: ['courses:read'] })
  const both = { ...part, resource: [ownApi.identifier, otherApi.identifier] }
  t.strictSame(left({}, both), part, 'a resource that was taken from it')
  const ended = { rule: 'lychgate-subject-token-valid' }
  t.match(withinSubject(part, { tokenId: 'token' }, undefined, policy), ended)
  t.match(left({ revokedAt: approvedAt }), { ...ended, why: /was revoked/ })
  t.match(left({ revokedTokens: ['token'] }), { ...ended, why: /was revoked/ })
  const nothing = { rule: 'lychgate-currently-allowed' }
  t.match(left({ scope: ['openid'] }), nothing)
  t.match(left({ resource: [otherApi.identifier], scope: ['courses:read'] }), nothing)
  t.match(left({ client: { ...publicClient, grantTypes: [] } }), nothing, 'its client lost its grant type')
})

t.test('an exchanged token needs the grant type of its client, and stays within its resources', async (t) => {
  const exchangedFrom = { grantId: bytesOf('other', 12), tokenId: 'token', clientId: publicClient.id }
  const grantTypes = policy.grantTypes.fromToken
  const [resource, scope] = [[ownApi.identifier, otherApi.identifier], ['courses:read']]
  const left = (client: GrantOfToken['client']) =>
    currentGrant(active(1, { exchangedFrom, resource, scope }), client, policy)
  t.match(left({ origin: 'resource-server', grantTypes }), { resource, scope })
  t.match(left({ ...publicClient }), { rule: 'lychgate-currently-allowed' })
  t.match(left({ origin: 'integration', grantTypes, resources: [otherApi.identifier] }), {
    resource: [otherApi.identifier],
  })
})
