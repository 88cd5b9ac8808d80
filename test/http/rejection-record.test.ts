/** The records that `lychgate explain` reads: every rejected request, by the request id of its response. */
import { setTimeout } from 'node:timers/promises'
import type { InjectOptions } from 'fastify'
import t from 'tap'
import type { Rejection } from '../../src/domain/model.ts'
import { networkShares } from '../../src/observability/rejection-record.ts'
import {
  authorizationUrl,
  authorize,
  callApi,
  exchange,
  obtainCode,
  post,
  register,
} from '../helpers/flow.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { newUser } from '../helpers/user.ts'

async function kept(server: TestServer, response: Response): Promise<Rejection | undefined> {
  const id = response.headers.get('x-request-id') ?? ''
  for (let attempt = 0; attempt < 1500; attempt += 1) {
    const record = await server.deps.store.find('rejection', id)
    if (record !== undefined) return record
    await setTimeout(20)
  }
  return undefined
}

t.test('a rejected request is recorded for JSON, a challenge, a page and a redirect', async (t) => {
  const server = await startServer(t)
  const client = await register(server)
  const cases: readonly [Promise<Response>, Partial<Rejection>][] = [
    [
      exchange(server, client, 'lyc_code_garbage'),
      { path: '/api/oauth/token', status: 400, error: 'invalid_grant', rule: 'rfc6749-4.1.3-code-valid' },
    ],
    [
      callApi(server, '/api/courses', 'garbage'),
      { path: '/api/courses', status: 401, error: 'invalid_token' },
    ],
    [
      authorize(server, { ...client, id: 'nobody' }),
      { path: '/oauth/authorize', status: 400, rule: 'rfc6749-4.1.2.1-client-error-page' },
    ],
    [
      authorize(server, client, { code_challenge: undefined }),
      { path: '/oauth/authorize', status: 303, error: 'invalid_request' },
    ],
  ]
  for (const [sent, expected] of cases) {
    const record = await kept(server, await sent)
    t.match(
      record,
      { at: Number, method: String, why: String, rule: String, ...expected },
      String(expected.path),
    )
  }
})

t.test('a rejection record contains no secret', async (t) => {
  const server = await startServer(t)
  const client = await register(server, { token_endpoint_auth_method: 'client_secret_post' })
  const { agent } = newUser(server)
  const code = await obtainCode(server, client, { agent })
  const responses = [
    await exchange(server, client, code, { code_verifier: 'w'.repeat(43) }),
    await exchange(server, { ...client, secret: 'lyc_secret_wrong-but-secret' }, code),
    await callApi(server, `/api/courses?access_token=${code}`, code),
  ]
  for (const response of responses) {
    const record = JSON.stringify((await kept(server, response)) ?? t.fail('nothing was kept'))
    for (const secret of [code, client.secret ?? '?', 'wrong-but-secret', 'w'.repeat(43)]) {
      t.notOk(record.includes(secret), record)
    }
  }
  t.match(await kept(server, responses[0] as Response), { client: client.id })
})

t.test('records that are still buffered are written when the server closes', async (t) => {
  const server = await startServer(t)
  const { store } = server.deps
  const id = (await post(server, '/api/oauth/token', {})).headers.get('x-request-id') ?? ''
  await server.app.close()
  t.match(await store.find('rejection', id), { id, error: 'invalid_request' })
})

/** Sends all of these at once, closes the server, and returns the rejected requests that it stored. */
async function storedOf(server: TestServer, requests: readonly InjectOptions[]) {
  const responses = await Promise.all(requests.map((request) => server.app.inject(request)))
  await server.app.close()
  const found = responses.map(({ headers }) =>
    server.deps.store.find('rejection', String(headers['x-request-id'])),
  )
  return (await Promise.all(found)).filter((record) => record !== undefined)
}

const rejected = { url: '/oauth/authorize?client_id=nobody' }

t.test('a flood is not recorded completely, and nothing is recorded where records are off', async (t) => {
  const flood = Array.from({ length: 300 }, () => rejected)
  t.equal((await storedOf(await startServer(t), flood)).length, 100)
  t.equal((await storedOf(await startServer(t, { rejectionsKept: 0 }), flood)).length, 0)
})

