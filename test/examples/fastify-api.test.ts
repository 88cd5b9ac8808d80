/** The Fastify API as its README starts it: two processes, and `lychgate/guard` as an application imports it. */
import t, { type Test } from 'tap'
import { run } from '../helpers/command.ts'
import { runExample, startExampleServer } from '../helpers/examples.ts'
import { authorizationUrl, exchange, post, register } from '../helpers/flow.ts'
import { callAt } from '../helpers/guarded-api.ts'

const { issuer, user, location, resource: resourceAt, process: lychgate } = await startExampleServer(t)
const resource = resourceAt('http://127.0.0.1:9500')
const client = await register({ issuer })

async function startExample(t: Test, environment: Record<string, string> = {}) {
  const settings = { ISSUER: issuer, RESOURCE: resource, ...environment }
  const running = runExample(t, ['fastify-api/server.ts'], settings)
  await running.until(/Notes is ready at .*\n/)
  return running
}

async function obtainToken(scope: string): Promise<string> {
  const landed = await user.approve(authorizationUrl({ issuer }, client, { scope, resource }))
  const response = await exchange({ issuer }, client, landed.searchParams.get('code') ?? '')
  const { access_token: token } = (await response.json()) as { access_token: string }
  return token
}

t.test('the example sends callers to its authorization server, and accepts its tokens', async (t) => {
  const api = await startExample(t)
  t.match(await callAt(resource), { status: 200, body: { name: 'Notes' } })
  const challenge = await callAt(`${resource}/notes`)
  t.match(challenge, { status: 401, challenge: `Bearer resource_metadata="${resource}/.well-known/` })
  const metadata = await callAt(`${resource}/.well-known/oauth-protected-resource`)
  t.match(metadata, { status: 200, body: { resource, authorization_servers: [issuer] } })

  const reading = await obtainToken('courses:read')
  t.match(await callAt(`${resource}/notes`, reading), { status: 200, body: [{ author: 'the teacher' }] })
  const note = (token: string) =>
    fetch(`${resource}/notes`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ text: 'Bring two' }),
    })
  t.equal((await note(reading)).status, 403)
  const writing = await obtainToken('courses:read courses:write')
  t.equal((await note(writing)).status, 201)
  t.match(await callAt(`${resource}/notes`, reading), { body: [{}, { text: 'Bring two', author: String }] })
  t.equal((await callAt(`${issuer}/api/courses`, reading)).status, 401, 'and only here')
  t.equal(await api.stop(), 0)
})

t.test('with the credentials of a resource server the example rejects a revoked token at once', async (t) => {
  const flags = ['--name', 'Notes', '--resource', resource, ...location, '--json']
  const { code, stdout, stderr } = await run(['client', 'add', ...flags])
  t.equal(code, 0, stderr)
  const { client_id: CLIENT_ID, client_secret: CLIENT_SECRET } = JSON.parse(stdout)
  const api = await startExample(t, { CLIENT_ID, CLIENT_SECRET })
  const token = await obtainToken('courses:read')
  t.equal((await callAt(`${resource}/notes`, token)).status, 200)
  t.equal((await post({ issuer }, '/api/oauth/revoke', { token, client_id: client.id })).status, 200)
  t.match(await callAt(`${resource}/notes`, token), { status: 401, body: { error: 'invalid_token' } })

  const unrevoked = await obtainToken('courses:read')
  t.equal((await lychgate.stop('SIGTERM')).code, 0)
  t.match(await callAt(`${resource}/notes`, unrevoked), { status: 503 }, 'and nobody while it cannot ask')
  t.equal(await api.stop(), 0)
})
