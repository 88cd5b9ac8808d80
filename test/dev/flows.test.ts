/** The trace of a development server, compared with what its clients sent and received. */
import t from 'tap'
import type { Exchange, Flow, TokenNode } from '../../src/dev/flows/flow.ts'
import { makeClientKey } from '../helpers/assertions.ts'
import { integrate, pageOf } from '../helpers/authorization.ts'
import {
  callApi,
  claimsOf,
  exchange,
  obtainCode,
  obtainTokens,
  pkce,
  post,
  refresh,
  register,
  type TestClient,
} from '../helpers/flow.ts'
import { startLogoutReceiver } from '../helpers/logout-receiver.ts'
import { postProven, signProof, tokenPath } from '../helpers/proofs.ts'
import { alice, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'

const server = await startServer(t, { mode: 'dev' })

interface Told {
  readonly flows: readonly Flow[]
  readonly loose: readonly Exchange[]
}

async function told(): Promise<Told> {
  return (await (await fetch(`${server.issuer}/_dev/flows.json`)).json()) as Told
}

/** The newest flow of this client. */
async function flowOf(client: TestClient): Promise<Flow> {
  const flow = (await told()).flows.find((each) => each.client?.id === client.id)
  if (flow === undefined) throw new Error('no flow')
  return flow
}

/** What is checked of a code before its verifier is compared. */
const checksOfCode = [
  'rfc6749-4.1.3-code-required',
  'rfc6749-4.1.3-code-valid',
  'rfc6749-4.1.3-code-valid',
  'rfc6749-4.1.3-code-issued-to-client',
  'rfc6749-4.1.3-redirect-uri-identical',
  'rfc9700-2.1.1-downgrade',
  'rfc7636-4.5-verifier-required',
  'rfc7636-4.1-verifier-syntax',
]
const stepsOf = (flow: Flow) => flow.exchanges.map(({ step }) => step)
const discover = () => fetch(`${server.issuer}/.well-known/oauth-authorization-server`)

/** The whole flow of a client, with its tokens at each stage. */
async function wholeFlow() {
  await discover()
  const client = await register(server, { client_name: 'Tracer' })
  const tokens = await obtainTokens(server, client, { fields: { scope: 'openid courses:read' } })
  await fetch(`${server.issuer}/api/oauth/jwks`)
  await callApi(server, '/api/oauth/userinfo', tokens.access_token)
  await callApi(server, '/api/courses', tokens.access_token)
  await post(server, '/api/oauth/introspect', { token: tokens.access_token, client_id: client.id })
  const next = (await (await refresh(server, client, tokens.refresh_token)).json()) as typeof tokens
  await post(server, '/api/oauth/revoke', { token: next.refresh_token, client_id: client.id })
  const dead = await callApi(server, '/api/courses', next.access_token)
  return { client, tokens, next, dead }
}

const whole = await wholeFlow()

t.test('one flow has every request of a client, from discovery to revocation, in order', async (t) => {
  const flow = await flowOf(whole.client)
  t.strictSame(stepsOf(flow), [
    ...['discovery', 'registration', 'authorization', 'sign-in', 'sign-in', 'consent', 'consent'],
    ...[
      'code exchange',
      'keys',
      'UserInfo',
      'API call',
      'introspection',
      'refresh',
      'revocation',
      'API call',
    ],
  ])
  t.strictSame(flow.client, { id: whole.client.id, name: 'Tracer' })
  t.equal(flow.user, alice.username)
  t.equal(flow.refused, 1)
  const offsets = flow.exchanges.map(({ afterMs }) => afterMs)
  t.equal(offsets[0], 0)
  t.strictSame(
    offsets,
    offsets.toSorted((one, other) => one - other),
  )
})

t.test('each exchange lists its passed checks with clause, stored and received value', async (t) => {
  const { exchanges } = await flowOf(whole.client)
  const redeemed = exchanges.find(({ step }) => step === 'code exchange')
  const rules = redeemed?.passed.map(({ rule }) => rule)
  t.strictSame(rules, [
    'rfc6749-3.2.1-public-sends-client-id',
    'rfc6749-3.2.1-public-sends-client-id',
    'rfc6749-4.1.3-grant-type-required',
    'rfc6749-5.2-unsupported-grant-type',
    'rfc6749-5.2-unauthorized-client',
    ...checksOfCode,
    'rfc7636-4.6-verify-s256',
    'lychgate-currently-allowed',
    'rfc8707-2.2-not-granted',
    'rfc8707-2.2-subset-at-token',
    'rfc8707-2.2-invalid-combination',
    'rfc6749-4.1.2-code-single-use',
    'rfc6749-4.1.2-code-short-lived',
  ])
  const { challenge } = pkce('v'.repeat(43))
  const proof = redeemed?.passed.find(({ rule }) => rule === 'rfc7636-4.6-verify-s256')
  t.strictSame([proof?.stored, proof?.received], [challenge, challenge])
  t.equal(proof?.clause.url, 'https://www.rfc-editor.org/rfc/rfc7636#section-4.6')
  t.match(redeemed?.writes.join('\n'), /^grant \S+: code redeemed/)
})

t.test('a rejected request shows the rule and the reason, though the client gets less', async (t) => {
  const last = (await flowOf(whole.client)).exchanges.at(-1)
  t.equal(whole.dead.status, 401)
  t.equal(last?.status, 401)
  t.equal(last?.refused?.rule, 'rfc6750-3.1-invalid-token-401')
  t.equal(last?.refused?.error, 'invalid_token')
  t.match(last?.refused?.stored, /^its grant was revoked at \d+$/)
})

t.test('the lineage shows each token below its origin, and whether it works', async (t) => {
  const shape = (nodes: readonly TokenNode[]): unknown =>
    nodes.map(({ kind, seq, active, children }) => [kind, seq, active, shape(children)])
  t.strictSame(shape((await flowOf(whole.client)).tokens), [
    [
      ...['code', 0, false],
      [
        ['access', 1, false, []],
        [
          ...['refresh', 1, false],
          [
            ['access', 2, false, []],
            ['refresh', 2, false, []],
            ['id', undefined, true, []],
          ],
        ],
        ['id', undefined, true, []],
      ],
    ],
  ])
  const client = await register(server)
  await obtainTokens(server, client)
  t.strictSame(shape((await flowOf(client)).tokens), [
    [
      'code',
      0,
      false,
      [
        ['access', 1, true, []],
        ['refresh', 1, true, []],
        ['id', undefined, true, []],
      ],
    ],
  ])
})

t.test('no secret appears in full: not in JSON, not in HAR, not on a page', async (t) => {
  const confidential = await register(server, { token_endpoint_auth_method: 'client_secret_basic' })
  const agent = new UserAgent(server.issuer)
  const code = await obtainCode(server, confidential, { agent })
  const tokens = (await (await exchange(server, confidential, code)).json()) as Record<string, string>
  // JSON sent to a form endpoint, a form sent to a JSON endpoint, a token in the query: mistakes contain secrets too.
  const json = { 'content-type': 'application/json' }
  const asJson = JSON.stringify({
    refresh_token: tokens['refresh_token'],
    client_secret: confidential.secret,
  })
  await fetch(`${server.issuer}/api/oauth/token`, { method: 'POST', headers: json, body: asJson })
  await fetch(`${server.issuer}/api/courses?access_token=${tokens['access_token']}`)
  const wrong = 'not-the-password-of-anybody'
  const landing = await agent.open(
    `${server.issuer}/oauth/authorize?${new URLSearchParams({
      ...{
        response_type: 'code',
        client_id: confidential.id,
        redirect_uri: confidential.redirectUri,
        prompt: 'login',
      },
      ...{ code_challenge: pkce('v'.repeat(43)).challenge, code_challenge_method: 'S256', scope: 'openid' },
    })}`,
  )
  if (landing.at === 'page') await agent.submit(landing.page, { username: alice.username, password: wrong })

  const cookies = [...agent.cookies.values()]
  const signature = (jws = '') => jws.split('.')[2] ?? jws
  const secrets = [
    ...[code, wrong, alice.password, 'v'.repeat(43), confidential.secret ?? '', ...cookies],
    ...[tokens['access_token'] ?? '', tokens['refresh_token'] ?? '', signature(tokens['id_token'])],
  ]
  t.equal(secrets.filter((secret) => secret.length > 8).length, secrets.length, 'each is one')
  const { flows } = await told()
  const paths = flows.flatMap(({ id }) => [`/${id}`, `/${id}.json`, `/${id}.har`])
  for (const path of ['.json', '', ...paths]) {
    const text = await (await fetch(`${server.issuer}/_dev/flows${path}`)).text()
    for (const secret of secrets) t.notOk(text.includes(secret), `${path}: ${secret.slice(0, 14)}`)
    t.notOk(/lyc_[a-z]+_[\w-]/.test(text), path)
  }
})

t.test('a proof shows each check of RFC 9449 §4.3, by name the one that failed, and no secret', async (t) => {
  const client = await register(server)
  const key = makeClientKey('ES256')
  const fields = {
    grant_type: 'authorization_code',
    code: await obtainCode(server, client),
    redirect_uri: client.redirectUri,
    code_verifier: 'v'.repeat(43),
  }
  const at = { url: server.issuer + tokenPath, now: server.now() }
  const response = await postProven(server, client, tokenPath, fields, signProof(key, at))
  const { access_token: token } = (await response.json()) as Record<string, string>
  const url = `${server.issuer}/api/courses`
  const proof = signProof(key, { ...at, url, method: 'GET', token: 'another token' })
  await fetch(url, { headers: { authorization: `DPoP ${token}`, dpop: proof } })
  const { exchanges, id } = await flowOf(client)
  const checks = ['single-header', 'well-formed', 'typ', 'alg', 'private-key', 'claims', 'htm', 'htu', 'iat']
  const redeemed = exchanges.find(({ step }) => step === 'code exchange')
  const passed = new Set(redeemed?.passed.map(({ rule }) => rule))
  for (const name of [...checks, 'signature']) t.ok(passed.has(`rfc9449-4.3-${name}`), name)
  t.equal(exchanges.at(-1)?.refused?.rule, 'rfc9449-4.3-ath')
  const shown = await (await fetch(`${server.issuer}/_dev/flows/${id}.json`)).text()
  for (const secret of [token ?? '', proof]) t.notOk(shown.includes(secret))
})

t.test('the same secret has the same mark everywhere, and other secrets have others', async (t) => {
  const client = await register(server)
  const tokens = await obtainTokens(server, client)
  await refresh(server, client, tokens.refresh_token)
  const flow = await flowOf(client)
  const issued = flow.exchanges.find(({ step }) => step === 'code exchange')?.answer.body?.text ?? ''
  const [mark = ''] = /\(refresh~[0-9a-f]{6}\)/.exec(issued) ?? []
  const sent = flow.exchanges.at(-1)?.request.body?.text ?? ''
  t.ok(mark !== '' && sent.includes(`refresh_token=${mark}`), sent)
  t.notOk(flow.exchanges.at(-1)?.answer.body?.text.includes(mark), 'its successor is another')
})

t.test('another grant of the same client is another flow, and so is each unknown client', async (t) => {
  const client = await register(server)
  await obtainTokens(server, client)
  await obtainTokens(server, client)
  const own = (await told()).flows.filter((flow) => flow.client?.id === client.id)
  t.strictSame(
    own.map((flow) => stepsOf(flow)[0]),
    ['authorization', 'registration'],
  )
  await fetch(`${server.issuer}/oauth/authorize?client_id=nobody-knows`)
  const [nobody] = (await told()).flows
  t.strictSame(nobody?.client, { id: 'nobody-knows' })
  t.equal(nobody?.exchanges[0]?.refused?.rule, 'rfc6749-4.1.2.1-client-error-page')
})

t.test('simultaneous requests record only their own checks', async (t) => {
  const clients = await Promise.all(Array.from({ length: 6 }, () => register(server)))
  const codes = await Promise.all(clients.map((client) => obtainCode(server, client)))
  const verifiers = codes.map((_code, at) => String(at).repeat(43))
  await Promise.all(
    clients.map((client, at) =>
      exchange(server, client, codes[at] ?? '', { code_verifier: verifiers[at] ?? '' }),
    ),
  )
  for (const [at, client] of clients.entries()) {
    const last = (await flowOf(client)).exchanges.at(-1)
    t.equal(last?.refused?.rule, 'rfc7636-4.6-mismatch-invalid-grant')
    t.equal(last?.refused?.received, pkce(verifiers[at]).challenge)
    t.strictSame(last?.passed.map(({ rule }) => rule).slice(-checksOfCode.length), checksOfCode)
    t.strictSame(last?.writes, [])
  }
})

t.test('an error page leads to its request in the trace, and so does its request id', async (t) => {
  const page = await fetch(`${server.issuer}/oauth/authorize?client_id=lost`)
  const id = page.headers.get('x-request-id')
  const [, link = ''] = /<a href="([^"]*\/_dev\/flows\/requests\/[^"]*)"/.exec(await page.text()) ?? []
  t.equal(link, `${server.issuer}/_dev/flows/requests/${id}`)
  const led = await fetch(link, { redirect: 'manual' })
  t.equal(led.status, 303)
  const flow = (await told()).flows.find(({ client }) => client?.id === 'lost')
  t.equal(led.headers.get('location'), `/_dev/flows/${flow?.id}#r-${id}`)
  t.equal((await fetch(`${server.issuer}/_dev/flows/requests/nothing`)).status, 404)
  t.equal((await fetch(`${server.issuer}/_dev/flows/f99999`)).status, 404)
})

t.test('a requested fault is noted, and a response that was never sent is shown as none', async (t) => {
  const client = await register(server)
  const tokens = await obtainTokens(server, client)
  await fetch(`${server.issuer}/_dev/faults`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_id: client.id, requests: 1, fault: 'drop-after-commit' }),
  })
  await t.rejects(refresh(server, client, tokens.refresh_token))
  const retried = await refresh(server, client, tokens.refresh_token)
  t.equal(retried.status, 200)
  const [lost, retry] = (await flowOf(client)).exchanges.slice(-2)
  t.equal(lost?.broken, true)
  t.match(lost?.notes.join(), /drop-after-commit/)
  t.match(lost?.writes.join(), 'rotated from number 1 to 2')
  t.equal(retry?.broken, false)
  t.match(retry?.passed.map(({ found }) => found).join(), 'the same successor again')
  const [code] = (await flowOf(client)).tokens
  const first = code?.children.find(({ kind }) => kind === 'refresh')
  t.equal(first?.children.filter(({ kind }) => kind === 'refresh').length, 1, 'one successor, sent twice')
})