t.test('unknown paths take no record from requests that were rejected', async (t) => {
  const server = await startServer(t)
  const unserved = Array.from({ length: 200 }, (_, n) => [
    { url: `/nothing/${n}` },
    { method: 'DELETE' as const, url: '/oauth/authorize' },
  ])
  const stored = await storedOf(server, [...unserved.flat(), rejected])
  t.same(
    stored.map(({ path }) => path),
    ['/oauth/authorize'],
  )
})

t.test('one network does not displace the records of the others', async (t) => {
  const server = await startServer(t, { rateLimits: 'on', trustProxy: ['127.0.0.1'], rejectionsKept: 1000 })
  const from = (address: string) => ({ ...rejected, headers: { 'x-forwarded-for': address } })
  const flood = Array.from({ length: 300 }, (_, n) => from(`203.0.113.${n % 250}`))
  const stored = await storedOf(server, [...flood, from('198.51.100.1')])
  t.equal(stored.length, 51, 'fifty of the flood and the one of the other network')
})

t.test('the share of a network refills with time, and is a tenth of the records a day', async (t) => {
  let now = 1_000_000
  const hasShare = networkShares(1000, () => now)
  const taken = (network: string, attempts: number) =>
    Array.from({ length: attempts }, () => hasShare(network)).filter(Boolean).length
  t.equal(taken('a', 200), 50)
  t.equal(taken('b', 1), 1)
  now += 86_400
  t.equal(taken('a', 200), 50, 'not more than at first')
  let day = 0
  for (let hour = 0; hour < 24; hour += 1) {
    now += 3600
    day += taken('a', 200)
  }
  t.ok(day >= 99 && day <= 101, `${day} a day`)
  now -= 500_000
  t.equal(taken('a', 200), 0, 'a clock that was set back gives nothing')
  for (let n = 0; n < 20_000; n += 1) hasShare(`network ${n}`)
  t.equal(taken('a', 200), 50, 'networks are not remembered without end')
})

t.test('whatever is sent, a log line and a record take less than 2 KiB', async (t) => {
  const server = await startServer(t)
  const long = (n: number) => `http://127.0.0.1/${n}/${'p'.repeat(110)}`
  const client = await register(server, {
    redirect_uris: Array.from({ length: 50 }, (_, n) => long(n)),
  })
  const form = (value: string) => ({
    method: 'POST' as const,
    url: '/api/oauth/token',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    payload: new URLSearchParams({ client_id: client.id, grant_type: value }).toString(),
  })
  const controls = '\u0001'.repeat(2000)
  const pieces = Array.from({ length: 90 }, (_, n) => `scope-${n}-${'s'.repeat(40)}`).join(' ')
  const requests = [
    { url: `/oauth/authorize?client_id=${client.id}&redirect_uri=http://127.0.0.1/` },
    { url: `/oauth/authorize?client_id=${client.id}&redirect_uri=${'%01'.repeat(2000)}` },
    { url: `/oauth/authorize?client_id=${'%22'.repeat(2000)}` },
    { url: authorizationUrl(server, { ...client, redirectUri: long(0) }, { scope: pieces }) },
    { url: `/api/oauth/register/${'x'.repeat(190)}` },
    form(controls),
    form('\u{1f600}'.repeat(600)),
  ]
  const before = server.log.length
  const stored = await storedOf(server, [...requests, { url: `/${'%5C"'.repeat(2000)}` }])
  t.equal(stored.length, requests.length)
  for (const record of stored) {
    const bytes = Buffer.byteLength(JSON.stringify(record))
    t.ok(bytes < 2048, `${bytes} bytes stored: ${record.rule}`)
  }
  const lines = server.log.slice(before).filter((line) => line.includes('"rejected"'))
  t.equal(lines.length, requests.length + 1)
  for (const line of lines) t.ok(Buffer.byteLength(line) < 2048, `${Buffer.byteLength(line)} bytes logged`)
  t.match(stored[0]?.stored, [long(0), long(1), long(2), '… and 47 more'])
})
