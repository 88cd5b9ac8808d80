import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import {
  authorizationUrl,
  callApi,
  exchange,
  type Fields,
  obtainCode,
  refresh,
  type Tokens,
} from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { assertRejected, introspect, type Json, json, startFlow } from '../helpers/wire.ts'

const lessons = 'https://lessons.example/api'
const events = 'https://events.example'
const library = 'https://library.example/api'
const seminars = 'https://seminars.example/api'
const archive = 'urn:example:archive'
const { server, client, agent, tokens } = await startFlow(t, {
  resources: [
    { identifier: lessons, name: 'Lessons', scopes: ['courses:read'], tokenFormat: 'opaque' },
    {
      identifier: events,
      name: 'Events',
      scopes: ['events:read'],
      tokenFormat: 'opaque',
      accessTokenSeconds: 300,
    },
    { identifier: seminars, name: 'Seminars', scopes: ['courses:read'], tokenFormat: 'opaque' },
    { identifier: library, name: 'Library', scopes: ['pages:read'], tokenFormat: 'jwt' },
    {
      identifier: archive,
      name: 'Archive',
      scopes: ['posts:read'],
      tokenFormat: 'jwt',
      accessTokenSeconds: 120,
    },
  ],
})

async function audienceOf(token: string): Promise<unknown> {
  return (await introspect(server, client, token))['aud']
}

/** Asserts the audience of an access token: by its response, and by introspection. */
async function assertAccess(t: Test, response: Json, scope: string, aud: unknown, seconds: number) {
  t.equal(response['scope'], scope)
  t.equal(response['expires_in'], seconds)
  const described = await introspect(server, client, String(response['access_token']))
  t.equal(described['scope'], scope)
  t.strictSame(described['aud'], aud)
}

t.test(
  '[service-2-resource-param-binds] [service-4-token-resource] [rfc8707-2-audience-restrict] [rfc8707-2.1-applies-to-grant] a resource of the authorization request binds the token: introspection shows it, other APIs reject it',
  async (t) => {
    const bound = await tokens({ scope: 'courses:read', resource: lessons })
    t.equal(await audienceOf(bound.access_token), lessons, '[service-4-token-resource]')
    t.equal(await audienceOf(bound.access_token), lessons, '[rfc8707-2-aud-mapping]')
    const call = await callApi(server, '/api/courses', bound.access_token)
    await assertRejected(t, call, 'invalid_token', 401, '[service-2-resource-param-binds]')
    t.equal(call.status, 401, '[rfc8707-2-audience-restrict] another API rejects it')
    const later = (await (await refresh(server, client, bound.refresh_token)).json()) as Tokens
    t.equal(await audienceOf(later.access_token), lessons, '[rfc8707-2.1-applies-to-grant] after a refresh')
    await assertRejected(t, await callApi(server, '/api/courses', later.access_token), 'invalid_token', 401)
  },
)

t.test('without a resource the audience is the service, and tokens open its API', async (t) => {
  const { access_token: token } = await tokens({ scope: 'courses:read' })
  t.equal(await audienceOf(token), server.issuer)
  t.equal((await callApi(server, '/api/courses', token)).status, 200)
})

t.test('the issuer with the slash that URL parsers add means the issuer, in every request', async (t) => {
  const resource = new URL(server.issuer).href
  t.ok(resource.endsWith('/'))
  const fields = { scope: 'openid courses:read', resource }
  const code = await obtainCode(server, client, { agent, fields })
  const first = (await (await exchange(server, client, code, { resource })).json()) as Tokens
  t.equal(await audienceOf(first.access_token), server.issuer)
  t.equal((await callApi(server, '/api/courses', first.access_token)).status, 200)
  const second = (await (await refresh(server, client, first.refresh_token, { resource })).json()) as Tokens
  t.equal((await callApi(server, '/api/courses', second.access_token)).status, 200)
  const foreign = await refresh(server, client, second.refresh_token, { resource: events })
  await assertRejected(t, foreign, 'invalid_target')
})

t.test(
  '[rfc8707-2.2-subset-at-token] [rfc8707-2.2-downscope] each token request names a part of the resources, and the grant keeps them all',
  async (t) => {
    const fields = { scope: 'courses:read events:read', resource: [lessons, events] }
    const code = await obtainCode(server, client, { agent, fields })
    const first = await json(await exchange(server, client, code, { resource: lessons }))
    await assertAccess(t, first, 'courses:read', lessons, 3600)
    const next = (response: Json, resource?: Fields[string]) =>
      refresh(server, client, String(response['refresh_token']), { resource })
    const other = await json(await next(first, events))
    await assertAccess(t, other, 'events:read', events, 300)
    const both = await json(await next(other))
    await assertAccess(t, both, 'courses:read events:read', [lessons, events], 300)
    const named = await json(await next(both, [events, lessons]))
    await assertAccess(t, named, 'courses:read events:read', [lessons, events], 300)
  },
)

