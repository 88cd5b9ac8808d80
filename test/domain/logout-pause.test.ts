import t from 'tap'
import { put, remove } from '../../src/domain/decision.ts'
import {
  isSilent,
  type LogoutPause,
  logoutPauseKind,
  noteResponse,
  takeTurn,
} from '../../src/specs/oidc-backchannel-logout/pause.ts'

const clientId = 'client'
const pauseOf = (failures: number, until = 0): LogoutPause => ({ clientId, failures, until })

t.test('three failures in succession pause a client, for longer each time', async (t) => {
  const lengths = [0, 0, 10, 20, 40, 80, 160, 300, 300]
  let pause: LogoutPause | undefined
  for (const [before, length] of lengths.entries()) {
    const noted = pauseOf(before + 1, 100 + length)
    const expected = { result: noted, writes: [put(logoutPauseKind, noted)] }
    t.strictSame(noteResponse(pause, clientId, false, 100), expected)
    t.equal(isSilent(noted), before >= 2)
    pause = noted
  }
  t.match(noteResponse(pauseOf(100_000), clientId, false, 100), { result: { until: 400 } })
})

t.test('any response ends the pause', async (t) => {
  t.strictSame(noteResponse(undefined, clientId, true, 100), { result: undefined, writes: [] })
  const writes = [remove(logoutPauseKind, clientId)]
  t.strictSame(noteResponse(pauseOf(7, 400), clientId, true, 100), { result: undefined, writes })
})

t.test('after a pause one node has the turn', async (t) => {
  for (const pause of [undefined, pauseOf(2, 400)])
    t.strictSame(takeTurn(pause, 100), { result: true, writes: [] }, 'it is not paused')
  t.strictSame(takeTurn(pauseOf(3, 101), 100), { result: false, writes: [] })
  const taken = pauseOf(3, 115)
  t.strictSame(takeTurn(pauseOf(3, 100), 100), { result: true, writes: [put(logoutPauseKind, taken)] })
  t.strictSame(takeTurn(taken, 114), { result: false, writes: [] }, 'the other node waits')
  t.match(takeTurn(taken, 115), { result: true }, 'the first node has stopped')
})

t.test('a pause goes with its client, and in time', async (t) => {
  t.match(logoutPauseKind.rowOf(pauseOf(3, 100)), { id: clientId, clientId, expiresAt: 3700 })
})
