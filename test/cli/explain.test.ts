/** `lychgate explain` with a running server: the same file, another process. */

import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { rotateClientSecret } from '../../src/clients/operator-client.ts'
import { remove } from '../../src/domain/decision.ts'
import { hashSecret } from '../../src/domain/secret.ts'
import { describeService } from '../../src/feature/service.ts'
import { declared } from '../../src/features.ts'
import { explainToken } from '../../src/observability/explain.ts'
import { makeLink } from '../../src/users/one-time-links.ts'
import { linkKinds } from '../../src/users/rules/one-time-link.ts'
import { type Ended, newFolder, run } from '../helpers/command.ts'
import { exchange, obtainCode, obtainTokens, post, postAs, refresh, register } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { newUser } from '../helpers/user.ts'
import { addClient, json } from '../helpers/wire.ts'

const jwt = 'https://api.example/jwt'
const store = `sqlite:${join(newFolder(t), 'lychgate.db')}`
const server = await startServer(t, {
  store,
  resources: [{ identifier: jwt, name: 'Signed', scopes: ['courses:read'], tokenFormat: 'jwt' }],
})
const client = await register(server, { client_name: 'Explained' })
const { agent } = newUser(server)
const environment = {
  LYCHGATE_ISSUER: server.issuer,
  LYCHGATE_STORE: store,
  LYCHGATE_SECRET: 'a secret for tests that is long enough',
}

const ask = (...args: readonly string[]): Promise<Ended> => run(['explain', ...args], { environment })

/** The output of the command for a token, without starting a process. */
const explained = async (token: string) => {
  const { store, keys, config } = server.deps
  const service = describeService(config, declared)
  return (await explainToken(token, { store, keys, service, now: server.now() })).json
}

/** Waits until the rejection with this request id is stored, which happens after the response. */
async function kept(id: string): Promise<void> {
  while ((await server.deps.store.find('rejection', id)) === undefined) await setTimeout(10)
}

async function asJson(t: Test, asked: string): Promise<object> {
  const { code, stdout, stderr } = await run(['explain', '--json', '-'], { environment, input: asked })
  t.equal(code, 0, stderr)
  return JSON.parse(stdout) as object
}

const tokens = (fields: Record<string, string> = {}) =>
  obtainTokens(server, client, { agent, fields: { scope: 'openid courses:read', ...fields } })

