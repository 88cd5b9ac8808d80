import t from 'tap'
import { put, removeAll } from '../../src/domain/decision.ts'
import { finishedDeliveryKind, logoutDeliveryKind } from '../../src/domain/logout-delivery.ts'
import { hashSecret } from '../../src/domain/secret.ts'
import { logoutPauseKind } from '../../src/specs/oidc-backchannel-logout/pause.ts'
import { ask, integrate, pageOf, sentAway, signedIn } from '../helpers/authorization.ts'
import type { OperatorClientRequest } from '../helpers/client-request.ts'
import {
  authorizationUrl,
  claimsOf,
  exchange,
  type Fields,
  refresh,
  type TestClient,
  type Tokens,
} from '../helpers/flow.ts'
import { type LogoutReceiver, startLogoutReceiver, verifyLogoutToken } from '../helpers/logout-receiver.ts'
import { alice, bob, startServer } from '../helpers/server.ts'
import type { UserAgent } from '../helpers/user-agent.ts'
import { introspect, isAlive } from '../helpers/wire.ts'

// A development server: it sends logout tokens to this computer.
const server = await startServer(t, { mode: 'dev' })
const { store } = server.deps
const plain = await integrate(server, { consent: 'skip' })

/** A client that is sent logout tokens. */
async function withReceiver(
  t: Parameters<typeof startLogoutReceiver>[0],
  members: Readonly<Record<string, unknown>> = {},
  request: Partial<OperatorClientRequest> = {},
): Promise<{ readonly client: TestClient; readonly receiver: LogoutReceiver }> {
  const receiver = await startLogoutReceiver(t, '/out?from=lychgate')
  const description = { backchannel_logout_uri: receiver.uri, ...members }
  const client = await integrate(server, { consent: 'skip', description, ...request })
  return { client, receiver }
}

/** Gets tokens of a client in a browser with a signed-in user. */
async function tokensIn(agent: UserAgent, client: TestClient, fields: Fields = {}): Promise<Tokens> {
  const { code = '' } = sentAway(await ask(server, client, fields, agent))
  const response = await exchange(server, client, code)
  if (response.status !== 200) throw new Error(await response.text())
  return (await response.json()) as Tokens
}

async function signOut(agent: UserAgent): Promise<void> {
  const page = pageOf(await agent.open(`${server.issuer}/oauth/logout`))
  await agent.submit(page, { decision: 'logout' })
}

const sidOf = (tokens: Pick<Tokens, 'id_token'>) => claimsOf(tokens.id_token)['sid']
const metadata = async () => (await fetch(`${server.issuer}/.well-known/openid-configuration`)).json()

t.test('the metadata', async (t) => {
  const members = (await metadata()) as Record<string, unknown>
  t.equal(members['backchannel_logout_supported'], true, '[oidc-bcl-2.1-supported]')
  t.equal(members['backchannel_logout_session_supported'], true, '[oidc-bcl-2.1-session-supported]')
})

t.test('an ID Token has the sid of the session', async (t) => {
  const other = await integrate(server, { consent: 'skip' })
  const agent = await signedIn(server, plain)
  const tokens = await tokensIn(agent, plain)
  const sid = sidOf(tokens)
  t.match(sid, /^[\w-]{22}$/, '[oidc-bcl-2.1-sid-in-id-token]')
  const refreshed = (await (await refresh(server, plain, tokens.refresh_token)).json()) as Tokens
  t.equal(sidOf(refreshed), sid, '[oidc-bcl-2.1-sid-in-id-token] after a refresh too')
  t.equal(sidOf(await tokensIn(agent, plain)), sid, 'and after another request in the session')
  const session = hashSecret(agent.cookie('session') ?? '')
  t.notMatch(JSON.stringify(tokens), session)
  // The sid of a client without logout tokens follows from the time of the sign-in.
  server.advance(1)
  const elsewhere = await tokensIn(await signedIn(server, plain), plain)
  t.not(sidOf(elsewhere), sid, '[oidc-bcl-2.1-sid-distinct] another session of the user')
  const { client: told } = await withReceiver(t)
  const sids = [await signedIn(server, told), await signedIn(server, told)].map((one) => tokensIn(one, told))
  const [first, second] = (await Promise.all(sids)).map(sidOf)
  t.not(first, second, '[oidc-bcl-2.1-sid-distinct] also of the same second')
  t.not(sidOf(await tokensIn(agent, other)), sid, '[oidc-bcl-2.1-sid-distinct] a pseudonym for each client')
})

