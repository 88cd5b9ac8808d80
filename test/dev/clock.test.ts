import t from 'tap'
import { movableClock } from '../../src/dev/clock.ts'
import { testClock } from '../helpers/clock.ts'
import { callApi, claimsOf, obtainTokens, redirectUri, refresh, register } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'

const server = await startServer(t, { mode: 'dev' })

interface Told {
  readonly now: number
  readonly iso: string
  readonly offset_seconds: number
  readonly frozen: boolean
  readonly warning?: string
}

async function move(change: Record<string, unknown>): Promise<Told> {
  const response = await fetch(`${server.issuer}/_dev/clock`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(change),
  })
  t.equal(response.status, 200)
  return (await response.json()) as Told
}

t.test('a movable clock shows the machine time, is moved, is paused and continues', async (t) => {
  const machine = testClock(1000)
  const clock = movableClock(machine)
  t.equal(clock(), 1000)
  await clock.move({ advance: 60 })
  machine.advance(1)
  t.equal(clock(), 1061)
  await clock.move({ freeze: true })
  machine.advance(100)
  t.equal(clock(), 1061)
  await clock.move({ advance: 9 })
  t.equal(clock(), 1070)
  await clock.move({ freeze: false })
  machine.advance(5)
  t.equal(clock(), 1075)
  await clock.move({ set: 5000, freeze: true })
  machine.advance(5)
  t.equal(clock(), 5000)
  await clock.move({ reset: true })
  t.equal(clock(), machine())
  t.equal(clock.offsetSeconds, 0)
})

t.test('everything that follows the clock has caught up when a move is done', async (t) => {
  const clock = movableClock(testClock(1000))
  const seen: number[] = []
  const forget = clock.whenMoved(async () => {
    await new Promise((resolve) => setImmediate(resolve))
    seen.push(clock())
  })
  await clock.move({ advance: 10 })
  t.strictSame(seen, [1010])
  forget()
  await clock.move({ advance: 10 })
  t.strictSame(seen, [1010])
})

t.test('tokens are issued and expire by the moved clock', async (t) => {
  await move({ reset: true })
  const client = await register(server)
  const before = await obtainTokens(server, client)
  const { now } = await move({ advance: '61m' })
  t.equal((await callApi(server, '/api/oauth/userinfo', before.access_token)).status, 401)
  const response = await refresh(server, client, before.refresh_token)
  const after = (await response.json()) as typeof before
  t.ok(Number(claimsOf(after.id_token)['iat']) >= now)
  t.equal((await callApi(server, '/api/oauth/userinfo', after.access_token)).status, 200)
  await move({ advance: '31d' })
  t.equal((await refresh(server, client, after.refresh_token)).status, 400)
})

t.test('a moved clock triggers the sweep and the maintenance of the keys', async (t) => {
  await move({ reset: true })
  const client = await register(server, { redirect_uris: [redirectUri] })
  const keys = async () => {
    const { keys } = (await (await fetch(`${server.issuer}/api/oauth/jwks`)).json()) as { keys: object[] }
    return keys.length
  }
  const count = await keys()
  await move({ advance: '91d' })
  t.equal(await keys(), 2 * count)
  t.equal(await server.deps.store.find('client', client.id), undefined)
})

t.test('a clock that is set back is reported', async (t) => {
  // In whole seconds: the offset of a paused clock grows as time passes.
  const { now: start } = await move({ reset: true, freeze: true })
  t.equal((await move({ advance: '1d12h' })).now, start + 129_600)
  const { warning, now } = await move({ advance: '-1h' })
  t.equal(now, start + 126_000)
  t.equal(warning, 'the clock went back by 3600 seconds: what was issued in between comes from the future')
  const { iso, frozen } = await move({ set: '2027-01-01T01:00:00+01:00' })
  t.strictSame({ iso, frozen }, { iso: '2027-01-01T00:00:00Z', frozen: true })
})
