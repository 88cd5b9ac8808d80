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
      const refused = await callApi(server, path, token, { method })
      t.equal(refused.status, 403)
      const { scheme, params } = challengeOf(refused)
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
      const refused = await callApi(server, path, token, { method })
      if (refused.status === 405) continue
      t.equal(refused.status, 403, `${method} ${path}`)
      t.match(challengeOf(refused).params['scope'], /^[a-z_]+:(?:read|write)$/)
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
    const refused = await callApi(server, '/api/courses', token)
    t.equal(refused.status, 403)
    t.equal(challengeOf(refused).params['scope'], 'courses:read')
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
      const answer = await exchange(server, client, code, { resource: exchanged })
      t.equal(answer.status, 200, about)
      const { access_token: token } = await json(answer)
      t.equal((await introspect(server, client, String(token)))['aud'], issuer, about)
    }
  },
)
