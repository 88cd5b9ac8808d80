import type { Test } from 'tap'
import { endSession, endSessionsOf, insert, put, removeUser, type Write } from '../../src/domain/decision.ts'
import { recordKind } from '../../src/domain/record.ts'
import { type AtSessionEnd, atSessionEndKind, type SessionEnded } from '../../src/domain/session-end.ts'
import { Overtaken } from '../../src/storage/store.ts'
import * as sample from './samples.ts'
import type { OpenEmpty } from './store.suite.ts'

const endedKind = recordKind<SessionEnded>('ended', { id: ({ sid }) => sid })
const { client, user, session } = sample
const other = { ...session, id: sample.digest(7) }
const due: AtSessionEnd = {
  sid: 'sid-1',
  sessionId: session.id,
  userId: user.id,
  clientId: client.id,
  expiresAt: session.expiresAt,
  inserts: endedKind.name,
  revokes: 'oidc-bcl-2.7-refresh-tokens',
}
const grant = { ...sample.grant, extra: { session: due.sid } }
const owners = [insert('client', client), insert('user', user)]
const signedIn: readonly Write[] = [
  ...owners,
  insert('session', session),
  insert('session', other),
  { op: 'insertGrant', grant },
  put(atSessionEndKind, due),
]
const ended = { sid: due.sid, userId: user.id, clientId: client.id, endedAt: 1500 }

/** Part of the suite: what a session leaves to be done when it ends. */
export function sessionEnds(t: Test, openEmpty: OpenEmpty): void {
  const ways: readonly (readonly [string, Write])[] = [
    ['itself', endSession(session.id, 1500)],
    ['with all of its user', endSessionsOf(user.id, 1500)],
    ['with all of its user but one', endSessionsOf(user.id, 1500, other.id)],
    ['with its user', removeUser(user.id, 1500)],
  ]
  for (const [name, end] of ways) {
    t.test(`a session that ends ${name} does what is due in the same transaction`, async (t) => {
      const store = await openEmpty(t)
      await store.write(...signedIn)
      await t.rejects(store.write(end, insert('session', other), insert('session', other)))
      t.equal(await store.find(endedKind, due.sid), undefined, 'nothing of a transaction that failed')
      await store.write(end)
      t.strictSame(await store.find(endedKind, due.sid), ended)
      t.equal(await store.find(atSessionEndKind, due.sid), undefined)
      if (end.op !== 'removeUser')
        t.match(await store.find('grant', grant.id), { revokedAt: 1500, revokedBy: due.revokes })
    })
  }

  t.test('the end of another session leaves it to be done', async (t) => {
    const store = await openEmpty(t)
    await store.write(...signedIn)
    await store.write(endSession(other.id, 1500), endSessionsOf(user.id, 1500, session.id))
    t.equal(await store.find(endedKind, due.sid), undefined)
    t.strictSame(await store.find(atSessionEndKind, due.sid), due)
    t.strictSame(await store.find('grant', grant.id), grant)
  })

  t.test('grants of another session or client are not revoked', async (t) => {
    const store = await openEmpty(t)
    const others = [
      { ...grant, id: sample.grantId(3), extra: { session: 'sid-2' } },
      // It has the same sid, and does not end with the session.
      { ...grant, id: sample.grantId(6), extra: { sid: due.sid } },
      { ...grant, id: sample.grantId(4), clientId: sample.fullClient.id },
      { ...sample.grant, id: sample.grantId(5) },
    ]
    await store.write(...signedIn, insert('client', sample.fullClient))
    await store.write(...others.map((one): Write => ({ op: 'insertGrant', grant: one })))
    await store.write(endSession(session.id, 1500))
    for (const one of others) t.equal((await store.find('grant', one.id))?.revokedAt, undefined)
  })

  t.test('a session that takes the place of another takes over what is due', async (t) => {
    const store = await openEmpty(t)
    await store.write(...signedIn)
    const next = { ...session, id: sample.digest(8), expiresAt: session.expiresAt + 50 }
    await store.write(insert('session', next), endSession(session.id, 1500, next))
    t.equal(await store.find(endedKind, due.sid), undefined)
    const moved = { ...due, sessionId: next.id, expiresAt: next.expiresAt }
    t.strictSame(await store.find(atSessionEndKind, due.sid), moved)
    const renamed = sample.digest(9)
    await store.write({ op: 'replaceSession', sessionId: next.id, by: renamed, methods: ['pwd', 'otp'] })
    t.strictSame(await store.find(atSessionEndKind, due.sid), { ...moved, sessionId: renamed })
    await store.write(endSession(renamed, 1500))
    t.strictSame(await store.find(endedKind, due.sid), ended)
  })

  t.test('what needs a session is written only while the session lives', async (t) => {
    const store = await openEmpty(t)
    await store.write(...signedIn)
    const requireAt = (at: number): Write => ({ op: 'requireSession', sid: due.sid, at })
    const touch: Write = { op: 'touchClient', clientId: client.id, at: 1700 }
    await store.write(requireAt(session.idleExpiresAt - 1), touch)
    t.equal((await store.find('client', client.id))?.usedAt, 1700)
    const later: Write = { ...touch, at: 1800 }
    await t.rejects(store.write(later, requireAt(session.idleExpiresAt)), Overtaken)
    await store.write(endSession(session.id, 1500))
    await t.rejects(store.write(later, requireAt(1501)), Overtaken)
    t.equal((await store.find('client', client.id))?.usedAt, 1700, 'nothing was written')
  })

  t.test('records of a kind are listed by when they were made', async (t) => {
    const store = await openEmpty(t)
    await store.write(...owners, insert('session', session), insert('session', other))
    const second = { ...due, sid: 'sid-0', sessionId: other.id }
    await store.write(put(atSessionEndKind, due), put(atSessionEndKind, second))
    await store.write(endSession(session.id, 1500))
    await store.write(endSession(other.id, 1600))
    const listed = async (madeUntil: number, limit: number) =>
      (await store.listKind(endedKind, { madeUntil, limit })).map(({ sid }) => sid)
    t.strictSame(await listed(1700, 10), ['sid-1', 'sid-0'])
    t.strictSame(await listed(1599, 10), ['sid-1'])
    t.strictSame(await listed(1700, 1), ['sid-1'])
  })
}
