import t from 'tap'
import type { Client, Grant, Session } from '../../src/domain/model.ts'
import {
  dueAtSessionEnd,
  endsWithSession,
  logoutTokenClaims,
  logoutUriOf,
  mintSid,
  readLogoutUri,
  sidOf,
} from '../../src/specs/oidc-backchannel-logout/rules.ts'
import * as sample from '../storage/samples.ts'

const name = 'backchannel_logout_uri'
const uri = 'https://rp.example/out'
const { session } = sample
const grant: Grant = { ...sample.grant, scope: ['openid'] }
const told: Client = { ...sample.client, extra: { [name]: uri } }
const bound: Client = { ...sample.client, extra: { refresh_tokens: 'session' } }

t.test('a logout URI is https or loopback, absolute, and has no fragment', async (t) => {
  const read = (value: unknown) => readLogoutUri({ [name]: value }, name)
  for (const right of [uri, `${uri}?a=b`, 'https://rp.example:8443', 'http://127.0.0.1:5000/out'])
    t.equal(read(right), right)
  for (const none of [undefined, '']) t.equal(read(none), undefined)
  const detail = (rule: string, received: string) => ({
    code: 'invalid_client_metadata',
    detail: { rule, received },
  })
  const wrong = (value: unknown) => {
    try {
      return read(value)
    } catch (error) {
      return error
    }
  }
  for (const http of ['http://rp.example/out', 'http://127.0.0.2/out', 'http://localhost.example/out'])
    t.match(wrong(http), detail('oidc-bcl-2.2-uri-https', http))
  for (const fragment of [`${uri}#x`, `${uri}#`, 'http://127.0.0.1/out#x'])
    t.match(wrong(fragment), detail('oidc-bcl-2.2-uri-no-fragment', fragment))
  for (const other of ['/out', 'rp.example', 'ftp://rp.example', 'https://', 5, [uri]])
    t.match(wrong(other), { code: 'invalid_client_metadata' }, String(other))
})

t.test('a sid is a pseudonym of a session for one client', async (t) => {
  const sid = mintSid(session.id, 'client')
  t.match(sid, /^[\w-]{22}$/)
  t.equal(mintSid(session.id, 'client'), sid)
  t.not(mintSid(session.id, 'client-2'), sid)
  t.not(mintSid(sample.digest(9), 'client'), sid)
})

t.test('what was registered, and what a grant knows', async (t) => {
  t.equal(logoutUriOf(told), uri)
  for (const other of [sample.client, { ...told, extra: { [name]: 5 } }])
    t.equal(logoutUriOf(other), undefined)
  t.equal(sidOf({ ...grant, extra: { sid: 'a' } }), 'a')
  t.equal(sidOf({ ...grant, extra: { session: 'b' } }), 'b')
  for (const other of [grant, { ...grant, extra: { sid: 5 } }]) t.equal(sidOf(other), undefined)
  t.equal(endsWithSession(grant, bound), true)
  t.equal(endsWithSession({ scope: ['openid', 'offline_access'] }, bound), false)
  t.equal(endsWithSession(grant, told), false)
  t.equal(endsWithSession(grant, { ...bound, extra: { refresh_tokens: 'standalone' } }), false)
})

t.test('what is to be done for a client when a session ends', async (t) => {
  const due = (one: Grant, client: Client, before?: ReturnType<typeof dueAtSessionEnd>) =>
    dueAtSessionEnd(one, client, session, before)
  const common = {
    sid: mintSid(session.id, sample.client.id),
    sessionId: session.id,
    userId: session.userId,
    clientId: sample.client.id,
    expiresAt: session.expiresAt,
  }
  const [inserts, revokes] = ['logoutDelivery', 'oidc-bcl-2.7-refresh-tokens']
  t.equal(due(grant, sample.client), undefined)
  t.strictSame(due(grant, told), { ...common, inserts })
  t.equal(due({ ...grant, scope: ['courses:read'] }, told), undefined, 'it has no ID Token')
  t.strictSame(due({ ...grant, scope: ['courses:read'] }, bound), { ...common, revokes })
  const both: Client = { ...sample.client, extra: { ...told.extra, ...bound.extra } }
  t.strictSame(due(grant, both), { ...common, inserts, revokes })
  const before = { ...common, sid: 'earlier', inserts }
  t.strictSame(due(grant, bound, before), { ...before, revokes }, 'an earlier grant had it inserted')
  const offline: Grant = { ...grant, scope: ['openid', 'offline_access'] }
  t.strictSame(due(offline, both, { ...common, revokes }), { ...common, inserts, revokes })
  const moved: Session = { ...session, id: sample.digest(9), expiresAt: session.expiresAt + 1 }
  const after = dueAtSessionEnd(grant, told, moved, before)
  t.match(after, { sid: 'earlier', sessionId: moved.id, expiresAt: moved.expiresAt })
})

t.test('[oidc-bcl-2.4-sub-or-sid] a logout token has these claims and no other', async (t) => {
  const delivery = { sid: 'sid-1', userId: 'user', clientId: 'client', endedAt: 100, tries: 2 }
  t.strictSame(logoutTokenClaims(delivery, 'https://id.example', 'unique', 200), {
    iss: 'https://id.example',
    sub: 'user',
    aud: 'client',
    iat: 200,
    exp: 320,
    jti: 'unique',
    events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
    sid: 'sid-1',
  })
})
