import t from 'tap'
import { redeemCode } from '../../src/domain/authorization-code.ts'
import { openHandle, sealHandle } from '../../src/domain/handle.ts'
import type { Client } from '../../src/domain/model.ts'
import { passedDuring } from '../helpers/checks.ts'
import {
  active,
  approved,
  approvedAt,
  bytesOf,
  codeVerifier,
  contentsOf,
  handleKey,
  handleKeys,
  lifetimes,
  opened,
  otherApi,
  otherClient,
  ownApi,
  policy,
  publicClient,
  redirectUri,
  resultOf,
} from '../helpers/samples.ts'

const redemption = {
  handle: opened(approved, 'code'),
  client: publicClient,
  redirectUri,
  codeVerifier,
  resource: [],
}
type Changes = Partial<Parameters<typeof redeemCode>[1]>
const redeem = (grant: Parameters<typeof redeemCode>[0], changes: Changes = {}, now = approvedAt) =>
  redeemCode(grant, { ...redemption, ...changes }, policy, lifetimes, now)

t.test('a code is redeemed for what was granted', async (t) => {
  const { grant, terms } = resultOf(redeem(approved))
  t.match(grant, { seq: 1, scope: approved.scope })
  t.match(terms, {
    scope: approved.scope,
    resource: [ownApi.identifier],
    tokenFormat: 'opaque',
    seconds: 100,
  })
})

const forgedByKey = openHandle(
  handleKeys,
  sealHandle(contentsOf(approved, 'code'), handleKey, bytesOf('x', 16)),
  'code',
)
const wrong: Readonly<Record<string, [Changes, code: string, rule?: string]>> = {
  'another client': [{ client: otherClient }, 'invalid_grant', 'rfc6749-4.1.3-code-issued-to-client'],
  'no redirect URI': [{ redirectUri: undefined }, 'invalid_grant', 'rfc6749-4.1.3-redirect-uri-required'],
  'another port': [
    { redirectUri: 'http://127.0.0.1:51005/callback' },
    'invalid_grant',
    'rfc6749-4.1.3-redirect-uri-identical',
  ],
  'no verifier': [{ codeVerifier: undefined }, 'invalid_grant'],
  'a wrong verifier': [{ codeVerifier: 'w'.repeat(43) }, 'invalid_grant'],
  'a short verifier': [{ codeVerifier: 'v' }, 'invalid_grant'],
  'an unknown resource': [{ resource: ['https://nowhere.example'] }, 'invalid_target'],
  'a resource that was not granted': [{ resource: [otherApi.identifier] }, 'invalid_target'],
  'a handle sealed without the row': [
    { handle: forgedByKey ?? redemption.handle },
    'invalid_grant',
    'rfc6749-4.1.3-code-valid',
  ],
}

t.test('a failed redemption throws and writes nothing, before and after the redemption', async (t) => {
  t.ok(forgedByKey)
  for (const [about, [changes, code, rule]] of Object.entries(wrong)) {
    for (const grant of [approved, active(), active(4)]) {
      t.throws(() => redeem(grant, changes), { code, ...(rule && { detail: { rule } }) }, about)
    }
  }
  t.throws(() => redeem(undefined), { code: 'invalid_grant' })
  t.throws(() => redeem({ ...approved, id: bytesOf('another', 12) }), { code: 'invalid_grant' })
})

t.test('only an otherwise valid replay revokes the grant', async (t) => {
  t.match(redeem(active()), {
    rejection: { code: 'invalid_grant' },
    writes: [{ op: 'revokeGrant', at: approvedAt }],
  })
})

t.test('the redirect URI may be omitted exactly when the authorization request omitted it', async (t) => {
  const implied = { ...approved, redirectUriSent: false }
  t.ok(resultOf(redeem(implied, { redirectUri: undefined })))
  t.ok(resultOf(redeem(implied)))
  const passed = passedDuring(() => resultOf(redeem(implied, { redirectUri: undefined })))
  t.ok(passed.some(({ rule }) => rule === 'rfc6749-4.1.3-redirect-uri-identical'))
  t.throws(() => redeem(implied, { redirectUri: 'http://127.0.0.1:1/callback' }), { code: 'invalid_grant' })
})

t.test('a verifier without a challenge is rejected', async (t) => {
  const { codeChallenge: _, ...unproven } = approved
  t.throws(() => redeem(unproven), { code: 'invalid_request' })
  const client = { ...publicClient, pkceOptional: true }
  t.ok(resultOf(redeem(unproven, { client, codeVerifier: undefined })))
})

t.test('a client without refresh tokens gets a grant that ends with its access token', async (t) => {
  const client: Client = { ...publicClient, grantTypes: ['authorization_code'] }
  const { grant } = resultOf(redeem(approved, { client }))
  t.equal(grant.refreshExpiresAt, undefined)
  t.equal(grant.expiresAt, approvedAt + 100)
})
