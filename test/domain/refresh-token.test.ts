import t from 'tap'
import { verifyAccessToken, verifyRefreshToken } from '../../src/domain/access-token.ts'
import type { Handle } from '../../src/domain/handle.ts'
import type { Grant, GrantOfToken } from '../../src/domain/model.ts'
import { refresh } from '../../src/domain/refresh-token.ts'
import { passedDuring } from '../helpers/checks.ts'
import {
  active,
  approved,
  approvedAt,
  bytesOf,
  lifetimes,
  opened,
  otherApi,
  otherClient,
  ownApi,
  policy,
  publicClient,
  resultOf,
} from '../helpers/samples.ts'

type Changes = Partial<Parameters<typeof refresh>[1]>
const grant = active(2)
const request = { handle: opened(grant, 'refresh'), client: publicClient, scope: undefined, resource: [] }
const ask = (row: Grant | undefined, changes: Changes = {}, now = approvedAt + 50) =>
  refresh(row, { ...request, ...changes }, policy, lifetimes, now)

t.test('a refresh rotates, and without a scope covers the whole grant', async (t) => {
  const { grant: rotated, terms: access } = resultOf(ask(grant))
  t.match(rotated, { seq: 3, scope: grant.scope, resource: grant.resource })
  t.strictSame(access.scope, grant.scope)
})

t.test('a refresh tells which rule of the scope it followed', async (t) => {
  const rulesOf = (scope: string | undefined) =>
    passedDuring(() => resultOf(ask(grant, { scope }))).map(({ rule }) => rule)
  t.ok(rulesOf(undefined).includes('rfc6749-6-scope-omitted-original'))
  t.ok(rulesOf('courses:read').includes('rfc6749-6-scope-narrow'))
  const narrowed = passedDuring(() => resultOf(ask(grant, { scope: 'courses:read' })))
  t.match(
    narrowed.find(({ rule }) => rule === 'rfc6749-6-scope-narrow'),
    { received: ['courses:read'] },
  )
})

t.test('a refresh that goes beyond its grant names the first scope that does', async (t) => {
  t.throws(() => ask(grant, { scope: 'courses:read profile email' }), {
    code: 'invalid_scope',
    detail: { received: 'profile' },
  })
})

t.test('a narrower scope applies only to the access token', async (t) => {
  const { grant: rotated, terms: access } = resultOf(ask(grant, { scope: 'courses:read' }))
  t.strictSame(access.scope, ['courses:read'])
  t.strictSame(rotated.scope, grant.scope)
  const next = { handle: opened(rotated, 'refresh') }
  t.strictSame(resultOf(ask(rotated, next)).terms.scope, grant.scope)
})

t.test('a rejected refresh leaves the token usable: it throws, and nothing is written', async (t) => {
  const rows: [string, Changes, string, rule?: string][] = [
    ['another client', { client: otherClient }, 'invalid_grant', 'rfc6749-6-bound-to-client'],
    ['a wider scope', { scope: 'courses:read profile' }, 'invalid_scope', 'rfc6749-6-scope-exceed'],
    ['a malformed scope', { scope: '"' }, 'invalid_scope'],
    ['an unknown resource', { resource: ['https://nowhere.example'] }, 'invalid_target'],
    ['a resource beyond the grant', { resource: [otherApi.identifier] }, 'invalid_target'],
    ['a scope no resource knows', { scope: ' ' }, 'invalid_target'],
  ]
  for (const [about, changes, code, rule] of rows)
    t.throws(() => ask(grant, changes), { code, ...(rule && { detail: { rule } }) }, about)
  t.throws(() => ask(undefined), { code: 'invalid_grant', detail: { rule: 'rfc6749-6-invalid-refresh' } })
  t.throws(() => ask({ ...grant, secret: bytesOf('x', 16) }), { code: 'invalid_grant' })
})

t.test('another client that has a used token cannot revoke the grant with it', async (t) => {
  const old = { handle: opened(active(1), 'refresh') }
  t.throws(() => ask(active(5), { ...old, client: otherClient }), { code: 'invalid_grant' })
  t.throws(() => ask(active(5), { ...old, scope: 'profile' }), { code: 'invalid_scope' })
  t.match(ask(active(5), old), { writes: [{ op: 'revokeGrant' }] })
})

t.test('introspection describes an active access token', async (t) => {
  const facts = (changes: Partial<Handle>, row: GrantOfToken | undefined = grant, now = approvedAt + 50) =>
    verifyAccessToken(opened(grant, 'access', changes), row, policy, now)
  t.match(facts({}), {
    kind: 'access',
    scope: grant.scope,
    resource: [ownApi.identifier],
    issuedAt: approvedAt,
    expiresAt: approvedAt + 100,
  })
  const narrowing = { scope: ['courses:read'], resource: [otherApi.identifier] }
  t.match(facts({ narrowing }, { ...grant, resource: [...grant.resource, otherApi.identifier] }), narrowing)
  t.ok(facts({ seq: 1 }), 'one from before the rotation lives on')
  t.ok(facts({}, grant, approvedAt + 99))
})

t.test('introspection says nothing about an inactive one', async (t) => {
  const handle = opened(grant, 'access')
  const verify = (row: GrantOfToken | undefined, now = approvedAt + 50) =>
    verifyAccessToken(handle, row, policy, now)
  t.equal(verify(undefined), undefined)
  t.equal(verify(grant, approvedAt + 100), undefined)
  t.equal(verify({ ...grant, revokedAt: 1 }), undefined)
  t.equal(verify({ ...grant, revokedTokens: ['x', handle.tokenId] }), undefined)
  t.equal(verify({ ...grant, secret: bytesOf('x', 16) }), undefined)
  t.equal(verify({ ...grant, seq: 1 }), undefined, 'from a future the database has lost')
  t.ok(verify({ ...grant, revokedTokens: ['x'] }))
})

t.test('a token is accepted only as its own kind', async (t) => {
  for (const kind of ['code', 'refresh'] as const) {
    t.equal(verifyAccessToken(opened(grant, kind), grant, policy, approvedAt + 1), undefined)
  }
  for (const kind of ['code', 'access'] as const) {
    t.equal(verifyRefreshToken(opened(grant, kind), grant, policy, approvedAt + 1), undefined)
  }
})

t.test('only the current refresh token is active', async (t) => {
  const live = (handle: Parameters<typeof verifyRefreshToken>[0], row: GrantOfToken, now = approvedAt + 1) =>
    verifyRefreshToken(handle, row, policy, now)
  t.match(live(opened(grant, 'refresh'), grant), { kind: 'refresh', scope: approved.scope })
  t.equal(live(opened(active(1), 'refresh'), grant), undefined)
  t.equal(live(opened(grant, 'refresh'), grant, approvedAt + 1000), undefined)
  t.equal(live(opened(grant, 'refresh'), { ...grant, revokedAt: 1 }), undefined)
})
