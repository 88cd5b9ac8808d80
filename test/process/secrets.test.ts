import { readFileSync } from 'node:fs'
import t from 'tap'
import { mintGrantId } from '../../src/domain/grant.ts'
import { mintSecret, secretBytes } from '../../src/domain/secret.ts'
import { systemRandom } from '../../src/system/system.ts'
import {
  authorizationUrl,
  callApi,
  exchange,
  obtainCode,
  post,
  postAs,
  refresh,
  register,
  signInAndApprove,
  type Tokens,
} from '../helpers/flow.ts'
import { alice, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'

const folder = t.testdir()
const server = await startServer(t, { store: `sqlite:${folder}/lychgate.db`, logLevel: 'debug' })
/** Every secret that crossed the wire, by its kind. */
const secrets = new Map<string, string>()
/** Values that only the client and the user need; the pending request stores them. */
const confidences = new Map<string, string>()

async function jsonOf<T>(response: Response): Promise<T> {
  return (await response.json()) as T
}

function keep(name: string, value: string | undefined): string {
  if (value === undefined || value.length < 8) throw new Error(`no ${name}`)
  secrets.set(name, value)
  return value
}

const registration = await fetch(`${server.issuer}/api/oauth/register`, {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify({
    redirect_uris: ['http://127.0.0.1:51004/callback'],
    token_endpoint_auth_method: 'client_secret_post',
  }),
})
const registered = await jsonOf<Record<string, string>>(registration)
const client = {
  id: registered['client_id'] ?? '',
  secret: keep('client secret', registered['client_secret']),
  method: 'client_secret_post',
  redirectUri: 'http://127.0.0.1:51004/callback',
}
keep('registration access token', registered['registration_access_token'])
const basic = await register(server, { token_endpoint_auth_method: 'client_secret_basic' })
keep('secret of the other client', basic.secret)
const agent = new UserAgent(server.issuer)

t.test('a whole flow with every kind of secret, including wrong ones', async (t) => {
  confidences.set('state', 'state-that-nobody-else-reads')
  confidences.set('nonce', 'nonce-that-nobody-else-reads')
  confidences.set('login hint', 'hint-that-nobody-else-reads')
  keep('verifier', 'verifier'.repeat(7))
  keep('wrong verifier', 'mistaken'.repeat(7))
  keep('wrong password', 'a guess at a password')
  keep('wrong client secret', 'lyc_secret_guessed')
  keep('password', alice.password)
  const { createHash } = await import('node:crypto')
  const fields = {
    scope: 'openid courses:read',
    state: confidences.get('state'),
    nonce: confidences.get('nonce'),
    login_hint: confidences.get('login hint'),
    code_challenge: createHash('sha256')
      .update(secrets.get('verifier') ?? '')
      .digest('base64url'),
  }
  const login = await agent.open(authorizationUrl(server, client, fields))
  if (login.at !== 'page') throw new Error('no sign-in page')
  const again = await agent.submit(login.page, {
    username: 'alice',
    password: secrets.get('wrong password') ?? '',
  })
  const location = await signInAndApprove(agent, again)
  const code = keep('code', location.searchParams.get('code') ?? undefined)
  // Without the suffix that their names get from the issuer.
  const cookies = [...agent.cookies].map(([name, value]) => [name.replace(/_[\w-]{10}$/, ''), value] as const)
  for (const [name, value] of cookies) keep(name, value)
  t.strictSame(cookies.map(([name]) => name).sort(), [
    'lychgate_browser',
    'lychgate_device',
    'lychgate_session',
  ])

  const wrong = { code_verifier: secrets.get('wrong verifier') }
  t.equal((await exchange(server, client, code, wrong)).status, 400)
  t.equal(
    (await exchange(server, { ...client, secret: secrets.get('wrong client secret') ?? '' }, code)).status,
    400,
  )
  t.equal(
    (await exchange(server, { ...basic, secret: secrets.get('wrong client secret') ?? '' }, code)).status,
    401,
  )
  const response = await exchange(server, client, code, { code_verifier: secrets.get('verifier') })
  const tokens = await jsonOf<Tokens>(response)
  keep('access token', tokens.access_token)
  keep('refresh token', tokens.refresh_token)
  keep('ID Token', tokens.id_token)
  const next = await jsonOf<Tokens>(await refresh(server, client, tokens.refresh_token))
  keep('successor', next.refresh_token)
  keep('access token of the refresh', next.access_token)

  t.equal((await callApi(server, '/api/courses', next.access_token)).status, 200)
  t.equal((await callApi(server, `/api/courses?access_token=${next.access_token}`)).status, 200)
  t.equal((await callApi(server, '/api/students', next.access_token)).status, 403)
  t.equal((await callApi(server, '/api/courses', keep('garbled token', `${next.access_token}x`))).status, 401)
  t.equal((await post(server, '/api/oauth/userinfo', { access_token: next.access_token })).status, 200)
  const introspected = await postAs(server, client, '/api/oauth/introspect', { token: next.access_token })
  t.match(await introspected.json(), { active: true })
  const configured = { headers: { authorization: `Bearer ${registered['registration_access_token']}` } }
  t.equal((await fetch(registered['registration_client_uri'] ?? '', configured)).status, 200)
  const inQuery = `${server.issuer}/api/oauth/token?client_secret=${client.secret}&code=${code}`
  t.equal((await fetch(inQuery, { method: 'POST' })).status, 400)
  t.equal((await fetch(`${server.issuer}/nowhere?token=${next.access_token}`)).status, 404)
  const repeated = authorizationUrl(server, client, {
    ...fields,
    state: [confidences.get('state') ?? '', 'x'],
  })
  t.equal((await agent.send(repeated)).status, 303)
  t.equal(
    (await agent.send(authorizationUrl(server, client, { ...fields, id_token_hint: `${tokens.id_token}x` })))
      .status,
    303,
  )
  const elsewhere = `${client.redirectUri}?session=${keep('query of a foreign redirect', 'a-session-of-the-client')}`
  t.equal(
    (await agent.send(authorizationUrl(server, client, { ...fields, redirect_uri: elsewhere }))).status,
    400,
  )
  t.equal((await postAs(server, client, '/api/oauth/revoke', { token: next.access_token })).status, 200)
  keep('open code', await obtainCode(server, client, { agent, fields }))
  t.equal(
    (await agent.send(`${server.issuer}/oauth/logout?id_token_hint=${tokens.id_token}&state=s`)).status,
    200,
  )
})

t.test(
  '[rfc9700-4.9.2-rs-token-hygiene] no secret, no state and no query string is in the log',
  async (t) => {
    const log = server.log.join('')
    t.ok(server.log.length > 20)
    t.match(log, client.id, 'what should be there is there')
    t.match(log, '"path":"/oauth/authorize"')
    for (const [name, value] of [...secrets, ...confidences]) {
      t.notOk(log.includes(value), name)
      t.notOk(log.includes(encodeURIComponent(value)), name)
      t.notOk(log.includes(value.slice(-20)), `the end of the ${name}`)
    }
    const paths = server.log.flatMap((line) => /"path":"([^"]*)"/.exec(line)?.[1] ?? [])
    t.ok(paths.length > 20 && paths.every((path) => !path.includes('?')))
    t.notMatch(log, /"(authorization|cookie|set-cookie)":|client_secret=|code_verifier=/)
  },
)