t.test(
  'a rejected request is explained by the id of its response: rule, clause, stored, received',
  async (t) => {
    const { refresh_token: token } = await tokens()
    const wider = await refresh(server, client, token, { scope: 'openid orders:write' })
    const id = wider.headers.get('x-request-id') ?? ''
    await kept(id)
    const { stdout } = await ask(id)
    t.match(stdout, /^POST \/api\/oauth\/token was rejected with 400 invalid_scope$/m)
    t.match(stdout, /^rule +rfc6749-6-scope-exceed$/m)
    t.match(stdout, /^clause +RFC 6749 §6 {2}https:\/\/www\.rfc-editor\.org\/rfc\/rfc6749#section-6$/m)
    t.match(stdout, /^stored +openid courses:read$/m)
    t.match(stdout, /^received +orders:write$/m)
    t.notOk(stdout.includes(token))
    t.match(await asJson(t, id), { id, error: 'invalid_scope', client: client.id, status: 400 })
    const [first] = (await run(['explain'], { environment })).stdout.split('\n')
    t.match(
      first,
      new RegExp(`^${id} .* POST /api/oauth/token +400 invalid_scope$`),
      'the newest of the list',
    )
  },
)

t.test('received text cannot forge a line of the explanation, nor control the terminal', async (t) => {
  const forged = 'x\nwhy   all is well\r\nrule  none\u2028at    now\u202e\u009b2J\u001b[2J'
  const sent = await post(server, '/api/oauth/token', { client_id: client.id, grant_type: forged })
  const id = sent.headers.get('x-request-id') ?? ''
  await kept(id)
  const { stdout } = await ask(id)
  const names = stdout.split('\n').map((line) => line.split(' ')[0])
  t.same(names, ['POST', 'why', 'rule', 'clause', '', 'received', 'client', 'at', 'request', ''])
  t.notMatch(stdout, /[^\P{C}\n]|[\p{Zl}\p{Zp}]/u)
  const { stdout: asJson } = await ask('--json', id)
  t.notMatch(asJson, /[^\P{C}\n]|[\p{Zl}\p{Zp}]/u)
  t.match(JSON.parse(asJson), { received: forged }, 'JSON has all of it')
})

t.test('a valid token is active, with its scope and its user', async (t) => {
  const live = await tokens()
  const stored = { client: `${client.id} Explained`, user: 'alice', scope: ['openid', 'courses:read'] }
  for (const [token, kind] of [
    [live.access_token, 'access token'],
    [live.refresh_token, 'refresh token'],
    [(await tokens({ resource: jwt, scope: 'courses:read' })).access_token, 'JWT access token'],
  ] as const) {
    const told = await explained(token)
    t.match(told, { kind, active: true, stored: { client: stored.client, user: stored.user } })
    t.notMatch(told, { rule: String })
  }
  t.match(await asJson(t, live.access_token), { active: true, stored, received: { number: 1 } })
  t.match(await explained(live.id_token), {
    kind: 'ID Token',
    active: true,
    why: 'it tells its client who signed in; as an access token no API takes it',
  })
})

t.test('an invalid token names the rule that ended it', async (t) => {
  const ends: readonly [string, () => Promise<string>, object][] = [
    [
      'revoked by itself',
      async () => {
        const { access_token: token } = await tokens()
        await post(server, '/api/oauth/revoke', { token, client_id: client.id })
        return token
      },
      { rule: 'rfc7009-2-access-revocation' },
    ],
    [
      'revoked with its refresh token',
      async () => {
        const { access_token: token, refresh_token: refreshToken } = await tokens()
        await post(server, '/api/oauth/revoke', { token: refreshToken, client_id: client.id })
        return token
      },
      { rule: 'rfc7009-2.1-refresh-cascades', why: /^its grant was revoked at \d+$/ },
    ],
    [
      'ended by a replayed code',
      async () => {
        const code = await obtainCode(server, client, { agent })
        const { access_token: token } = (await (await exchange(server, client, code)).json()) as {
          access_token: string
        }
        await exchange(server, client, code)
        return token
      },
      { rule: 'rfc6749-4.1.2-code-replay-revokes' },
    ],
    [
      'a rotated refresh token',
      async () => {
        const { refresh_token: token } = await tokens()
        await refresh(server, client, token)
        return token
      },
      { rule: 'rfc9700-4.14.2-reuse-revokes-family', why: /it is number 1, .* the current one is 2$/ },
    ],
    [
      'a redeemed code',
      async () => {
        const code = await obtainCode(server, client, { agent })
        await exchange(server, client, code)
        return code
      },
      { kind: 'authorization code', rule: 'rfc6749-4.1.2-code-single-use' },
    ],
    [
      'two hours later',
      async () => {
        const { access_token: token } = await tokens()
        server.advance(7200)
        return token
      },
      { rule: 'rfc6750-5.3-short-lived', why: /^it expired at \d+$/ },
    ],
    [
      'cut short',
      async () => (await tokens()).access_token.slice(0, -4),
      { kind: 'unknown token', rule: 'rfc6750-3.1-invalid-token-401' },
    ],
  ]
  for (const [name, end, expected] of ends) {
    t.match(await explained(await end()), { active: false, ...expected }, name)
  }
})

t.test('a code that expired is said to have expired, also when its grant is no longer stored', async (t) => {
  const code = await obtainCode(server, client, { agent })
  server.advance(server.deps.config.lifetimes.codeSeconds)
  const rule = 'rfc6749-4.1.2-code-short-lived'
  t.match(await explained(code), { active: false, rule, why: /^it expired at \d+$/ })
  await server.maintain()
  t.match(await explained(code), {
    active: false,
    rule,
    why: /^it expired at \d+, and its grant is no longer stored$/,
  })
  const response = await exchange(server, client, code)
  t.strictSame(
    [response.status, await response.json()],
    [400, { error: 'invalid_grant', error_description: 'the code has expired' }],
  )
})

t.test('a token whose grant is gone is explained without a guess at the cause', async (t) => {
  const gone = await register(server)
  const { access_token: token } = await obtainTokens(server, gone, { agent })
  await run(['client', 'remove', gone.id, '--yes'], { environment })
  t.match(await explained(token), {
    active: false,
    why: /^its grant is no longer stored; by its own times it is valid until \d+$/,
  })
})

t.test('a client secret is found by its hash, and never printed', async (t) => {
  const confidential = await register(server, { token_endpoint_auth_method: 'client_secret_post' })
  const secret = confidential.secret ?? ''
  const told = await explained(secret)
  t.match(told, { kind: 'client secret', active: true, stored: { client: confidential.id } })
  t.notOk(JSON.stringify(told).includes(secret))
  t.match(await explained(`lyc_secret_${'x'.repeat(43)}`), { kind: 'client secret', active: false })
})

t.test('a replaced secret is explained until its end and after it, and a lock ends both', async (t) => {
  const confidential = await register(server, { token_endpoint_auth_method: 'client_secret_post' })
  const { id, secret = '' } = confidential
  // Not the command line: the server's time was moved.
  const keepUntil = server.now() + 3600
  const { secret: renewed } = await server.deps.store.transact('client', id, (found) =>
    rotateClientSecret(found, randomBytes(32), { by: 'operator', at: server.now() }, keepUntil),
  )
  t.match(await explained(secret), { active: true, stored: { client: id } })
  t.match(await explained(renewed), { active: true, stored: { client: id } })
  server.advance(7200)
  t.match(await explained(secret), { active: false, why: `it was replaced, and accepted until ${keepUntil}` })
  await run(['client', 'lock', id, '--yes'], { environment })
  t.match(await explained(renewed), { active: false, rule: 'lychgate-client-locked' })
})

t.test('a token of a client that acts for itself has no user', async (t) => {
  const machine = await addClient(server, {
    redirectUris: [],
    grantTypes: ['client_credentials'],
    scope: ['courses:read'],
  })
  const response = await postAs(server, machine, '/api/oauth/token', { grant_type: 'client_credentials' })
  const { access_token: token } = await json(response)
  const told = await explained(String(token))
  t.match(told, { active: true, stored: { user: 'none: the client acts for itself' } })
  await run(['client', 'lock', machine.id, '--yes'], { environment })
  t.match(await explained(String(token)), { active: false, rule: 'lychgate-client-locked' })
})

t.test('a one-time link names its user while it works, and nothing afterwards', async (t) => {
  const { store, config, random } = server.deps
  const { id: userId } = (await store.find('userByLogin', 'alice')) ?? { id: '' }
  const context = { by: 'operator', at: server.now() } as const
  const whom = { purpose: 'password-reset', userId } as const
  const { url } = await makeLink({ config, store, random }, whom, context)
  const code = new URL(url).searchParams.get('code') ?? ''
  const stored = { purpose: 'password-reset', username: 'alice' }
  t.match(await explained(code), { kind: 'one-time link', active: true, stored })
  await store.write(remove(linkKinds['password-reset'], hashSecret(code)))
  t.match(await explained(code), { active: false, why: /^no link has it: it was used/, stored: {} })
})

t.test('text that cannot be explained is one line', async (t) => {
  const unknown = await ask('0f9d3c6e-7a0b-4c55-9f0e-5d9b6f8f4a52')
  t.match(unknown, {
    code: 1,
    stdout: '',
    stderr: /^lychgate: no rejected request with this id is stored.*\n$/,
  })
  t.match(await run(['explain', '-'], { environment, input: '\n' }), {
    code: 1,
    stderr: /nothing to explain/,
  })
  t.match(await run(['explain', 'one', 'two'], { environment }), { code: 64 })
  const wrong = { ...environment, LYCHGATE_SECRET: 'another secret that is long enough, too' }
  const { code, stderr } = await run(['explain', 'lyc_access_x'], { environment: wrong })
  t.equal(code, 78)
  t.match(stderr, /^lychgate: secret: the secret does not open the stored keys.*\n$/)
})