t.test('a sign-out sends a logout token to the client', async (t) => {
  for (const alg of ['RS256', 'ES256', 'EdDSA'] as const) {
    const { client, receiver } = await withReceiver(t, {}, { idTokenSignedResponseAlg: alg })
    const agent = await signedIn(server, client)
    const tokens = await tokensIn(agent, client, { nonce: 'n-0S6' })
    const { sub, sid } = claimsOf(tokens.id_token)
    await signOut(agent)
    const request = await receiver.next()
    t.equal(request.method, 'POST', '[oidc-bcl-2.5-post-form]')
    t.equal(request.contentType, 'application/x-www-form-urlencoded', '[oidc-bcl-2.5-post-form]')
    t.strictSame([...request.form.keys()], ['logout_token'], '[oidc-bcl-2.5-post-form]')
    t.equal(request.url, '/out?from=lychgate', '[oidc-bcl-2.2-uri-query]')
    const { header, claims } = await verifyLogoutToken(server, client, request)
    t.pass('[oidc-bcl-2.6-validation]')
    t.equal(header['alg'], alg, '[oidc-bcl-2.4-signed]')
    t.equal(header['typ'], 'logout+jwt', '[oidc-bcl-2.4-typ]')
    const { iat = 0, exp = 0, jti, events, ...rest } = claims
    t.equal(rest.iss, server.issuer, '[oidc-bcl-2.4-iss]')
    t.equal(rest.aud, client.id, '[oidc-bcl-2.4-aud]')
    t.strictSame({ sub: rest.sub, sid: rest['sid'] }, { sub, sid }, '[oidc-bcl-2.4-sub-or-sid]')
    t.ok(Math.abs(iat - server.now()) < 60, '[oidc-bcl-2.4-iat]')
    t.equal(exp - iat, 120, '[oidc-bcl-2.4-exp]')
    t.ok(exp - iat <= 120, '[oidc-bcl-4-short-expiry]')
    t.match(jti, /^[\w-]{22}$/)
    const event = { 'http://schemas.openid.net/event/backchannel-logout': {} }
    t.strictSame(events, event, '[oidc-bcl-2.4-events]')
    t.notOk('nonce' in claims, '[oidc-bcl-2.4-no-nonce]')
    t.strictSame(Object.keys(rest).sort(), ['aud', 'iss', 'sid', 'sub'], 'nothing else')
    await delivered(String(sid))
    const hint = request.form.get('logout_token') ?? ''
    const rejected = await agent.send(authorizationUrl(server, plain, { id_token_hint: hint }))
    t.match(rejected.headers.get('location'), /error=invalid_request/, '[oidc-bcl-4.1-not-an-id-token]')
    const page = await agent.send(`${server.issuer}/oauth/logout?id_token_hint=${hint}`)
    t.ok(page.headers.get('x-request-id'), '[oidc-bcl-4.1-not-an-id-token] at sign-out')
  }
})

