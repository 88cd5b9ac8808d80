import t from 'tap'
import type { Jws } from '../../src/domain/jws.ts'
import type { Client } from '../../src/domain/model.ts'
import {
  assertTrusted,
  readTrusted,
  subjectIds,
  trustedBy,
  trustedSubjectKind,
  trustRecords,
  unknownSubject,
} from '../../src/specs/rfc7523-client-assertions/rules/trust.ts'
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
  header = {},
): Jws {
  const whole = { iss: issuer, sub: subject, aud: own, exp: now + 60, jti: 'j', ...claims }
  return { header: { alg: 'RS256', ...header }, claims: whole, signed: '', signature: Buffer.alloc(0) }
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
})

t.test('a token is trusted for its issuer and its subject together', async (t) => {
  const client = trusting(github, { ...cluster, subject: 'b' })
  const trusts = [`${github.issuer} ${github.subject}`, `${cluster.issuer} b`]
  for (const [of, by, stored] of [
    [cluster, client, trusts],
    [{ ...cluster, subject: github.subject }, client, trusts],
    [{ ...github, subject: 'b' }, client, trusts],
    [github, publicClient, []],
  ] as const)
    t.throws(
      () => assertTrusted(tokenOf(of), by, own, now),
      {
        code: 'invalid_client',
        message: 'the client does not trust this issuer and subject',
        detail: { rule: 'rfc7523-3-iss-sub', stored, received: `${of.issuer} ${of.subject}` },
      },
      of.subject,
    )
  t.strictSame(trustedBy(client), [github, { ...cluster, subject: 'b' }])
  t.strictSame(trustedBy(publicClient), [])
  t.strictSame(unknownSubject(tokenOf(github)), {
    namesNoClient: true,
    rule: 'rfc7523-3-iss-sub',
    why: 'of an unknown subject',
    stored: 'no client that trusts this issuer, subject and audience',
    received: `${github.issuer} ${github.subject}`,
  })
})

t.test('the header of a trusted token is judged, too', async (t) => {
  t.throws(() => assertTrusted(tokenOf(github, {}, { typ: 'at+jwt' }), trusting(github), own, now), {
    message: 'typ is that of another kind of JWT',
    detail: { rule: 'rfc7523-3-valid-jwt', received: 'at+jwt' },
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
})

const rejectedAs = (message: string) => ({
  code: 'invalid_client_metadata',
  message: `trusted_issuers${message}`,
})

t.test(
  'at most twenty entries are read, and each pair of issuer and subject once per audience',
  async (t) => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, at) => ({ ...github, subject: `s${at}` }))
    t.equal(read(many(20))?.length, 20)
    for (const wrong of [many(21), {}, 5, 'text', JSON.stringify(github)])
      t.throws(() => read(wrong), rejectedAs(' must be a JSON list of at most 20 objects'))
    const twice = rejectedAs(' has the same issuer, subject and audience twice')
    t.throws(() => read([github, cluster, { ...github, reusable: true }]), twice)
    t.throws(() => read([{ ...github, audience: 'a' }, cluster, { ...github, audience: 'a' }]), twice)
    t.equal(read([github, { ...github, audience: 'a' }, { ...github, audience: 'b' }])?.length, 3)
  },
)

t.test('an issuer is an https URL without query and fragment, or loopback', async (t) => {
  for (const issuer of ['https://a.example', 'https://a.example/path/', 'http://127.0.0.1:9500'])
    t.strictSame(read([{ ...github, issuer }]), [{ ...github, issuer }])
  for (const issuer of [
    undefined,
    '',
    5,
    'ftp://a.example',
    'http://a.example',
    'http://a.example/https:',
    'https://',
    'https:https://a.example',
    'https://999.0.0.1',
    'https://a.example?b',
    'https://a.example#b',
    'https://a@b.example',
    'https://a b',
    'https://a.example/\u200b',
  ])
    t.throws(
      () => read([{ ...github, issuer }]),
      rejectedAs(': issuer must be an https URL without query and fragment'),
      JSON.stringify(issuer),
    )
})

t.test('a subject and an audience are visible texts that are compared exactly', async (t) => {
  for (const member of ['subject', 'audience']) {
    t.equal(read([{ ...github, [member]: 's'.repeat(1000) }])?.length, 1)
    for (const wrong of ['', 's'.repeat(1001), '\na', 'a\n', 'a\u200bb', 5, null, ['a']])
      t.throws(
        () => read([{ ...github, [member]: wrong }]),
        rejectedAs(`: ${member} must have 1 to 1000 visible characters`),
        `${member} ${encodeURI(JSON.stringify(wrong))}`,
      )
  }
  const { subject: _, ...withoutSubject } = github
  t.throws(() => read([withoutSubject]), rejectedAs(': subject must have 1 to 1000 visible characters'))
  for (const subject of ['*', 'repo:example/*', '*:a'])
    t.throws(
      () => read([{ ...github, subject }]),
      rejectedAs(': subject is compared exactly; it may have no *'),
      subject,
    )
})

t.test('an entry has no other member, and reusable is a boolean', async (t) => {
  t.throws(() => read([{ ...github, aud: 'x' }]), {
    ...rejectedAs(' has an unknown member'),
    detail: { received: 'aud' },
  })
  for (const reusable of ['true', 1, null])
    t.throws(() => read([{ ...github, reusable }]), rejectedAs(': reusable must be a boolean'))
  for (const entry of [null, 'text', [github]])
    t.throws(() => read([entry]), rejectedAs(': issuer must be an https URL without query and fragment'))
})
