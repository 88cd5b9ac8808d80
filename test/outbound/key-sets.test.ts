import { generateKeyPairSync } from 'node:crypto'
import t from 'tap'
import type { Fetched } from '../../src/outbound/exchange.ts'
import { freshSeconds } from '../../src/outbound/freshness.ts'
import { createKeySets } from '../../src/outbound/key-sets.ts'
import { testClock } from '../helpers/clock.ts'

const now = 1_800_000_000
const date = (at: number) => new Date(at * 1000).toUTCString()

t.test('a response is fresh as RFC 9111 says', async (t) => {
  const cases: readonly [Record<string, string>, number][] = [
    [{}, 0],
    [{ 'cache-control': 'max-age=600' }, 600],
    [{ 'cache-control': 'Public, Max-Age="600"' }, 600],
    [{ 'cache-control': 'max-age=600', age: '100' }, 500],
    [{ 'cache-control': 'max-age=600', age: '700' }, 0],
    [{ 'cache-control': 'max-age=600', date: date(now - 200) }, 400],
    [{ 'cache-control': 'max-age=600', date: date(now - 200), age: '300' }, 300],
    [{ 'cache-control': 'max-age=600, no-store' }, 0],
    [{ 'cache-control': 'no-cache, max-age=600' }, 0],
    [{ 'cache-control': 'max-age=-1' }, 0],
    [{ 'cache-control': 'max-age=1e9' }, 0],
    [{ 'cache-control': 'max-age' }, 0],
    [{ 'cache-control': 's-maxage=600' }, 0],
    [{ expires: date(now + 300) }, 300],
    [{ expires: date(now + 300), date: date(now - 100) }, 300],
    [{ expires: date(now + 300), 'cache-control': 'max-age=10' }, 10],
    [{ expires: '0' }, 0],
    [{ expires: date(now - 300) }, 0],
  ]
  for (const [headers, seconds] of cases)
    t.equal(freshSeconds(headers, now), seconds, JSON.stringify(headers))
})

function jwk(kid: string) {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  return { ...publicKey.export({ format: 'jwk' }), kid }
}

/** Key sets over a fetch with given responses. */
function start(bounds = { keySetFloorSeconds: 100, keySetCeilingSeconds: 1000 }) {
  const clock = testClock(now)
  const state = {
    keys: [jwk('a')],
    headers: {},
    fails: false,
    body: undefined as string | undefined,
    fetches: 0,
  }
  const failures: string[] = []
  const fetchUrl = async (): Promise<Fetched> => {
    state.fetches++
    if (state.fails) throw new Error('down')
    const body = state.body ?? JSON.stringify({ keys: state.keys })
    return { status: 200, headers: state.headers, body: Buffer.from(body) }
  }
  const onFailure = (url: string) => void failures.push(url)
  const { keysAt } = createKeySets({ fetchUrl, bounds, clock, onFailure })
  const kids = async (kid?: string) =>
    (await keysAt('https://a.example/keys', { purpose: 'operator' }, kid)).map((key) => key.kid)
  return { clock, state, failures, kids }
}

t.test('a key set is kept for its lifetime, within the floor and the ceiling', async (t) => {
  for (const [headers, seconds] of [
    [{ 'cache-control': 'no-store' }, 100],
    [{ 'cache-control': 'max-age=500' }, 500],
    [{ 'cache-control': 'max-age=5000' }, 1000],
  ] as const) {
    const { clock, state, kids } = start()
    state.headers = headers
    t.strictSame(await kids(), ['a'])
    clock.advance(seconds - 1)
    await kids('a')
    t.equal(state.fetches, 1, `${JSON.stringify(headers)} is fresh`)
    clock.advance(1)
    await kids('a')
    t.equal(state.fetches, 2, `${JSON.stringify(headers)} is not fresh any more`)
  }
})

t.test('an unknown kid fetches the set again, at most once a minute', async (t) => {
  const { clock, state, kids } = start()
  await kids()
  state.keys = [jwk('b')]
  t.strictSame(await kids('b'), ['a'])
  t.equal(state.fetches, 1, 'it was fetched just now')
  clock.advance(60)
  t.strictSame(await Promise.all([kids('b'), kids('b')]), [['b'], ['b']])
  t.equal(state.fetches, 2)
  for (const kid of ['x', 'y', 'z']) await kids(kid)
  t.equal(state.fetches, 2)
})

t.test('keys are used until the ceiling while they cannot be fetched', async (t) => {
  const { clock, state, failures, kids } = start()
  await kids()
  state.fails = true
  clock.advance(100)
  t.strictSame(await kids(), ['a'])
  await kids()
  t.equal(state.fetches, 2, 'what failed is tried again after a minute')
  t.strictSame(failures, ['https://a.example/keys'])
  clock.advance(899)
  t.strictSame(await kids(), ['a'])
  clock.advance(1)
  await t.rejects(kids(), { message: 'down' })
  state.fails = false
  clock.advance(60)
  t.strictSame(await kids(), ['a'])
})

t.test('a first fetch that fails is an error, and so is what is no key set', async (t) => {
  const { clock, state, kids } = start()
  state.fails = true
  await t.rejects(kids(), { message: 'down' })
  state.fails = false
  await t.rejects(kids(), { message: 'down' }, 'for a minute')
  for (const body of ['', '{}', '{"keys":[]}', '{"keys":[],"keys":[]}', '<html>']) {
    state.body = body
    clock.advance(60)
    await t.rejects(kids(), { name: 'Error' }, body)
  }
})
