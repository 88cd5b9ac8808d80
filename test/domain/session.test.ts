import t from 'tap'
import type { Session } from '../../src/domain/model.ts'
import {
  beginSession,
  continueSession,
  extendedIdleEnd,
  isRecent,
  isSessionLive,
  selectSessions,
} from '../../src/users/rules/session.ts'

const lifetimes = { sessionIdleSeconds: 100, sessionAbsoluteSeconds: 1000 }

t.test('a session begins now, with its idle and absolute expiry', async (t) => {
  t.strictSame(beginSession('id', 'alice', ['pwd'], lifetimes, 5000), {
    id: 'id',
    userId: 'alice',
    authenticatedAt: 5000,
    methods: ['pwd'],
    createdAt: 5000,
    idleExpiresAt: 5100,
    expiresAt: 6000,
  })
  const place = { browser: 'Firefox, Linux', from: '192.0.2.0/24' }
  t.match(beginSession('id', 'alice', ['pwd'], lifetimes, 5000, place), place)
  const short = { sessionIdleSeconds: 100, sessionAbsoluteSeconds: 30 }
  t.match(beginSession('id', 'alice', [], short, 5000), { idleExpiresAt: 5030, expiresAt: 5030 })
})

t.test('a session ends at the first of its expiry times', async (t) => {
  const session = beginSession('id', 'alice', [], lifetimes, 5000)
  t.ok(isSessionLive(session, 5099))
  t.notOk(isSessionLive(session, 5100))
  const used = { ...session, idleExpiresAt: 9000 }
  t.ok(isSessionLive(used, 5999))
  t.notOk(isSessionLive(used, 6000))
})

t.test('a user who authenticated ten minutes ago may still do what cannot be undone', async (t) => {
  const session = beginSession('id', 'alice', [], lifetimes, 5000)
  t.ok(isRecent(session, 5000))
  t.ok(isRecent(session, 5600))
  t.notOk(isRecent(session, 5601))
})

t.test('a step-up keeps the end of the session that it continues, and moves no other one', async (t) => {
  const session = { ...beginSession('id', 'alice', ['pwd', 'otp'], lifetimes, 5000), browser: 'Firefox' }
  const times = { authenticatedAt: 4000, expiresAt: 5050 }
  t.strictSame(continueSession(session, times), { ...session, ...times, idleExpiresAt: 5050 })
  const later = { authenticatedAt: 4000, expiresAt: 5900 }
  t.strictSame(continueSession(session, later), { ...session, ...later, idleExpiresAt: 5100 })
})

t.test('use moves the idle expiry when it is worth a write, and never past the absolute one', async (t) => {
  const session = beginSession('id', 'alice', [], lifetimes, 5000)
  const rows: [now: number, end: number | undefined][] = [
    [5000, undefined],
    [5005, undefined],
    [5006, 5106],
    [5099, 5199],
  ]
  for (const [now, end] of rows) t.equal(extendedIdleEnd(session, lifetimes, now), end, `at ${now}`)
  const long = { ...lifetimes, sessionIdleSeconds: 400 }
  const idle = beginSession('id', 'alice', [], long, 5000)
  t.equal(extendedIdleEnd(idle, long, 5020), undefined, 'a twentieth is not enough')
  t.equal(extendedIdleEnd(idle, long, 5021), 5421)
  const late = { ...session, idleExpiresAt: 5990 }
  t.equal(extendedIdleEnd(late, lifetimes, 5980), 6000)
  t.equal(extendedIdleEnd({ ...late, idleExpiresAt: 6000 }, lifetimes, 5980), undefined)
})

t.test("a sign-in keeps the four newest sessions of other users, and replaces the user's own", async (t) => {
  const of = (userId: string) => beginSession(`session of ${userId}`, userId, ['pwd'], lifetimes, 5000)
  const omitUndefined = ['a', 'b', 'c', 'd', 'e'].map(of)
  const names = (sessions: readonly Session[]) => sessions.map(({ userId }) => userId).join('')
  for (const [userId, beside, over] of [
    ['f', 'abcd', 'e'],
    ['c', 'abde', 'c'],
    ['a', 'bcde', 'a'],
  ] as const) {
    const seats = selectSessions(omitUndefined, userId)
    t.strictSame([names(seats.beside), names(seats.over)], [beside, over])
  }
  t.strictSame(selectSessions([], 'a'), { beside: [], over: [] })
})
