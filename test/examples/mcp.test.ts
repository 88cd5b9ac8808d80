/** The MCP server and the MCP client, each as its README starts it; the client gets one URL. */
import t, { type Test } from 'tap'
import { addressIn, runExample, startExampleServer } from '../helpers/examples.ts'
import { authorizationUrl, exchange, register, type Tokens } from '../helpers/flow.ts'
import { callAt } from '../helpers/guarded-api.ts'

const { issuer, user, resource: resourceAt } = await startExampleServer(t)
const resource = resourceAt('http://127.0.0.1:9502/mcp')
const server = runExample(t, ['mcp/server.ts'], { ISSUER: issuer, RESOURCE: resource })
await server.until(/Timetable is ready at .*\n/)

/** Runs the client until it waits for the browser. */
async function connect(t: Test, ...tool: string[]) {
  const client = runExample(t, ['mcp/client.ts', resource, ...tool], {})
  return { client, address: new URL(addressIn(await client.until(/authorize\?.*\n/))) }
}

t.test('the MCP client finds its way from the URL of the MCP server to its tools', async (t) => {
  const { client, address } = await connect(t)
  t.equal(address.origin, issuer)
  t.match(Object.fromEntries(address.searchParams), {
    resource,
    scope: 'courses:read courses:write',
    code_challenge_method: 'S256',
  })
  t.equal((await fetch(await user.approve(address))).status, 200)
  t.match(await client.end(), {
    code: 0,
    output: /tools: list_lessons, clear_lessons\nlist_lessons: .*Monday: reading/,
  })
})

t.test('a tool that needs more scope is rejected for a client that was granted less', async (t) => {
  const less = await connect(t, 'clear_lessons')
  await fetch(await user.approve(less.address, ['courses:read']))
  t.match(await less.client.end(), { code: 1, output: /403/ })

  const enough = await connect(t, 'clear_lessons')
  await fetch(await user.approve(enough.address))
  t.match(await enough.client.end(), { code: 0, output: /removed every lesson/ })
})

t.test('a batch of messages needs the scopes of each of them', async (t) => {
  const client = await register({ issuer })
  const url = authorizationUrl({ issuer }, client, { scope: 'courses:read', resource })
  const code = (await user.approve(url)).searchParams.get('code') ?? ''
  const { access_token: token } = (await (await exchange({ issuer }, client, code)).json()) as Tokens
  const post = async (body: unknown) => {
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    }
    return (await fetch(resource, { method: 'POST', headers, body: JSON.stringify(body) })).status
  }
  const call = (name: string, id: number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name } })
  t.equal(await post([call('list_lessons', 1)]), 200)
  t.equal(await post([call('list_lessons', 1), call('clear_lessons', 2)]), 403)
  t.equal(await post(null), 400)
})

t.test(
  'the MCP client accepts no response of another server, and names the server that rejected it',
  async (t) => {
    const mixedUp = await connect(t)
    const response = await user.approve(mixedUp.address)
    response.searchParams.set('iss', 'https://attacker.example')
    await fetch(response)
    t.match(await mixedUp.client.end(), { code: 1, output: /iss is not the issuer of the request/ })

    const rejected = await connect(t)
    await fetch(await user.deny(rejected.address))
    t.match(await rejected.client.end(), { code: 1, output: /access_denied/ })
  },
)

t.test('the MCP server challenges callers without a token', async (t) => {
  const metadata = resource.replace('/mcp', '/.well-known/oauth-protected-resource/mcp')
  const { status, headers } = await fetch(resource, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  })
  t.equal(status, 401)
  t.equal(headers.get('www-authenticate')?.split(', DPoP')[0], `Bearer resource_metadata="${metadata}"`)
  t.match(await callAt(metadata), { status: 200, body: { resource, authorization_servers: [issuer] } })
  t.equal(await server.stop(), 0)
})
