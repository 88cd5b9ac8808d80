import t from 'tap'
import {
  claimsOf,
  exchange,
  obtainCode,
  obtainTokens,
  refresh,
  register,
  type Tokens,
} from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'

const server = await startServer(t, { mode: 'dev' })
const url = `${server.issuer}/_dev/faults`

interface Listed {
  readonly faults: readonly Record<string, unknown>[]
}

async function order(fault: Record<string, unknown>): Promise<Response> {
  const headers = { 'content-type': 'application/json' }
  return fetch(url, { method: 'POST', headers, body: JSON.stringify(fault) })
}

async function list(): Promise<Listed['faults']> {
  return ((await (await fetch(url)).json()) as Listed).faults
}

async function json(response: Promise<Response>): Promise<Tokens> {
  return (await (await response).json()) as Tokens
}

t.afterEach(async () => {
  t.equal((await fetch(url, { method: 'DELETE' })).status, 204)
})

t.test('a dropped response was committed, and the retry of a refresh gets the same successor', async (t) => {
  const client = await register(server)
  const tokens = await obtainTokens(server, client)
  t.equal((await order({ endpoint: 'token', fault: 'drop-after-commit' })).status, 201)
  await t.rejects(refresh(server, client, tokens.refresh_token))
  const retried = await json(refresh(server, client, tokens.refresh_token))
  t.ok(retried.refresh_token)
  t.not(retried.refresh_token, tokens.refresh_token)
  const again = await json(refresh(server, client, retried.refresh_token))
  t.ok(again.access_token, 'nothing was revoked')
})

t.test('a dropped response to a code leaves the code used', async (t) => {
  const client = await register(server)
  const code = await obtainCode(server, client)
  await order({ endpoint: '/api/oauth/token', fault: 'drop-after-commit' })
  await t.rejects(exchange(server, client, code))
  t.match(await json(exchange(server, client, code)), {
    error: 'invalid_grant',
    error_description: /already/,
  })
})

t.test('a request that is reset before it is read changes nothing', async (t) => {
  const client = await register(server)
  const code = await obtainCode(server, client)
  await order({ endpoint: 'token', fault: 'reset-before' })
  await t.rejects(exchange(server, client, code))
  t.ok((await json(exchange(server, client, code))).access_token)
})

t.test('faults are applied in their order, each as often as requested', async (t) => {
  const client = await register(server)
  const { refresh_token: token } = await obtainTokens(server, client)
  await order({ endpoint: 'token', fault: 'drop-after-commit' })
  await order({ endpoint: 'token', fault: '503', requests: 2, retry_after: 7 })
  await t.rejects(refresh(server, client, token))
  for (const _ of [1, 2]) {
    const response = await refresh(server, client, token)
    t.equal(response.status, 503)
    t.equal(response.headers.get('retry-after'), '7')
    t.match(await response.json(), { error: 'temporarily_unavailable' })
  }
  t.equal((await refresh(server, client, token)).status, 200)
  t.match(await list(), [
    { fault: 'drop-after-commit', requests: 1, fired: 1 },
    { fault: '503', requests: 2, fired: 2 },
  ])
})

t.test('a truncated response declares its full length, and ends in the middle', async (t) => {
  const client = await register(server)
  const { refresh_token: token } = await obtainTokens(server, client)
  await order({ endpoint: 'token', fault: 'truncate' })
  const response = await refresh(server, client, token)
  t.equal(response.status, 200)
  t.ok(Number(response.headers.get('content-length')) > 200)
  await t.rejects(response.text())
})

t.test('a delayed response was committed long before it arrives', async (t) => {
  const client = await register(server)
  const { refresh_token: token } = await obtainTokens(server, client)
  await order({ endpoint: 'token', fault: 'delay', ms: 3000 })
  const arrived: string[] = []
  const send = async (name: string) => {
    const tokens = await json(refresh(server, client, token))
    arrived.push(name)
    return tokens
  }
  const late = send('late')
  while ((await list())[0]?.['fired'] !== 1) await new Promise((resolve) => setTimeout(resolve, 10))
  const early = await send('early')
  t.equal((await late).refresh_token, early.refresh_token, 'the second was the retry')
  t.strictSame(arrived, ['early', 'late'])
})

t.test('a fault for one client does not affect the others, at any endpoint', async (t) => {
  const [one, other] = [await register(server), await register(server)]
  const tokens = await obtainTokens(server, one)
  await order({ client_id: one.id, fault: '503', requests: 2 })
  t.ok((await obtainTokens(server, other)).access_token)
  t.equal((await refresh(server, one, tokens.refresh_token)).status, 503)
  const headers = { authorization: `Bearer ${tokens.access_token}` }
  t.equal((await fetch(`${server.issuer}/api/oauth/userinfo`, { headers })).status, 503)
  t.equal((await fetch(`${server.issuer}/api/oauth/userinfo`, { headers })).status, 200)
  t.ok(claimsOf(tokens.id_token)['sub'])
})

t.test('an applied fault is a log line, and a note in the flow of its request', async (t) => {
  await order({ endpoint: 'jwks', fault: 'drop-after-commit' })
  await t.rejects(fetch(`${server.issuer}/api/oauth/jwks`))
  const line = server.log.findLast((text) => text.includes('drop-after-commit')) ?? ''
  t.match(JSON.parse(line).msg, /^fault \d+ \(drop-after-commit\) strikes GET \/api\/oauth\/jwks, 1 of 1$/)
  const client = await register(server)
  const { refresh_token: token } = await obtainTokens(server, client)
  await order({ endpoint: 'token', fault: 'drop-after-commit' })
  await t.rejects(refresh(server, client, token))
  const exchanges = (await server.app.recorder.flows()).flatMap((flow) => flow.exchanges)
  const struck = exchanges.find(({ notes }) => notes.some((note) => note.includes('(drop-after-commit)')))
  t.match(struck, { step: 'refresh', status: 200, broken: true })
})

t.test('one fault is deleted by its number, and invalid ones are rejected', async (t) => {
  const { id } = (await (await order({ endpoint: 'token', fault: '503' })).json()) as { id: string }
  t.equal((await fetch(`${url}/${id}`, { method: 'DELETE' })).status, 204)
  t.equal((await fetch(`${url}/${id}`, { method: 'DELETE' })).status, 404)
  t.strictSame(await list(), [])
  const wrong = [
    { fault: '503' },
    { endpoint: 'tokens', fault: '503' },
    { endpoint: 'token', fault: '502' },
    { endpoint: 'token', fault: '503', requests: 0 },
    { endpoint: 'token', fault: '503', ms: 5 },
    { endpoint: 'token', fault: 'delay', retry_after: 5 },
    { endpoint: 'token' },
  ]
  for (const fault of wrong) t.equal((await order(fault)).status, 400, JSON.stringify(fault))
})