t.test(
  '[rfc6749-10.3-tokens-protected-at-rest] the files of the database contain no issued value',
  async (t) => {
    const files = ['lychgate.db', 'lychgate.db-wal'].map((name) => readFileSync(`${folder}/${name}`))
    const stored = Buffer.concat(files)
    t.ok(stored.includes(client.id), 'what should be there is there')
    t.ok(stored.includes('$argon2id$'))
    for (const [name, value] of secrets) {
      t.notOk(stored.includes(value), name)
      const random = value.replace(/^lyc_[a-z]+_/, '')
      t.notOk(stored.includes(random), `${name} without its prefix`)
      // Also as bytes: the grant's own tag is the last part of a handle, and the only one that cannot be computed.
      const bytes = Buffer.from(random.split('.').at(-1) ?? '', 'base64url').subarray(-16)
      if (bytes.length === 16) t.notOk(stored.includes(bytes), `${name} in bytes`)
    }
  },
)

t.test('[rfc6749-10.10-entropy] issued values have at least 128 random bits and never repeat', async (t) => {
  for (const name of [
    'client secret',
    'registration access token',
    'code',
    'access token',
    'refresh token',
    'lychgate_session',
  ]) {
    t.match(secrets.get(name)?.replace(/^lyc_[a-z]+_/, ''), /^[\w-]{43,}$/, name)
  }
  const drawn = new Set<string>()
  for (let count = 0; count < 10_000; count += 1) {
    drawn.add(mintSecret('clientSecret', systemRandom(secretBytes)))
    drawn.add(systemRandom(16).toString('base64url'))
    drawn.add(mintGrantId(systemRandom(8), 1_800_000_000))
  }
  t.equal(drawn.size, 30_000)
})