t.test('a logout token and the response of the client are part of the flow', async (t) => {
  const receiver = await startLogoutReceiver(t)
  const client = await integrate(server, {
    consent: 'skip',
    description: { backchannel_logout_uri: receiver.uri },
  })
  const agent = new UserAgent(server.issuer)
  const logoutOf = async () => {
    await obtainTokens(server, client, { agent })
    await agent.submit(pageOf(await agent.open(`${server.issuer}/oauth/logout`)), { decision: 'logout' })
    const sent = (await receiver.next()).form.get('logout_token') ?? ''
    for (;;) {
      const found = (await flowOf(client)).exchanges.findLast(({ step }) => step === 'logout token')
      if (found?.issued[0]?.jwt && claimsOf(sent)['jti'] === found.id) return { found, sent }
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
  const { found, sent } = await logoutOf()
  t.match(found, { method: 'POST', url: receiver.uri, status: 200, notes: ['delivered'] })
  t.match(found.request.body?.text, /^logout_token=\([a-z-]+~[0-9a-f]{6}\)$/)
  t.match(found.issued[0]?.jwt, { header: { typ: 'logout+jwt' }, claims: claimsOf(sent) })
  t.notMatch(JSON.stringify(await told()), sent.split('.')[2], 'its signature is left out')
  receiver.conduct = 400
  t.match((await logoutOf()).found, { status: 400, notes: ['the response has status 400'] })
  const page = await (await fetch(`${server.issuer}/_dev/flows`)).text()
  t.match(page, 'logout token')
})
