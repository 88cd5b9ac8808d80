/** An operator shortens lifetimes for one client; no client has longer ones than the server. */
import t from 'tap'
import { coreMembers } from '../../src/clients/core-members.ts'
import { clientLifetimes } from '../../src/domain/client-lifetimes.ts'
import { integrate } from '../helpers/authorization.ts'
import { claimsOf, obtainTokens, postAs, refresh, register } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { json } from '../helpers/wire.ts'

const server = await startServer(t, {
  mode: 'dev',
  resources: [
    { identifier: 'https://jwt.example.test', name: 'JWT', scopes: ['courses:read'], tokenFormat: 'jwt' },
  ],
})
const { lifetimes } = server.deps.config
const [short, long] = [
  {
    access_token_seconds: 300,
    id_token_seconds: 200,
    refresh_token_idle_seconds: 1000,
    refresh_token_absolute_seconds: 1500,
  },
  Object.fromEntries(Object.keys(clientLifetimes).map((name) => [name, 300_000_000])),
]
const scope = 'openid courses:read'

t.test('the tokens of a client live as long as its operator says', async (t) => {
  const client = await integrate(server, { description: short })
  const tokens = await obtainTokens(server, client, { fields: { scope } })
  t.equal(tokens.expires_in, 300)
  const { exp, iat } = claimsOf(tokens.id_token ?? '')
  t.equal(Number(exp) - Number(iat), 200)
  server.advance(900)
  const second = await refresh(server, client, tokens.refresh_token)
  const { refresh_token: next, expires_in: seconds } = await json(second)
  t.equal(seconds, 300, 'also after a refresh')
  server.advance(700)
  t.match(
    await json(await refresh(server, client, String(next))),
    { error: 'invalid_grant' },
    'from the sign-in',
  )
  const idle = await obtainTokens(server, client, { fields: { scope } })
  server.advance(1001)
  t.match(await json(await refresh(server, client, idle.refresh_token)), { error: 'invalid_grant' }, 'unused')
})

t.test('an access token of another format, and one without a user, too', async (t) => {
  const resource = 'https://jwt.example.test'
  const client = await integrate(server, { description: short })
  const { access_token: token } = await obtainTokens(server, client, {
    fields: { scope: 'courses:read', resource },
  })
  const { exp, iat } = claimsOf(token)
  t.equal(Number(exp) - Number(iat), 300)
  const machine = await integrate(server, {
    grantTypes: ['client_credentials'],
    redirectUris: [],
    scope: ['courses:read'],
    description: short,
  })
  const body = await json(
    await postAs(server, machine, '/api/oauth/token', { grant_type: 'client_credentials' }),
  )
  t.equal(body['expires_in'], 300)
})

t.test('no client has longer lifetimes than the server', async (t) => {
  const client = await integrate(server, { description: long })
  const {
    expires_in: seconds,
    id_token: idToken = '',
    ...tokens
  } = await obtainTokens(server, client, { fields: { scope } })
  t.equal(seconds, lifetimes.accessTokenSeconds)
  const { exp, iat } = claimsOf(idToken)
  t.equal(Number(exp) - Number(iat), lifetimes.idTokenSeconds)
  server.advance(lifetimes.refreshTokenIdleSeconds + 1)
  t.match(await json(await refresh(server, client, tokens.refresh_token)), { error: 'invalid_grant' })
})

t.test('a client that registers itself cannot say it', async (t) => {
  const client = await register(server, short)
  t.equal(
    (await obtainTokens(server, client, { fields: { scope } })).expires_in,
    lifetimes.accessTokenSeconds,
  )
  for (const name of Object.keys(clientLifetimes)) t.ok(name in coreMembers, name)
})
