/** What a developer reads when a request is rejected: the response states what to do, the log line why. */
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import {
  callApi,
  exchange,
  obtainCode,
  obtainTokens,
  pkce,
  post,
  redirectUri,
  refresh,
  register,
  type Tokens,
} from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { newUser } from '../helpers/user.ts'

const other = 'https://api.example/other'
const jwt = 'https://api.example/jwt'
const scopes = ['courses:read']
const server = await startServer(t, {
  resources: [
    { identifier: other, name: 'Other', scopes, tokenFormat: 'opaque' },
    { identifier: jwt, name: 'Signed', scopes, tokenFormat: 'jwt' },
  ],
})
const client = await register(server)
const { agent } = newUser(server)
const scope = 'openid courses:read'

interface Line {
  readonly path: string
  readonly msg: string
  readonly status: number
  readonly why?: string
  readonly stored?: unknown
  readonly received?: unknown
}

let seen = 0

/** The line of the last request: it is written after the response was sent, possibly a moment after it arrived. */
async function lastLine(status: number): Promise<string> {
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const line = server.log.slice(seen).at(-1)
    if (line !== undefined && (JSON.parse(line) as Line).status === status) {
      seen = server.log.length
      return line
    }
    await setTimeout(5)
  }
  throw new Error(`no line with status ${status} after line ${seen}`)
}

async function rejected(response: Response, status: number): Promise<{ response: string; line: Line }> {
  const description = ((await response.json()) as { error_description: string }).error_description
  return { response: description, line: JSON.parse(await lastLine(status)) as Line }
}

const tokens = (fields: Record<string, string> = {}): Promise<Tokens> =>
  obtainTokens(server, client, { agent, fields: { scope, ...fields } })

async function assertWhy(t: Test, token: string, why: unknown): Promise<void> {
  const { response, line } = await rejected(await callApi(server, '/api/courses', token), 401)
  t.equal(
    response,
    'the access token is malformed, expired, revoked or not for this API',
    'one response for all',
  )
  t.match(line, { path: '/api/courses', msg: 'rejected', stored: why })
  t.notOk(JSON.stringify(line).includes(token))
}

t.test(
  'JSON sent to a form endpoint gets an error with the accepted Content-Type, and the other way round',
  async (t) => {
    const headers = { 'content-type': 'application/json' }
    const form = new URLSearchParams({ client_name: 'x' })
    const wrong: readonly [string, RequestInit, string][] = [
      ['/api/oauth/token', { headers, body: '{"grant_type":"x"}' }, 'application/x-www-form-urlencoded'],
      ['/api/oauth/revoke', { headers, body: '{"token":"x"}' }, 'application/x-www-form-urlencoded'],
      ['/api/oauth/introspect', { headers, body: '{"token":"x"}' }, 'application/x-www-form-urlencoded'],
      ['/api/oauth/register', { body: form }, 'application/json'],
    ]
    for (const [path, init, type] of wrong) {
      const response = await fetch(server.issuer + path, { method: 'POST', ...init })
      t.equal((await rejected(response, 415)).response, `the Content-Type must be ${type}`, path)
    }
  },
)

t.test('the log states why an access token is rejected, the response does not', async (t) => {
  const once = await tokens()
  await post(server, '/api/oauth/revoke', { token: once.access_token, client_id: client.id })
  await assertWhy(t, once.access_token, 'it was revoked by itself')
  await post(server, '/api/oauth/revoke', { token: once.refresh_token, client_id: client.id })
  await assertWhy(t, once.access_token, /^its grant was revoked at \d+$/)

  const live = await tokens()
  await assertWhy(t, live.refresh_token, 'it is a refresh token')
  await assertWhy(t, live.id_token, 'no access token of this server reads like this')
  await assertWhy(t, 'garbage', 'no access token of this server reads like this')

  const earliest = server.now() + 3600
  const foreign = await tokens({ resource: other })
  const latest = server.now() + 3600
  await assertWhy(t, foreign.access_token, [other])
  const signed = await tokens({ resource: jwt })
  await assertWhy(t, signed.access_token, [jwt])
  server.advance(3600)
  await assertWhy(t, foreign.access_token, new RegExp(`^it expired at (${earliest}|${latest})$`))
  await assertWhy(t, signed.access_token, /^it expired at \d+$/)
})

t.test('the log distinguishes an unknown client, a wrong secret and a wrong method', async (t) => {
  const confidential = await register(server, { token_endpoint_auth_method: 'client_secret_post' })
  const byForm = { ...client, secret: 'x', method: 'client_secret_post' }
  const without = { grant_type: 'authorization_code', client_id: confidential.id }
  const attempts: readonly [() => Promise<Response>, Partial<Line>][] = [
    [
      () => exchange(server, { ...confidential, id: 'client_unknown' }, 'code'),
      { stored: 'no client with this client_id', received: 'client_secret_post' },
    ],
    [
      () => exchange(server, { ...confidential, secret: 'wrong' }, 'code'),
      { stored: 'client_secret_post', received: 'client_secret_post, with another secret' },
    ],
    [() => post(server, '/api/oauth/token', without), { stored: 'client_secret_post', received: 'none' }],
    [() => exchange(server, byForm, 'code'), { stored: 'none', received: 'client_secret_post' }],
  ]
  for (const [send, expected] of attempts) {
    const { response, line } = await rejected(await send(), 400)
    t.equal(response, 'client authentication failed')
    t.match(line, expected)
  }
})

t.test('a verifier that is too short gets an error with the format, and the code stays valid', async (t) => {
  const { agent: user } = newUser(server)
  const { verifier, challenge } = pkce()
  const code = await obtainCode(server, client, {
    agent: user,
    fields: { scope, code_challenge: challenge },
  })
  const { response, line } = await rejected(
    await exchange(server, client, code, { code_verifier: 'abc' }),
    400,
  )
  t.match(response, /^code_verifier must be 43 to 128 /)
  t.equal(line.received, '3 characters')
  const redeemed = await exchange(server, client, code, { code_verifier: verifier })
  t.equal(redeemed.status, 200)
  const { refresh_token: token } = (await redeemed.json()) as Tokens
  t.equal((await refresh(server, client, token)).status, 200)
})

t.test('a wrong password leaves a log line with the reason, and without name or password', async (t) => {
  const { agent: user } = newUser(server)
  const url = `${server.issuer}/oauth/authorize?${new URLSearchParams({
    response_type: 'code',
    client_id: client.id,
    redirect_uri: redirectUri,
    scope,
    code_challenge: pkce().challenge,
    code_challenge_method: 'S256',
  })}`
  const landing = await user.open(url)
  if (landing.at !== 'page') throw new Error('no sign-in page')
  const again = await user.submit(landing.page, { username: 'alice-the-wrong', password: 'wrong-password' })
  t.match(again, { at: 'page', page: { status: 400 } })
  const line = await lastLine(400)
  t.match(JSON.parse(line), {
    msg: 'rejected',
    path: '/login',
    why: 'the sign-in was not accepted',
  })
  t.notMatch(line, /alice-the-wrong|wrong-password/)
})
