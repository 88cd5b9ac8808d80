import t from 'tap'
import type { Jws } from '../../src/domain/jws.ts'
import type { Client } from '../../src/domain/model.ts'
import {
  assertTrusted,
  readTrusted,
  subjectIds,
  trustedSubjectKind,
  trustRecords,
} from '../../src/rfc7523-client-assertions/rules/trust.ts'
import { publicClient } from '../helpers/samples.ts'

const now = 1_800_000_000
const own = 'https://auth.example'
const github = {
  issuer: 'https://token.actions.githubusercontent.com',
  subject: 'repo:example/courses:pull_request',
}
const cluster = { issuer: 'https://cluster.example/', subject: 'system:serviceaccount:a:b', reusable: true }

const read = (value: unknown) => readTrusted({ trusted_issuers: value }, 'trusted_issuers')
const trusting = (...entries: readonly unknown[]): Client => ({
  ...publicClient,
  extra: { trusted_issuers: read(entries) },
})

function tokenOf(
  { issuer, subject }: { readonly issuer: string; readonly subject: string },
  claims = {},
): Jws {
  const whole = { iss: issuer, sub: subject, aud: own, exp: now + 60, jti: 'j', ...claims }
  return { header: { alg: 'RS256' }, claims: whole, signed: '', signature: Buffer.alloc(0) }
}

t.test(
  'a token may expire an hour ahead, a reusable one a day, and the clocks may differ by ten seconds',
  async (t) => {
    const client = trusting(github, cluster)
    const check = (of: typeof github, exp: number) => () =>
      assertTrusted(tokenOf(of, { exp }), client, own, now)
    for (const [of, most] of [
      [github, 3600],
      [cluster, 86_400],
    ] as const) {
      t.doesNotThrow(check(of, now + most + 10))
      t.throws(check(of, now + most + 11), { code: 'invalid_client', detail: { rule: 'rfc7523-3-exp' } })
      t.doesNotThrow(check(of, now - 9))
      t.throws(check(of, now - 10), { code: 'invalid_client', detail: { rule: 'rfc7523-3-exp' } })
    }
    const reusable = assertTrusted(tokenOf(cluster, { jti: undefined }), client, own, now)
    t.strictSame(reusable, cluster)
    t.throws(() => assertTrusted(tokenOf(github, { jti: undefined }), client, own, now), {
      code: 'invalid_client',
      detail: { rule: 'rfc7523-3-jti-replay' },
    })
  },
)

t.test('of entries with the same issuer and subject the audience chooses', async (t) => {
  const client = trusting(github, { ...github, audience: 'other', reusable: true })
  t.strictSame(assertTrusted(tokenOf(github), client, own, now), github)
  t.match(assertTrusted(tokenOf(github, { aud: ['other'] }), client, own, now), { audience: 'other' })
  t.throws(() => assertTrusted(tokenOf(github, { aud: 'third' }), client, own, now), {
    message: 'aud is not the expected audience alone',
    detail: { rule: 'rfc7523-3-aud', stored: [own, 'other'], received: 'third' },
  })
  t.throws(() => assertTrusted(tokenOf(cluster), client, own, now), {
    code: 'invalid_client',
    detail: { rule: 'rfc7523-3-iss-sub', received: `${cluster.issuer} ${cluster.subject}` },
  })
})

t.test('a client is found under the audience of its entry', async (t) => {
  const idsOf = (...entries: readonly object[]) => trustRecords('client_a', read(entries)).map(({ id }) => id)
  const [plain = '', named = ''] = [idsOf(github)[0], idsOf({ ...github, audience: 'other' })[0]]
  t.not(plain, named)
  t.ok(subjectIds(tokenOf(github), own).includes(plain))
  t.notOk(subjectIds(tokenOf(github), own).includes(named))
  t.strictSame(subjectIds(tokenOf(github, { aud: 'other' }), own), [named], 'not without an audience')
  const explicit = idsOf({ ...github, audience: own })
  t.ok(subjectIds(tokenOf(github), own).includes(explicit[0] ?? ''), 'this server, named')
  for (const claims of [{ aud: undefined }, { aud: [own, 'other'] }, { sub: 7 }, { iss: undefined }])
    t.strictSame(subjectIds(tokenOf(github, claims), own), [], JSON.stringify(claims))
  t.match(trustRecords('client_a', read([github])), [{ kind: trustedSubjectKind.name, clientId: 'client_a' }])
  t.equal(trustedSubjectKind.name, 'trusted-subject', 'it is stored')
  t.strictSame(trustRecords('client_a', undefined), [])
})

t.test('entries are read as a list or as its JSON, and none is as good as absent', async (t) => {
  t.strictSame(read([github, cluster]), [github, cluster])
  t.strictSame(read(JSON.stringify([github])), [github])
  t.strictSame(read([{ ...github, reusable: false, audience: undefined }]), [github])
  for (const nothing of [undefined, null, '', []]) t.equal(read(nothing), undefined, JSON.stringify(nothing))
  t.ok(read([{ ...github, subject: 's'.repeat(1000) }]))
  t.throws(() => read([{ ...github, subject: 's'.repeat(1001) }]), { message: /1 to 1000/ })
  const many = (count: number) => Array.from({ length: count }, (_, at) => ({ ...github, subject: `s${at}` }))
  t.equal(read(many(20))?.length, 20)
  t.throws(() => read(many(21)), { message: /at most 20/ })
  for (const issuer of ['https://a.example', 'https://a.example/path/', 'http://127.0.0.1:9500'])
    t.ok(read([{ ...github, issuer }]), issuer)
  for (const issuer of [
    'ftp://a.example',
    'http://a.example/https:',
    'https://',
    'https://a.example#b',
    'https://a b',
  ])
    t.throws(() => read([{ ...github, issuer }]), { message: /issuer must be/ }, issuer)
})