t.test(
  '[rfc8707-2.2-subset-at-token] a token for one of two resources is for that one, though both support its whole scope',
  async (t) => {
    const fields = { scope: 'courses:read', resource: [lessons, seminars] }
    const code = await obtainCode(server, client, { agent, fields })
    const first = (await (await exchange(server, client, code, { resource: lessons })).json()) as Tokens
    t.equal(first.scope, 'courses:read')
    t.equal(await audienceOf(first.access_token), lessons)
    const other = await refresh(server, client, first.refresh_token, { resource: seminars })
    const second = (await other.json()) as Tokens
    t.equal(await audienceOf(second.access_token), seminars)
    const whole = (await (await refresh(server, client, second.refresh_token)).json()) as Tokens
    t.strictSame(await audienceOf(whole.access_token), [lessons, seminars])
  },
)

t.test(
  '[rfc8707-2.2-not-granted] [rfc8707-2.2-invalid-combination] a resource outside the grant or without any of its scopes is invalid_target, and uses nothing up',
  async (t) => {
    const code = await obtainCode(server, client, {
      agent,
      fields: { scope: 'courses:read', resource: lessons },
    })
    const rejected: Fields[string][] = [
      events,
      [lessons, events],
      server.issuer,
      'https://unknown.example',
      'not a uri',
      `${lessons}#fragment`,
      '/api',
      `${lessons}/`,
    ]
    for (const resource of rejected) {
      const response = await exchange(server, client, code, { resource })
      await assertRejected(t, response, 'invalid_target', 400, String(resource))
    }
    const first = (await (await exchange(server, client, code)).json()) as Tokens
    for (const resource of rejected) {
      const response = await refresh(server, client, first.refresh_token, { resource })
      await assertRejected(t, response, 'invalid_target', 400, String(resource))
    }
    t.equal((await refresh(server, client, first.refresh_token)).status, 200)
    const both = await tokens({ scope: 'courses:read events:read', resource: [lessons, events] })
    const pointless = { resource: lessons, scope: 'events:read' }
    await assertRejected(t, await refresh(server, client, both.refresh_token, pointless), 'invalid_target')
    t.equal((await refresh(server, client, both.refresh_token)).status, 200)
  },
)

t.test(
  '[rfc8707-2.2-invalid-combination] an authorization request whose scope no resource supports is rejected',
  async (t) => {
    const landing = await agent.open(
      authorizationUrl(server, client, { scope: 'events:read', resource: lessons }),
    )
    if (landing.at !== 'redirect') throw new Error('a redirect was expected')
    t.equal(landing.location.searchParams.get('error'), 'invalid_target')
    t.equal(landing.location.searchParams.get('code'), null)
  },
)

t.test(
  '[rfc6749-3.3-scope-omitted] without scope a resource that knows no users gives what it offers, and no other',
  async (t) => {
    const fields = { scope: undefined, resource: [events, library] }
    const code = await obtainCode(server, client, { agent, fields })
    const access = await json(await exchange(server, client, code, { resource: events }))
    await assertAccess(t, access, 'events:read', events, 300)
    t.equal((await tokens({ scope: undefined, resource: lessons })).scope, 'courses:read')
    const both = await tokens({ scope: undefined, resource: [server.issuer, lessons] })
    t.equal(both.scope, 'openid profile email', 'the API of the server is among them')
  },
)

t.test('a resource with its own token format must be the only one', async (t) => {
  const fields = { scope: 'courses:read pages:read posts:read', resource: [lessons, library, archive] }
  const code = await obtainCode(server, client, { agent, fields })
  await assertRejected(t, await exchange(server, client, code), 'invalid_target')
  await assertRejected(
    t,
    await exchange(server, client, code, { resource: [library, archive] }),
    'invalid_target',
  )
  const first = await json(await exchange(server, client, code, { resource: library }))
  await assertAccess(t, first, 'pages:read', library, 3600)
  t.match(first['access_token'], /^eyJ/)
  const second = await json(
    await refresh(server, client, String(first['refresh_token']), { resource: archive }),
  )
  await assertAccess(t, second, 'posts:read', archive, 120)
  const third = await json(
    await refresh(server, client, String(second['refresh_token']), { resource: lessons }),
  )
  t.match(third['access_token'], /^lyc_access_/)
})

t.test('no token is issued for a resource that the operator removed', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'lychgate-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const store = `sqlite:${join(folder, 'lychgate.db')}`
  const resources = server.deps.config.resources
  const before = await startFlow(t, { store, resources })
  const { refresh_token: token } = await before.tokens({ scope: 'courses:read', resource: lessons })
  await before.server.close()
  const after = await startServer(t, { store })
  await assertRejected(t, await refresh(after, before.client, token), 'invalid_grant')
  await after.close()
  const again = await startServer(t, { store, resources })
  t.equal((await refresh(again, before.client, token)).status, 200)
})
