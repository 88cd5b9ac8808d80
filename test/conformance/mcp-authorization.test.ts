import t from 'tap'
import { callApi, exchange, obtainCode } from '../helpers/flow.ts'
import { challengeOf, introspect, json, startFlow } from '../helpers/wire.ts'

const { server, client, agent, tokens } = await startFlow(t)

t.test(
  '[mcp-scope-challenge-scope] a 403 names the scope that the operation needs, whatever scope the token has',
  async (t) => {
    const { access_token: token } = await tokens({ scope: 'openid courses:read' })
    for (const [path, method, scope] of [
      ['/api/orders', 'GET', 'orders:read'],
      ['/api/courses', 'POST', 'courses:write'],
      ['/api/courses', 'DELETE', 'courses:write'],
    ] as const) {
      const rejected = await callApi(server, path, token, { method })
      t.equal(rejected.status, 403)
      const { scheme, params } = challengeOf(rejected)
      t.strictSame([scheme, params['error'], params['scope']], ['Bearer', 'insufficient_scope', scope])
    }
    t.equal((await callApi(server, '/api/courses', token)).status, 200)
  },
)

t.test('[mcp-scope-no-offline-access] no response of a resource asks for offline_access', async (t) => {
  const metadata = await json(await fetch(`${server.issuer}/.well-known/oauth-protected-resource`))
  const scopes = [metadata['scopes_supported']].flat()
  t.equal(scopes.length, 39)
  t.notOk(scopes.includes('offline_access'))
  const { access_token: token } = await tokens({ scope: 'openid' })
  const { paths } = await json(await fetch(`${server.issuer}/openapi.json`))
  // A path of the API, and none of the endpoints.
  const areas = Object.keys(paths as object).filter((path) => /^\/api\/[a-z_]+$/.test(path))
  t.equal(areas.length, 20)
  let challenged = 0
  for (const path of areas) {
    for (const method of ['GET', 'POST']) {
      const rejected = await callApi(server, path, token, { method })
      if (rejected.status === 405) continue
      t.equal(rejected.status, 403, `${method} ${path}`)
      t.match(challengeOf(rejected).params['scope'], /^[a-z_]+:(?:read|write)$/)
      challenged += 1
    }
  }
  t.equal(challenged, 35, 'every scope of the API has asked once')
})

t.test(
  '[mcp-scope-hierarchy] no scope implies another: write does not allow read, and the challenge names the missing one',
  async (t) => {
    const { access_token: token } = await tokens({ scope: 'courses:write' })
    t.equal((await callApi(server, '/api/courses', token, { method: 'POST' })).status, 200)
    const rejected = await callApi(server, '/api/courses', token)
    t.equal(rejected.status, 403)
    t.equal(challengeOf(rejected).params['scope'], 'courses:read')
  },
)

t.test(
  '[mcp-token-resource-accepted] resource is accepted at both endpoints, with and without its slash',
  async (t) => {
    const { issuer } = server
    for (const [asked, exchanged] of [
      [issuer, issuer],
      [`${issuer}/`, issuer],
      [issuer, `${issuer}/`],
      [`${issuer}/`, `${issuer}/`],
      [undefined, issuer],
    ]) {
      const about = `${asked} then ${exchanged}`
      const code = await obtainCode(server, client, { agent, fields: { resource: asked } })
      const response = await exchange(server, client, code, { resource: exchanged })
      t.equal(response.status, 200, about)
      const { access_token: token } = await json(response)
      t.equal((await introspect(server, client, String(token)))['aud'], issuer, about)
    }
  },
)