/** Waits until a delivery has ended. */
async function delivered(sid: string) {
  for (;;) {
    const finished = await store.find(finishedDeliveryKind, sid)
    if (finished !== undefined) return finished
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

t.test(
  '[oidc-bcl-2.3-remembers-clients] every client of the session hears of its end, and no other',
  async (t) => {
    const [one, two, three] = [await withReceiver(t), await withReceiver(t), await withReceiver(t)]
    const agent = await signedIn(server, plain)
    const elsewhere = await signedIn(server, plain)
    const first = await tokensIn(agent, one.client)
    await tokensIn(agent, one.client)
    const second = await tokensIn(agent, two.client)
    t.not(sidOf(second), sidOf(first), '[oidc-bcl-2.1-sid-distinct] one session, two clients')
    await tokensIn(elsewhere, three.client)
    await tokensIn(elsewhere, two.client)
    // It never asked for an ID Token, so it has no sid.
    const api = await withReceiver(t)
    await tokensIn(agent, api.client, { scope: 'courses:read' })
    await signOut(agent)
    for (const [{ client, receiver }, tokens] of [
      [one, first],
      [two, second],
    ] as const) {
      const { claims } = await verifyLogoutToken(server, client, await receiver.next())
      t.equal(claims['sid'], sidOf(tokens))
      await delivered(String(claims['sid']))
      t.equal(receiver.requests.length, 1, 'once, for two requests in one session too')
    }
    t.equal(three.receiver.requests.length, 0)
    t.equal(api.receiver.requests.length, 0)
  },
)

t.test('a sign-out does not wait for a client that does not respond', async (t) => {
  const [silent, other] = [await withReceiver(t), await withReceiver(t)]
  silent.receiver.conduct = 'silent'
  const agent = await signedIn(server, plain)
  const tokens = await tokensIn(agent, silent.client)
  await tokensIn(agent, other.client)
  await signOut(agent)
  t.pass('the browser has its page')
  await Promise.all([silent.receiver.next(), other.receiver.next()])
  const pending = await store.find(logoutDeliveryKind, String(sidOf(tokens)))
  t.equal(pending?.tries, undefined, '[oidc-bcl-2.3-in-parallel] the first try is still under way')
})

t.test('many deliveries to a client that does not respond do not delay another client', async (t) => {
  const [silent, other] = [await withReceiver(t), await withReceiver(t)]
  silent.receiver.conduct = 'silent'
  const endedAt = server.now()
  const due = (clientId: string, sid: string) =>
    put(logoutDeliveryKind, { sid, userId: alice.username, clientId, endedAt })
  const many = Array.from({ length: 1200 }, (_, at) => due(silent.client.id, `a${at}`))
  await store.write(...many)
  await silent.receiver.next()
  await store.write(due(other.client.id, 'other'))
  await other.receiver.next()
  t.ok(silent.receiver.requests.length < 16, '[oidc-bcl-2.3-in-parallel]')
  await store.write(removeAll(logoutDeliveryKind))
})

t.test('a client that does not respond is left alone for a while, and then sent everything', async (t) => {
  const { client, receiver } = await withReceiver(t)
  receiver.conduct = 'closed'
  const endedAt = server.now()
  const sids = Array.from({ length: 12 }, (_, at) => `paused-${at}`)
  const due = sids.map((sid) => put(logoutDeliveryKind, { sid, userId: 'u', clientId: client.id, endedAt }))
  await store.write(...due)
  const failures = async () => (await store.find(logoutPauseKind, client.id))?.failures ?? 0
  while ((await failures()) < 3) await new Promise((resolve) => setTimeout(resolve, 20))
  // Those of one round are under way together; after it there are no more.
  for (let round = 0; round < 3; round += 1) await server.maintain()
  t.ok(receiver.requests.length <= 4, `${receiver.requests.length} requests`)
  receiver.conduct = 200
  server.advance(300)
  const ends = await Promise.all(sids.map(delivered))
  t.ok(ends.every(({ outcome }) => outcome === 'delivered'))
  t.equal(await failures(), 0)
})

t.test('deliveries to a client that does not respond for an hour have failed', async (t) => {
  const { client, receiver } = await withReceiver(t)
  receiver.conduct = 'closed'
  const endedAt = server.now()
  await store.write(
    put(logoutPauseKind, { clientId: client.id, failures: 3, until: endedAt + 4000 }),
    put(logoutDeliveryKind, { sid: 'given-up', userId: 'u', clientId: client.id, endedAt }),
  )
  server.advance(3600)
  const error = 'the client did not respond for an hour'
  t.match(await delivered('given-up'), { outcome: 'failed', tries: 0, error })
  t.equal(receiver.requests.length, 0)
})

t.test('responses of clients', async (t) => {
  for (const conduct of [200, 204]) {
    const { client, receiver } = await withReceiver(t)
    receiver.conduct = conduct
    const agent = await signedIn(server, client)
    const tokens = await tokensIn(agent, client)
    await signOut(agent)
    const finished = await delivered(String(sidOf(tokens)))
    t.match(finished, { outcome: 'delivered', tries: 1 }, `[oidc-bcl-2.8-success] ${conduct}`)
    t.equal(receiver.requests.length, 1)
  }
  for (const conduct of [400, 500, 201, 'redirect'] as const) {
    const { client, receiver } = await withReceiver(t)
    receiver.conduct = conduct
    const agent = await signedIn(server, client)
    const tokens = await tokensIn(agent, client)
    const sid = String(sidOf(tokens))
    await signOut(agent)
    const tokenIds = new Set<unknown>()
    for (const tries of [1, 2, 3]) {
      const options = { currentDate: new Date(server.now() * 1000) }
      const { claims } = await verifyLogoutToken(server, client, await receiver.next(), options)
      tokenIds.add(claims.jti)
      t.equal(
        claims.iat,
        claims.iat && Math.max(claims.iat, server.now() - 10),
        '[oidc-bcl-2.4-iat] of this try',
      )
      if (tries === 3) break
      while ((await store.find(logoutDeliveryKind, sid))?.tries !== tries)
        await new Promise((resolve) => setTimeout(resolve, 20))
      server.advance(tries === 1 ? 10 : 60)
    }
    t.equal(tokenIds.size, 3, '[oidc-bcl-2.4-jti] each try has its own')
    const finished = await delivered(sid)
    t.match(finished, { outcome: 'failed', tries: 3, error: /./ }, `[oidc-bcl-2.8-failure] ${conduct}`)
    t.equal(receiver.requests.length, 3)
    const [event] = await store.audit({
      since: 0,
      name: 'client-logout-failed',
      clientId: client.id,
      limit: 1,
    })
    t.match(event, { by: 'server', facts: { sid, tries: 3 } })
  }
})

t.test('sessions that continue keep their sid', async (t) => {
  const { client, receiver } = await withReceiver(t)
  const agent = await signedIn(server, client)
  const sid = sidOf(await tokensIn(agent, client))
  const again = pageOf(await ask(server, client, { prompt: 'login' }, agent))
  await agent.submit(again, alice)
  t.equal(sidOf(await tokensIn(agent, client)), sid, 'the user has signed in again in this browser')
  t.equal(receiver.requests.length, 0)
  await signOut(agent)
  const { claims } = await verifyLogoutToken(server, client, await receiver.next())
  t.equal(claims['sid'], sid)
})

t.test('a code of a session that has ended issues no tokens', async (t) => {
  const { client, receiver } = await withReceiver(t)
  const agent = await signedIn(server, client)
  const { code = '' } = sentAway(await ask(server, client, {}, agent))
  await signOut(agent)
  await receiver.next()
  const response = await exchange(server, client, code)
  t.equal(response.status, 400)
  t.match(await response.json(), { error: 'invalid_grant', error_description: /session/ })
})

t.test('refresh tokens that end with the session', async (t) => {
  const bound = await integrate(server, { consent: 'skip', description: { refresh_tokens: 'session' } })
  const agent = await signedIn(server, bound, bob)
  const tokens = await tokensIn(agent, bound)
  const offline = await tokensIn(agent, bound, { scope: 'openid offline_access' })
  const standalone = await tokensIn(agent, plain)
  const next = (await (await refresh(server, bound, tokens.refresh_token)).json()) as Tokens
  t.equal(await isAlive(server, next.access_token), true)
  await signOut(agent)
  const late = await refresh(server, bound, next.refresh_token)
  t.equal(late.status, 400, '[oidc-bcl-2.7-refresh-tokens]')
  t.match(await late.json(), { error: 'invalid_grant' }, '[oidc-bcl-2.7-refresh-tokens]')
  t.strictSame(await introspect(server, bound, next.access_token), { active: false })
  const kept = await refresh(server, bound, offline.refresh_token)
  t.equal(kept.status, 200, '[oidc-bcl-2.7-offline-access]')
  t.equal((await refresh(server, plain, standalone.refresh_token)).status, 200, 'the default')
})

t.test('refresh tokens end with a session that was not used for too long', async (t) => {
  const bound = await integrate(server, { consent: 'skip', description: { refresh_tokens: 'session' } })
  const tokens = await tokensIn(await signedIn(server, bound), bound)
  server.advance(server.deps.config.lifetimes.sessionIdleSeconds)
  const late = await refresh(server, bound, tokens.refresh_token)
  t.match(await late.json(), {
    error: 'invalid_grant',
    error_description: 'the session of the user has ended',
  })
  t.strictSame(
    await introspect(server, bound, tokens.refresh_token),
    { active: false },
    'and the grant with it',
  )
})

t.test('[oidc-bcl-2.2-uri-https] clients that register themselves get no logout token', async (t) => {
  const response = await fetch(`${server.issuer}/api/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      redirect_uris: ['http://127.0.0.1/callback'],
      backchannel_logout_uri: 'http://127.0.0.1:1/out',
      refresh_tokens: 'session',
    }),
  })
  t.equal(response.status, 201)
  const body = (await response.json()) as object
  t.notOk('backchannel_logout_uri' in body, '[oidc-bcl-2.2-uri-https]')
  t.notOk('refresh_tokens' in body)
})

t.test('what an operator may register', async (t) => {
  const add = (members: Readonly<Record<string, unknown>>) => integrate(server, { description: members })
  const uri = (text: string) => add({ backchannel_logout_uri: text })
  await t.rejects(uri('/logout'), { code: 'invalid_client_metadata' }, '[oidc-bcl-2.2-uri-absolute]')
  await t.rejects(uri('https://rp.example/out#x'), /fragment/, '[oidc-bcl-2.2-uri-no-fragment]')
  await t.rejects(uri('http://rp.example/out'), /https/, '[oidc-bcl-2.2-uri-https]')
  await t.resolves(uri('https://rp.example:8443/out?a=b'))
  await t.resolves(add({ backchannel_logout_session_required: true }), '[oidc-bcl-2.2-session-required]')
  await t.rejects(add({ refresh_tokens: 'never' }), /refresh_tokens/)
})
