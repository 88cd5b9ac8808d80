import t from 'tap'
import {
  approveGrant,
  canGrantLive,
  isGrantAlive,
  issueGrant,
  mintGrantId,
  redeemGrant,
  revokeGrant,
  rotateGrant,
} from '../../src/domain/grant.ts'
import { passedDuring } from '../helpers/checks.ts'
import {
  active,
  approved,
  approvedAt,
  authorizationRequest,
  bytesOf,
  lifetimes,
  session,
} from '../helpers/samples.ts'

const issue = { accessTokenSeconds: 100, refreshable: true }
/** The rule of a revocation in this file. */
const rule = 'rfc7009-2.1-refresh-cascades'
const once = { accessTokenSeconds: 100, refreshable: false }

t.test('a new grant stores what was requested, who approved it and when everything expires', async (t) => {
  const fresh = { grantId: approved.id, grantSecret: approved.secret, authTimeOwed: true }
  const request = { ...authorizationRequest, nonce: 'n', redirectUriSent: false }
  const grant = approveGrant(request, session, ['openid'], fresh, lifetimes, approvedAt)
  t.strictSame(grant, {
    id: approved.id,
    secret: approved.secret,
    clientId: request.clientId,
    userId: session.userId,
    scope: ['openid'],
    resource: request.resource,
    redirectUri: request.redirectUri,
    redirectUriSent: false,
    codeChallenge: request.codeChallenge,
    nonce: 'n',
    authenticatedAt: session.authenticatedAt,
    methods: ['pwd'],
    authTimeOwed: true,
    claims: { userinfo: [], idToken: [] },
    approvedAt,
    seq: 0,
    absoluteExpiresAt: approvedAt + 3000,
    expiresAt: approvedAt + 60,
  })
})

t.test(
  'a new grant keeps the requested context class that the sign-in satisfies, and no other',
  async (t) => {
    const fresh = { grantId: approved.id, grantSecret: approved.secret, authTimeOwed: false }
    const acrOf = (values: readonly string[] | undefined, methods: readonly string[]) => {
      const acr = values && { values, essential: false }
      const request = { ...authorizationRequest, ...(acr && { acr }) }
      return approveGrant(request, { ...session, methods }, ['openid'], fresh, lifetimes, approvedAt).acr
    }
    t.equal(acrOf(['phr'], ['pop', 'user', 'mfa']), 'phr')
    t.equal(
      acrOf(['phr', 'https://refeds.org/profile/mfa'], ['pwd', 'otp', 'mfa']),
      'https://refeds.org/profile/mfa',
    )
    t.equal(acrOf(['phr'], ['pwd']), undefined)
    t.equal(acrOf(undefined, ['pwd']), undefined)
  },
)

t.test('a grant without a user is active, and ends with its access token', async (t) => {
  const about = { clientId: 'client-1', scope: ['courses:read'], resource: ['https://api.example'] }
  const fresh = { id: approved.id, secret: approved.secret }
  const grant = issueGrant(about, fresh, approvedAt, 100)
  const expiresAt = approvedAt + 100
  t.match(grant, {
    ...about,
    ...fresh,
    seq: 1,
    expiresAt,
    absoluteExpiresAt: expiresAt,
  })
  t.equal(grant.redirectUri, '')
  t.match(grant, { redirectUriSent: false, authTimeOwed: false, userId: undefined, rotatedAt: undefined })
})

t.test('a grant is alive until it is revoked or has expired', async (t) => {
  t.ok(isGrantAlive(approved, approved.expiresAt - 1))
  t.notOk(isGrantAlive(approved, approved.expiresAt))
  t.notOk(isGrantAlive({ ...approved, revokedAt: approvedAt }, approvedAt))
})

t.test('a grant id is 16 characters, ordered by time', async (t) => {
  const ids = [1, 2, 256, 70_000].map((now) => mintGrantId(Buffer.alloc(8, 255 - (now % 255)), now))
  for (const id of ids) t.match(id, /^[\w-]{16}$/)
  const bytes = ids.map((id) => Buffer.from(id, 'base64url'))
  t.strictSame([...bytes].sort(Buffer.compare), bytes)
  t.not(mintGrantId(Buffer.alloc(8, 1), 5), mintGrantId(Buffer.alloc(8, 2), 5))
  const whole = Buffer.from(mintGrantId(Buffer.from('1122334455667788', 'hex'), 5), 'base64url')
  t.equal(whole.toString('hex'), '000000051122334455667788', 'all 8 random bytes')
})

