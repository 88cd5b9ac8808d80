/**
 * A flow through the features this server has, run by `npm run check:removable` in copies of the project without one
 * specification. Each argument is a text that no public document may contain.
 */
import assert from 'node:assert/strict'
import {
  authorizationUrl,
  callApi,
  obtainTokens,
  post,
  postAs,
  redirectUri,
  refresh,
  register,
  type Tokens,
} from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { addClient, introspect, json } from '../helpers/wire.ts'

const forbidden = process.argv.slice(2)
const ends: (() => unknown)[] = []
const server = await startServer({ teardown: (end) => ends.push(end) })
const { issuer } = server

const metadata = await json(await fetch(`${issuer}/.well-known/oauth-authorization-server`))
const has = (name: string) => `${name}_endpoint` in metadata
const client = has('registration')
  ? await register(server)
  : await addClient(server, {
      authenticationMethod: 'none',
      redirectUris: [redirectUri],
      consent: 'always',
    })

const agent = new UserAgent(issuer)
const consent = await pageOf(authorizationUrl(server, client))
const tokens = await obtainTokens(server, client, { agent, fields: { scope: 'openid courses:read' } })
assert.equal('id_token' in tokens, 'subject_types_supported' in metadata)
assert.equal((await callApi(server, '/api/courses', tokens.access_token)).status, 200)
assert.equal((await callApi(server, '/api/courses')).status, 200)
assert.equal((await callApi(server, '/api/courses', 'garbage')).status, 401)

const response = await refresh(server, client, tokens.refresh_token)
assert.equal(response.status, 200)
const { access_token: latest } = (await response.json()) as Tokens
if (has('userinfo')) assert.equal((await callApi(server, '/api/oauth/userinfo', latest)).status, 200)
if (has('introspection')) assert.equal((await introspect(server, client, latest))['active'], true)
if (has('pushed_authorization_request')) {
  const push = await postAs(server, client, '/api/oauth/par', {
    ...Object.fromEntries(new URL(authorizationUrl(server, client)).searchParams),
  })
  assert.equal(push.status, 201)
}
if (metadata['request_parameter_supported'] !== true) {
  // What is not published defaults to true, OpenID Connect Discovery §3.
  assert.equal(metadata['request_uri_parameter_supported'], false)
  for (const name of ['request', 'request_uri']) {
    const rejected = await agent.send(authorizationUrl(server, client, { [name]: 'x' }))
    assert.match(rejected.headers.get('location') ?? '', new RegExp(`error=${name}_not_supported`))
  }
}
if (has('end_session')) assert.equal((await fetch(String(metadata['end_session_endpoint']))).status, 200)
if (has('revocation')) {
  assert.equal((await postAs(server, client, '/api/oauth/revoke', { token: latest })).status, 200)
  assert.equal((await callApi(server, '/api/courses', latest)).status, 401)
}
assert.equal((await post(server, '/api/oauth/token', {})).status, 400)

const description = await (await fetch(`${issuer}/openapi.json`)).text()
const openid = await (await fetch(`${issuer}/.well-known/openid-configuration`)).text()
const home = await (await fetch(`${issuer}/`)).text()
for (const text of forbidden) {
  for (const [where, content] of Object.entries({ description, openid, home, consent })) {
    assert.ok(!content.includes(text), `${where} contains ${text}`)
  }
}
for (const end of ends) await end()

async function pageOf(url: string): Promise<string> {
  const landing = await agent.open(url)
  return landing.at === 'page' ? landing.page.html : ''
}
