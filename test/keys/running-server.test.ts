import { createLocalJWKSet, decodeProtectedHeader, type JSONWebKeySet, jwtVerify } from 'jose'
import t, { type Test } from 'tap'
import type { StoredKey } from '../../src/domain/model.ts'
import { keyPolicy } from '../../src/keys/key-policy.ts'
import { newFolder, run } from '../helpers/command.ts'
import {
  callApi,
  exchange,
  obtainCode,
  obtainTokens,
  postAs,
  refresh,
  register,
  type Tokens,
} from '../helpers/flow.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'

const api = {
  identifier: 'https://api.example',
  name: 'API',
  scopes: ['courses:read'],
}

/** Starts a server that reloads its keys when `maintain` is called, with the operator's commands on the same file. */
async function serverAndOperator(t: Test) {
  const data = newFolder(t)
  const server = await startServer(t, {
    store: `sqlite:${data}/lychgate.db`,
    resources: [{ ...api, tokenFormat: 'jwt' }],
  })
  const environment = { LYCHGATE_SECRET: server.deps.config.secret ?? '' }
  const operator = async (command: string, ...args: string[]) => {
    const { code, stdout, stderr } = await run(['keys', command, '--data', data, '--json', ...args], {
      environment,
    })
    if (code !== 0) throw new Error(stderr)
    return JSON.parse(stdout)
  }
  return { server, operator }
}

async function jwksOf(server: TestServer): Promise<JSONWebKeySet> {
  return (await (await fetch(`${server.issuer}/api/oauth/jwks`)).json()) as JSONWebKeySet
}

/** Reloads the keys; the key set then has, or no longer has, this kid. */
async function jwksOnce(server: TestServer, kid: string, there: boolean): Promise<JSONWebKeySet> {
  await server.maintain()
  const jwks = await jwksOf(server)
  if (jwks.keys.some((key) => key.kid === kid) === there) return jwks
  throw new Error(`the key set ${there ? 'lacks' : 'has'} ${kid} still`)
}

const userInfo = async (server: TestServer, token: string) =>
  (await callApi(server, '/api/oauth/userinfo', token)).status
const kidOf = (jws: string) => decodeProtectedHeader(jws).kid ?? ''
const signOut = (server: TestServer, hint: string) =>
  fetch(`${server.issuer}/oauth/logout?id_token_hint=${hint}`, { redirect: 'manual' })

t.test(
  '[oidc-core-10.1.1-rotation] [oidc-core-10.1-published-key] a running server takes over a rotation, and every valid token stays valid',
  async (t) => {
    const { server, operator } = await serverAndOperator(t)
    const { publishAheadSeconds, overlapSeconds } = keyPolicy(server.deps.config)
    const client = await register(server)
    const agent = new UserAgent(server.issuer)
    const old = await obtainTokens(server, client, { agent })
    const oldCode = await obtainCode(server, client, { agent })
    const kept = await obtainTokens(server, client, { agent })
    const rotated = (await operator('rotate')) as { kid: string; algorithm: string; state: string }[]
    const next =
      rotated.find(({ algorithm, state }) => algorithm === 'RS256' && state === 'waiting')?.kid ?? ''
    const both = await jwksOnce(server, next, true)
    t.equal(both.keys.length, 6, 'published with the old ones')
    t.equal(
      kidOf((await obtainTokens(server, client, { agent })).id_token),
      kidOf(old.id_token),
      'not signing yet',
    )

    // These tokens are issued just before the new key becomes active.
    server.advance(publishAheadSeconds - 30)
    const last = await obtainTokens(server, client, { agent })
    const lastCode = await obtainCode(server, client, { agent })
    t.equal(kidOf(last.id_token), kidOf(old.id_token))
    server.advance(35)
    const fresh = (await (await refresh(server, client, old.refresh_token)).json()) as Tokens
    t.equal(kidOf(fresh.id_token), next)
    const { issuer } = server
    const currentDate = new Date(server.now() * 1000)
    const verified = (jws: string) => jwtVerify(jws, createLocalJWKSet(both), { issuer, currentDate })
    await t.resolves(verified(last.id_token))
    await t.resolves(verified(fresh.id_token))
    t.equal(await userInfo(server, last.access_token), 200)
    t.equal(await userInfo(server, fresh.access_token), 200)
    t.equal((await exchange(server, client, lastCode)).status, 200)
    const replay = await refresh(server, client, old.refresh_token, {})
    t.match(await replay.json(), { refresh_token: fresh.refresh_token }, 'a lost answer is given again')
    t.equal((await exchange(server, client, oldCode)).status, 400, 'while what expired is expired')

    const hint = await signOut(server, old.id_token)
    t.equal(hint.status, 200, 'an ID Token long expired is a hint as long as its key is kept')
    server.advance(overlapSeconds.signing)
    await jwksOnce(server, kidOf(old.id_token), false)
    t.ok((await signOut(server, old.id_token)).headers.get('x-request-id'), 'the hint is not used')
    t.equal((await refresh(server, client, kept.refresh_token)).status, 200, 'handle keys stay longer')
  },
)

t.test('retiring a key ends what it signed and sealed, also in a running server', async (t) => {
  const { server, operator } = await serverAndOperator(t)
  const client = await register(server)
  const agent = new UserAgent(server.issuer)
  const tokens = await obtainTokens(server, client, { agent })
  const fields = { resource: api.identifier, scope: 'courses:read' }
  const signed = await obtainTokens(server, client, { agent, fields })
  const kid = kidOf(tokens.id_token)
  const introspected = async () => {
    const response = await postAs(server, client, '/api/oauth/introspect', { token: signed.access_token })
    return ((await response.json()) as { active: boolean }).active
  }
  t.equal(await introspected(), true)
  t.equal((await signOut(server, tokens.id_token)).status, 200)

  const { successor } = await operator('retire', '--yes', '--', kid)
  const jwks = await jwksOnce(server, kid, false)
  t.ok(jwks.keys.some((key) => key.kid === successor))
  t.equal(await introspected(), false)
  t.ok((await signOut(server, tokens.id_token)).headers.get('x-request-id'), 'the hint is not used')
  t.equal(await userInfo(server, tokens.access_token), 200, 'what other keys sealed lives on')

  t.match(await operator('retire', '1', '--yes'), { successor: '2' })
  const handleKeys = () => server.deps.store.list('key')
  t.ok((await handleKeys()).some(({ id, retiredAt }: StoredKey) => id === '1' && retiredAt !== undefined))
  await server.maintain()
  t.equal(await userInfo(server, tokens.access_token), 401)
  const rejected = await refresh(server, client, tokens.refresh_token)
  t.match(
    { status: rejected.status, body: await rejected.json() },
    { status: 400, body: { error: 'invalid_grant' } },
  )
  const again = await obtainTokens(server, client, { agent })
  t.equal(kidOf(again.id_token), successor)
  t.equal(await userInfo(server, again.access_token), 200)
})

t.test('a server rotates keys that are old enough by itself', async (t) => {
  const { server } = await serverAndOperator(t)
  const { rotationSeconds } = server.deps.config.keys
  const before = (await jwksOf(server)).keys.map(({ kid }) => kid)
  server.advance(rotationSeconds)
  await server.maintain()
  const { keys } = await jwksOf(server)
  t.equal(keys.length, 6)
  for (const kid of before) t.ok(keys.some((key) => key.kid === kid))
  t.match(server.log.join(''), /"added":\[[^\]]+\][^\n]*"msg":"the keys have changed"/)
})