t.test('redeeming activates the grant, until the code expires', async (t) => {
  for (const now of [approvedAt, approvedAt + 59]) {
    const refreshExpiresAt = now + 1000
    t.match(redeemGrant(approved, issue, lifetimes, now), {
      result: { seq: 1, rotatedAt: now, refreshExpiresAt, expiresAt: refreshExpiresAt },
      writes: [
        { op: 'redeemGrant', grantId: approved.id, at: now, refreshExpiresAt, expiresAt: refreshExpiresAt },
      ],
    })
  }
  for (const now of [approvedAt + 60, approvedAt + 61, approvedAt + 9999]) {
    t.throws(() => redeemGrant(approved, issue, lifetimes, now), {
      code: 'invalid_grant',
      message: /code has expired/,
      detail: { rule: 'rfc6749-4.1.2-code-short-lived' },
    })
  }
})

t.test('a redemption keeps what was approved, and passes its checks', async (t) => {
  const passed = passedDuring(() => {
    const decision = redeemGrant(approved, issue, lifetimes, approvedAt)
    t.match(decision, { result: { id: approved.id, userId: approved.userId, scope: approved.scope } })
  })
  t.match(passed, [{ rule: 'rfc6749-4.1.2-code-single-use' }, { rule: 'rfc6749-4.1.2-code-short-lived' }])
})

t.test('a grant without refresh tokens ends with its access token', async (t) => {
  const decision = redeemGrant(approved, once, lifetimes, approvedAt)
  t.match(decision, { result: { expiresAt: approvedAt + 100 } })
  t.notHas('result' in decision && decision.result, { refreshExpiresAt: Number })
  t.notHas(decision.writes[0], { refreshExpiresAt: Number })
  const brief = redeemGrant(approved, { ...once, accessTokenSeconds: 10 }, lifetimes, approvedAt)
  t.match(brief, { result: { expiresAt: approvedAt + 10 } }, 'and not with its code')
})

t.test('a second use of a code is an error and a revocation, also after the code expired', async (t) => {
  for (const now of [approvedAt, approvedAt + 59, approvedAt + 60, approvedAt + 9999]) {
    for (const seq of [1, 2, 9]) {
      const decision = redeemGrant(active(seq), issue, lifetimes, now)
      t.match(decision, {
        rejection: { code: 'invalid_grant', detail: { rule: 'rfc6749-4.1.2-code-replay-revokes' } },
      })
      t.strictSame(decision.writes, [
        { op: 'revokeGrant', grantId: approved.id, at: now, rule: 'rfc6749-4.1.2-code-replay-revokes' },
      ])
    }
  }
})

t.test('a revoked grant rejects everything and is not written again', async (t) => {
  for (const grant of [
    { ...approved, revokedAt: approvedAt },
    active(1, { revokedAt: approvedAt }),
    active(3, { revokedAt: approvedAt }),
  ]) {
    t.throws(() => redeemGrant(grant, issue, lifetimes, approvedAt), {
      code: 'invalid_grant',
      detail: { rule: 'rfc6749-4.1.2-code-replay-revokes' },
    })
    for (const seq of [0, 1, 2, 3]) {
      t.throws(() => rotateGrant(grant, seq, issue, lifetimes, approvedAt), {
        code: 'invalid_grant',
        detail: { rule: 'rfc6749-6-invalid-refresh' },
      })
    }
    t.strictSame(revokeGrant(grant, rule, approvedAt), { result: undefined, writes: [] })
  }
})

t.test(
  'the current refresh token increments seq and moves the idle expiry, never past the absolute one',
  async (t) => {
    const rows = [
      { now: approvedAt + 1, ends: approvedAt + 1001 },
      { now: approvedAt + 999, ends: approvedAt + 1999 },
      { now: approvedAt + 2500, ends: approvedAt + 3000 },
    ]
    for (const { now, ends } of rows) {
      const grant = active(4, { refreshExpiresAt: now + 1, expiresAt: now + 1 })
      const expiresAt = Math.max(ends, now + 110)
      const passed = passedDuring(() =>
        t.match(rotateGrant(grant, 4, issue, lifetimes, now), {
          result: { id: grant.id, seq: 5, rotatedAt: now, refreshExpiresAt: ends, expiresAt },
          writes: [
            { op: 'rotateGrant', grantId: grant.id, fromSeq: 4, at: now, refreshExpiresAt: ends, expiresAt },
          ],
        }),
      )
      t.match(passed.at(-1), { rule: 'rfc9700-4.14.2-reuse-revokes-family', stored: 4, received: 4 })
    }
  },
)

t.test('the grant outlives every access token issued from it', async (t) => {
  const grant = active(1, { refreshExpiresAt: approvedAt + 3000, expiresAt: approvedAt + 3400 })
  const decision = rotateGrant(grant, 1, issue, lifetimes, approvedAt + 2990)
  t.match(decision, { result: { refreshExpiresAt: approvedAt + 3000, expiresAt: approvedAt + 3400 } })
})

