/** JSON bodies with more levels than anything that walks them could bear. */
import t from 'tap'
import { buildApp } from '../../src/app/app.ts'
import { development } from '../../src/dev/plugin.ts'
import { ask, integrate, sentAway } from '../helpers/authorization.ts'
import { postAs, register } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { json } from '../helpers/wire.ts'

const server = await startServer(t, { mode: 'dev', admin: { api: 'on' } })
const scope = ['users', 'clients', 'keys', 'audit'].flatMap((area) => [
  `admin:${area}:read`,
  `admin:${area}:write`,
])
const offered = scope.filter((name) => name !== 'admin:audit:write')
const nested = (levels: number, value = '1') => `${'{"a":'.repeat(levels)}${value}${'}'.repeat(levels)}`

/** Every route that takes a body, as method and URL with a value for each parameter. */
async function routesWithBody(): Promise<readonly (readonly [method: string, url: string])[]> {
  const routes: [string, string][] = []
  const app = await buildApp(server.deps, {
    development,
    logTo: { write: () => {} },
    observe: async (observed) => {
      observed.addHook('onRoute', ({ method, url }) => {
        for (const each of [method]
          .flat()
          .filter((name) => ['POST', 'PUT', 'PATCH', 'DELETE'].includes(name)))
          routes.push([each, `${server.origin}${url.replaceAll(/:\w+|\*/g, 'x')}`])
      })
    },
  })
  await app.ready()
  await app.close()
  return routes
}

t.test('[rfc7591-3-post-json] no route walks a body of 12,000 levels', async (t) => {
  const machine = await integrate(server, {
    grantTypes: ['client_credentials'],
    redirectUris: [],
    scope: offered,
  })
  const fields = { grant_type: 'client_credentials', scope: offered.join(' ') }
  const token = String(
    (await json(await postAs(server, machine, '/api/oauth/token', fields)))['access_token'],
  )
  const description = 'the body is nested deeper than 10 levels (limits.jsonDepth)'
  const rejecting: string[] = []
  for (const [method, url] of await routesWithBody())
    for (const body of [nested(12_000), '['.repeat(12_000), nested(12_000, '{"__proto__":1}')]) {
      const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
      const response = await fetch(url, { method, headers, body, redirect: 'manual' })
      const text = await response.text()
      t.ok(response.status < 500, `${method} ${url} ${response.status}`)
      if (!text.includes('nested')) continue
      rejecting.push(url)
      const isMetadata = url.includes('/api/oauth/register') && method !== 'DELETE'
      const error = isMetadata ? 'invalid_client_metadata' : 'invalid_request'
      t.equal(response.status, 400)
      t.strictSame(JSON.parse(text), { error, error_description: description })
    }
  for (const path of ['/api/admin/v1/users', '/api/oauth/register', '/_dev/clock', '/api/courses'])
    t.ok(rejecting.includes(`${server.origin}${path}`), path)
})

t.test('[rfc7591-3-post-json] as many levels as are allowed are read', async (t) => {
  const send = (levels: number) =>
    fetch(`${server.issuer}/api/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: `{"redirect_uris":["http://127.0.0.1/callback"],"client_name":"[[[[[[[[[[[","more":${nested(levels - 1)}}`,
    })
  t.equal((await send(10)).status, 201)
  t.equal((await send(11)).status, 400)
})

t.test('the claims parameter is not walked either', async (t) => {
  const client = await register(server)
  const { error, error_description: description } = sentAway(
    await ask(server, client, { claims: nested(1000) }),
  )
  t.equal(error, 'invalid_request')
  t.match(description, /^claims must be a JSON object as OpenID Connect Core 5\.5 has it \(reference/)
})
