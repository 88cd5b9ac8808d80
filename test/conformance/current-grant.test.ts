/** What an operator took from a client is gone at the next use, whatever was granted before, and comes back with it. */
import { join } from 'node:path'
import t from 'tap'
import { update } from '../../src/domain/decision.ts'
import type { Client } from '../../src/domain/model.ts'
import { grantType as device } from '../../src/specs/rfc8628-device-grant/rules/codes.ts'
import { ask, callback, integrate, offeredScope, pageOf, sentAway } from '../helpers/authorization.ts'
import { newFolder } from '../helpers/command.ts'
import { openConfirmation, poll, startDevice } from '../helpers/device.ts'
import { callApi, exchange, obtainCode, postAs, refresh, type TestClient } from '../helpers/flow.ts'
import { alice, startServer, type TestServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { assertRejected, introspect, json } from '../helpers/wire.ts'

const files = {
  identifier: 'https://api.example/files',
  name: 'Files',
  scopes: ['courses:read', 'courses:write'],
}
const store = `sqlite:${join(newFolder(t), 'lychgate.db')}`
const common = { mode: 'dev', store } as const
const server = await startServer(t, { ...common, resources: [{ ...files, tokenFormat: 'opaque' }] })
const { issuer } = server
const scopes = server.deps.config.scopes.filter(({ name }) => name !== 'courses:write')
/** The same server with another configuration. */
const without = {
  scope: await startServer(t, {
    ...common,
    issuer,
    scopes,
    resources: [{ ...files, scopes: ['courses:read'], tokenFormat: 'opaque' }],
  }),
  resource: await startServer(t, { ...common, issuer, resources: [] }),
}
const whole = 'openid email courses:read courses:write'
const own = 'courses:read courses:write'
const resource = [issuer, files.identifier]
const everyType = ['authorization_code', 'refresh_token', device, 'client_credentials']

const request = {
  redirectUris: [callback],
  grantTypes: everyType,
  scope: whole.split(' '),
  consent: 'skip',
  authenticationMethod: 'client_secret_post',
} as const

type Change = (client: Client) => Client
const change = (of: TestClient, changed: Change) =>
  server.deps.store.transact('client', of.id, (client) => {
    if (client === undefined) throw new Error('the client is there')
    return { result: undefined, writes: [update('client', changed(client))] }
  })

/** A token request that is left to do, and the access token that was issued before, if one was. */
interface Begun {
  readonly token?: string
  readonly refreshToken?: string
  redeem(at: TestServer): Promise<Response>
}

const ways: Readonly<Record<string, (client: TestClient) => Promise<Begun>>> = {
  code: async (client) => {
    const code = await obtainCode(server, client, { fields: { scope: whole, resource } })
    return { redeem: (at) => exchange(at, client, code) }
  },
  refresh: async (client) => {
    const code = await obtainCode(server, client, { fields: { scope: whole, resource } })
    const { access_token: token, refresh_token: refreshToken } = await json(
      await exchange(server, client, code),
    )
    return begunWith(client, token, refreshToken)
  },
  device: async (client) => {
    const started = await startDevice(server, client, { scope: whole, resource })
    await approve(started)
    return { redeem: (at) => poll(at, client, started) }
  },
  'refresh of a device': async (client) => {
    const started = await startDevice(server, client, { scope: whole, resource })
    await approve(started)
    const { access_token: token, refresh_token: refreshToken } = await json(
      await poll(server, client, started),
    )
    return begunWith(client, token, refreshToken)
  },
  client_credentials: async (client) => {
    const redeem = (at: TestServer, fields = {}) =>
      postAs(at, client, '/api/oauth/token', { grant_type: 'client_credentials', resource, ...fields })
    const { access_token: token } = await json(await redeem(server, { scope: own }))
    return { token: String(token), redeem }
  },
  'a minted token': async (client) => {
    const response = await fetch(`${issuer}/_dev/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ user: 'alice', client_id: client.id, scope: whole, resource }),
    })
    const { access_token: token, refresh_token: refreshToken } = await json(response)
    return begunWith(client, token, refreshToken)
  },
}

/** As the user of a device that asks for several scopes. */
function approve({ user_code: code }: { readonly user_code: string }) {
  return fetch(`${issuer}/_dev/devices/${code}/approve`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ user: 'alice' }),
  })
}

function begunWith(client: TestClient, token: unknown, refreshToken: unknown): Begun {
  return {
    token: String(token),
    refreshToken: String(refreshToken),
    redeem: (at) => refresh(at, client, String(refreshToken)),
  }
}

const withoutTypes =
  (...names: readonly string[]): Change =>
  (client) => ({
    ...client,
    grantTypes: client.grantTypes.filter((name) => !names.includes(name)),
  })
const withScope =
  (scope: readonly string[]): Change =>
  (client) => ({ ...client, scope })

/** What is left: the scope and the audience of tokens, or the error of a token request. */
interface Case {
  readonly changed?: Change
  readonly at?: TestServer
  readonly scope?: string
  readonly audience?: readonly string[]
  readonly error?: string
  /** Tokens that were issued before are as they were. */
  readonly tokensStay?: true
  readonly noRefreshToken?: true
}
const both = resource
const narrowed = (scope: string, more: Case): Case => ({ scope, audience: both, ...more })
const scopeOf = (way: string, scope: string) =>
  way === 'client_credentials' ? scope.replace(/openid |email /g, '') : scope
const cases: Readonly<Record<string, (way: string) => Case>> = {
  'a scope of the client': (way) =>
    narrowed(scopeOf(way, 'openid courses:read'), { changed: withScope(['openid', 'courses:read']) }),
  'every scope of the client': (way) => ({
    changed: withScope(['posts:read']),
    // It may ask for what it has now.
    ...(way === 'client_credentials' ? { scope: 'posts:read', audience: both } : { error: 'invalid_grant' }),
  }),
  'a scope of the catalogue': (way) =>
    narrowed(scopeOf(way, 'openid email courses:read'), { at: without.scope }),
  'a resource in the configuration': (way) =>
    way === 'client_credentials'
      ? { at: without.resource, error: 'invalid_target', scope: own, audience: [issuer] }
      : { at: without.resource, scope: whole, audience: [issuer] },
  'a resource of the client': (way) =>
    way === 'client_credentials'
      ? {
          changed: (client) => ({ ...client, resources: [issuer] }),
          error: 'invalid_target',
          scope: own,
          audience: [issuer],
        }
      : narrowed(whole, { changed: (client) => ({ ...client, resources: [issuer] }) }),
  'its grant type': (way) => {
    const type = way.includes('device') ? device : way === 'client_credentials' ? way : 'authorization_code'
    const isFirst = ['code', 'device', 'client_credentials'].includes(way)
    return { changed: withoutTypes(type), error: isFirst ? 'unauthorized_client' : 'invalid_grant' }
  },
  'the grant type refresh_token': (way) => ({
    changed: withoutTypes('refresh_token'),
    tokensStay: true,
    ...(['code', 'device'].includes(way)
      ? { scope: whole, audience: both, noRefreshToken: true }
      : way === 'client_credentials'
        ? { scope: own, audience: both }
        : { error: 'unauthorized_client', scope: whole, audience: both }),
  }),
}

for (const [taken, caseOf] of Object.entries(cases)) {
  for (const [way, begin] of Object.entries(ways)) {
    t.test(`${taken} is gone from ${way} at the next use, and comes back`, async (t) => {
      const client = await integrate(server, request)
      const { at = server, changed = (same) => same, ...wanted } = caseOf(way)
      const { token, refreshToken, redeem } = await begin(client)
      const before = token === undefined ? undefined : await introspect(server, client, token)
      const row = await server.deps.store.find('client', client.id)
      await change(client, changed)

      if (token !== undefined) {
        const facts = await introspect(at, client, token)
        const isNew = way === 'client_credentials' && taken === 'every scope of the client'
        if (wanted.scope === undefined || isNew) t.strictSame(facts, { active: false })
        else {
          t.equal(facts['scope'], wanted.scope)
          t.strictSame([facts['aud']].flat(), wanted.audience)
        }
      }
      if (refreshToken !== undefined) {
        const facts = await introspect(at, client, refreshToken)
        const isActive = wanted.error === undefined
        t.equal(facts['active'], isActive)
        t.equal(facts['scope'], isActive ? wanted.scope : undefined)
      }
      const response = await redeem(at)
      if (wanted.error !== undefined) await assertRejected(t, response, wanted.error)
      else {
        const issued = await json(response)
        t.equal(response.status, 200)
        t.equal(issued['scope'], wanted.scope, 'the response says so')
        t.equal('refresh_token' in issued, way !== 'client_credentials' && !wanted.noRefreshToken)
        t.equal('id_token' in issued, way !== 'client_credentials')
        const facts = await introspect(at, client, String(issued['access_token']))
        t.equal(facts['scope'], wanted.scope)
        t.strictSame([facts['aud']].flat(), wanted.audience)
      }

      // Nothing was written to the grant: a mistake can be corrected.
      if (row !== undefined) await change(client, () => row)
      if (token !== undefined) t.strictSame(await introspect(server, client, token), before)
      if (wanted.error !== undefined && way !== 'client_credentials') {
        const again = await json(await redeem(server))
        t.equal(again['scope'], whole, 'the code or refresh token still works')
      }
    })
  }
}

t.test('UserInfo and APIs follow what the client may have now', async (t) => {
  const client = await integrate(server, request)
  const code = await obtainCode(server, client, {
    fields: { scope: whole, claims: JSON.stringify({ userinfo: { email: null } }) },
  })
  const { access_token: access } = await json(await exchange(server, client, code))
  const token = String(access)
  t.match(await json(await callApi(server, '/api/oauth/userinfo', token)), { email: /@/ })
  await change(client, withScope(['openid', 'courses:read']))
  t.strictSame(Object.keys(await json(await callApi(server, '/api/oauth/userinfo', token))), ['sub'])
  t.equal((await callApi(server, '/api/courses', token)).status, 200)
  t.equal((await callApi(server, '/api/courses', token, { method: 'POST' })).status, 403)
  await change(client, withScope(['courses:read']))
  t.equal((await callApi(server, '/api/oauth/userinfo', token)).status, 403)
  await change(client, withScope(['posts:read']))
  t.equal((await callApi(server, '/api/courses', token)).status, 401)
})

t.test('a refresh that names a scope gets the part that is left', async (t) => {
  const client = await integrate(server, request)
  const code = await obtainCode(server, client, { fields: { scope: whole } })
  const { refresh_token: token } = await json(await exchange(server, client, code))
  await change(client, withScope(['openid', 'courses:read']))
  await assertRejected(t, await refresh(server, client, String(token), { scope: 'email' }), 'invalid_scope')
  await assertRejected(
    t,
    await refresh(server, client, String(token), { scope: 'posts:read' }),
    'invalid_scope',
  )
  const next = await json(await refresh(server, client, String(token), { scope: whole }))
  t.equal(next['scope'], 'openid courses:read')
})

t.test('a request that waits for its user shows and grants what is left', async (t) => {
  const client = await integrate(server, { ...request, consent: 'remember' })
  const agent = new UserAgent(issuer)
  const consent = pageOf(
    await agent.submit(pageOf(await ask(server, client, { scope: whole }, agent)), alice),
  )
  t.strictSame(offeredScope(consent).includes('email'), true)
  await change(client, withScope(['openid', 'courses:read']))
  const shown = pageOf(await agent.open(consent.url))
  t.strictSame(offeredScope(shown), ['courses:read'])
  const sent = await agent.submit(consent, {
    decision: 'approve',
    scope: ['email', 'courses:read', 'courses:write'],
  })
  const issued = await json(await exchange(server, client, sentAway(sent)['code'] ?? ''))
  t.equal(issued['scope'], 'openid courses:read')

  const waiting = pageOf(
    await ask(server, client, { scope: 'openid courses:read', prompt: 'consent' }, agent),
  )
  await change(client, withScope(['posts:read']))
  const ended = sentAway(await agent.open(waiting.url))
  t.match(ended, { error: 'invalid_scope', state: 'a-state', iss: issuer })
  t.notOk('code' in ended)
})

t.test('a device shows and grants what is left', async (t) => {
  const client = await integrate(server, request)
  const started = await startDevice(server, client, { scope: whole })
  const agent = new UserAgent(issuer)
  const page = await openConfirmation(server, started.user_code, agent)
  t.ok(offeredScope(page).includes('email'))
  await change(client, withScope(['openid', 'courses:read']))
  t.strictSame(offeredScope(pageOf(await agent.open(page.url))), ['courses:read'])
  await agent.submit(page, { decision: 'approve', scope: ['courses:read'] })
  t.equal((await json(await poll(server, client, started)))['scope'], 'openid courses:read')
})