t.test('an expired refresh token is rejected without a write, whichever it is', async (t) => {
  for (const seq of [1, 2, 3]) {
    for (const now of [approvedAt + 1000, approvedAt + 1001, approvedAt + 99_999]) {
      t.throws(() => rotateGrant(active(3), seq, issue, lifetimes, now), {
        code: 'invalid_grant',
        message: /refresh token has expired/,
        detail: { rule: 'rfc9700-4.14.2-inactive-expiry' },
      })
    }
  }
  t.throws(() => rotateGrant(active(1, { refreshExpiresAt: 0 }), 1, issue, lifetimes, approvedAt))
})

t.test(
  'the previous token gets the same grant again within the window, and nothing is written',
  async (t) => {
    const grant = active(3, { rotatedAt: approvedAt + 100 })
    for (const now of [approvedAt + 91, approvedAt + 100, approvedAt + 109]) {
      const passed = passedDuring(() =>
        t.strictSame(rotateGrant(grant, 2, issue, lifetimes, now), { result: grant, writes: [] }),
      )
      t.match(passed.at(-1), { rule: 'rfc9700-4.14.2-reuse-revokes-family', found: /same successor again/ })
    }
  },
)

t.test('a client that keeps its refresh token gets the same number again, with a later end', async (t) => {
  const grant = active(3, { rotatedAt: approvedAt + 100 })
  const now = approvedAt + 500
  const rules = { ...lifetimes, keepsRefreshToken: true } as const
  const decision = rotateGrant(grant, 3, issue, rules, now)
  const rotated = rotateGrant(grant, 3, issue, lifetimes, now)
  t.match(decision, {
    result: { seq: 3, rotatedAt: approvedAt + 100 },
    writes: [{ op: 'extendGrant', seq: 3 }],
  })
  if ('rejection' in decision || 'rejection' in rotated) throw new Error('rejected')
  const { refreshExpiresAt, expiresAt } = rotated.result
  t.match(decision.result, { refreshExpiresAt, expiresAt }, 'it ends when a rotated one would')
  t.match(decision.writes, [{ refreshExpiresAt, expiresAt }])
  t.match(rotateGrant(grant, 1, issue, rules, now), { rejection: { code: 'invalid_grant' } }, 'an older one')
})

t.test('any other reuse is an error and a revocation', async (t) => {
  const grant = active(3, { rotatedAt: approvedAt + 100 })
  const never = { ...lifetimes, refreshReuseSeconds: 0 }
  const rows = [
    { seq: 2, now: approvedAt + 110, with: lifetimes },
    { seq: 2, now: approvedAt + 90, with: lifetimes },
    { seq: 1, now: approvedAt + 100, with: lifetimes },
    { seq: 0, now: approvedAt + 100, with: lifetimes },
    { seq: 2, now: approvedAt + 100, with: never },
    // Issued after the backup that the row is from: it does not open, and the row knows too little to continue.
    { seq: 4, now: approvedAt + 100, with: lifetimes },
  ]
  for (const row of rows) {
    const decision = rotateGrant(grant, row.seq, issue, row.with, row.now)
    t.match(decision, {
      rejection: { code: 'invalid_grant', detail: { rule: 'rfc9700-4.14.2-reuse-revokes-family' } },
    })
    t.strictSame(decision.writes, [
      { op: 'revokeGrant', grantId: grant.id, at: row.now, rule: 'rfc9700-4.14.2-reuse-revokes-family' },
    ])
  }
})

t.test('a refresh token newer than its row is distinguished from a used one', async (t) => {
  const grant = active(3, { rotatedAt: approvedAt + 100 })
  t.match(rotateGrant(grant, 4, issue, lifetimes, approvedAt + 101), {
    rejection: { message: /as after a restore/ },
  })
  t.match(rotateGrant(grant, 1, issue, lifetimes, approvedAt + 101), {
    rejection: { message: /was used before/ },
  })
})

t.test('revoking is one write', async (t) => {
  for (const grant of [approved, active(), active(5)]) {
    t.strictSame(revokeGrant(grant, rule, approvedAt + 7).writes, [
      { op: 'revokeGrant', grantId: bytesOf('grant', 12), at: approvedAt + 7, rule },
    ])
  }
})

t.test(
  'a grant works again if its client is unlocked before it expires, unless it was revoked',
  async (t) => {
    const locked = active(1, { revokedAt: approvedAt + 1, revokedBy: 'lychgate-client-locked' })
    for (const grant of [active(), locked]) {
      t.ok(canGrantLive(grant, grant.expiresAt - 1))
      t.notOk(canGrantLive(grant, grant.expiresAt))
    }
    t.notOk(canGrantLive({ ...locked, revokedBy: rule }, approvedAt + 2))
    t.notOk(canGrantLive({ ...locked, revokedBy: 'lychgate-account-locked' }, approvedAt + 2))
  },
)
