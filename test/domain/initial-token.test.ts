import t from 'tap'
import {
  describeInitialToken,
  initialTokenKind,
  mintInitialToken,
  nameOfToken,
  spendInitialToken,
} from '../../src/domain/initial-token.ts'
import { hashSecret, mintSecret, secretBytes } from '../../src/domain/secret.ts'
import { passedDuring } from '../helpers/checks.ts'

const now = 1000
const fresh = Buffer.alloc(secretBytes, 1)
const request = { redirects: 'https', pkce: 'required', uses: 2 } as const
const { token, record } = mintInitialToken({ ...request, name: 'nightly build' }, fresh, 3600, now)

t.test('a token is stored as its hash, with what it allows and when it ends', async (t) => {
  t.equal(token, `lyc_initial_${fresh.toString('base64url')}`)
  const stored = {
    ...request,
    name: 'nightly build',
    id: hashSecret(token),
    used: 0,
    createdAt: now,
    expiresAt: now + 3600,
  }
  t.strictSame(record, stored)
  t.strictSame(initialTokenKind.rowOf(record), {
    kind: 'initial-access-token',
    id: record.id,
    userId: undefined,
    clientId: undefined,
    madeAt: now,
    expiresAt: now + 3600,
    body: JSON.stringify(record),
  })
})

t.test('an operator reads a token by the beginning of its hash, and its members by wire names', async (t) => {
  const { name: _, ...unnamed } = { ...record, id: 'abcdefghijklmnopq', used: 1 }
  const shown = {
    token_id: 'abcdefghijkl',
    redirects: 'https',
    pkce: 'required',
    uses: 2,
    used: 1,
    created_at: now,
    expires_at: now + 3600,
  }
  t.strictSame(describeInitialToken(unnamed), shown)
  const full = { ...unnamed, name: 'nightly build', extra: { require_pushed_authorization_requests: true } }
  t.strictSame(describeInitialToken(full), {
    ...shown,
    name: 'nightly build',
    require_pushed_authorization_requests: true,
  })
})

const detail = {
  rule: 'rfc7591-3-initial-access-token',
  headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
}

t.test('a token registers as many clients as it says', async (t) => {
  const once = spendInitialToken(record, now)
  t.strictSame(once, { ...record, used: 1 })
  const twice = spendInitialToken(once, now)
  t.strictSame(twice, { ...record, used: 2 })
  t.throws(() => spendInitialToken(twice, now), {
    code: 'invalid_token',
    message: 'the initial access token has been used up',
    detail: { ...detail, stored: 2 },
  })
  t.strictSame(
    passedDuring(() => spendInitialToken(once, now)),
    [
      {
        rule: detail.rule,
        found: 'the initial access token may be used',
        stored: 2,
        received: undefined,
      },
    ],
  )
})

t.test('a token that is unknown or has reached its end registers no client', async (t) => {
  t.strictSame(spendInitialToken(record, record.expiresAt - 1), { ...record, used: 1 })
  const wanted = {
    code: 'invalid_token',
    message: 'the initial access token is unknown, has expired or was revoked',
    detail,
  }
  t.throws(() => spendInitialToken(record, record.expiresAt), wanted)
  t.throws(() => spendInitialToken(record, record.expiresAt + 1), wanted)
  t.throws(() => spendInitialToken(undefined, now), wanted)
})

t.test('no name of a token begins with a dash, which is an option on a command line', async (t) => {
  const drawn = Array.from({ length: 500 }, (_, index) => Buffer.alloc(secretBytes, `${index}`))
  const direct = drawn.map((bytes) => hashSecret(mintSecret('initialToken', bytes)))
  t.ok(
    direct.some((id) => id.startsWith('-')),
    'some would',
  )
  const made = drawn.map((bytes) => mintInitialToken(request, bytes, 3600, now))
  t.notOk(made.some(({ record }) => nameOfToken(record).startsWith('-')))
  for (const { token, record } of made) t.equal(hashSecret(token), record.id)
})
