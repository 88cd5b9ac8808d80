import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { buildApp } from '../../src/app/app.ts'
import { Authenticator, askedOf } from '../helpers/authenticator.ts'
import { pageOf } from '../helpers/authorization.ts'
import { watchConnections } from '../helpers/connections.ts'
import { authorize, callApi, obtainTokens, post, register } from '../helpers/flow.ts'
import { startMailbox } from '../helpers/mailbox.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { type Page, UserAgent } from '../helpers/user-agent.ts'
import { enter } from '../pages/account/sections.ts'

const connections = watchConnections(t)

/** A server that must get no request, and the requests it got. */
async function startTrap(t: Test) {
  const asked: string[] = []
  const trap = createServer((request, response) => {
    asked.push(request.url ?? '')
    response.end()
  })
  await new Promise<void>((resolve) => trap.listen(0, '127.0.0.1', resolve))
  t.teardown(() => trap.close())
  const { port } = trap.address() as AddressInfo // it listens
  return { asked, url: `http://127.0.0.1:${port}` }
}

/** Every route, as method and URL with a value for each parameter. */
async function routesOf({ deps, origin }: TestServer): Promise<readonly (readonly [string, string])[]> {
  const routes: [string, string][] = []
  const app = await buildApp(deps, {
    logTo: { write: () => {} },
    observe: async (observed) => {
      observed.addHook('onRoute', ({ method, url }) => {
        for (const each of [method].flat())
          routes.push([each, `${origin}/${url.replaceAll(/:\w+|\*/g, 'x').replace(/^\//, '')}`])
      })
    },
  })
  await app.ready()
  await app.close()
  return routes
}

/** Members of requests, and of documents that other servers fetch by URL. */
const names = [
  ...['redirect_uri', 'post_logout_redirect_uri', 'request_uri', 'request', 'resource', 'id_token_hint'],
  ...['client_id', 'client_uri', 'logo_uri', 'jwks_uri', 'policy_uri', 'tos_uri', 'sector_identifier_uri'],
  ...['initiate_login_uri', 'software_statement', 'client_assertion', 'assertion', 'token', 'subject_token'],
  ...[
    'username',
    'code',
    'picture',
    'website',
    'profile',
    'email',
    'credential',
    'interaction',
    'backchannel_logout_uri',
  ],
]

/** A busy machine can be slow. */
const patient = { timeout: 300_000 }

t.test('no endpoint opens a connection to a URL that a request names', patient, async (t) => {
  const [mailbox, trap] = await Promise.all([startMailbox(t), startTrap(t)])
  const mail = { url: mailbox.url, from: 'accounts@example.org' }
  const server = await startServer(t, {
    mail,
    accounts: { editable: ['picture', 'website', 'profile', 'email'] },
  })
  const url = (path: string) => `${trap.url}/${path}`
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const jwt = `${encode({ alg: 'RS256', jku: url('jku'), x5u: url('x5u'), kid: url('kid') })}.${encode({ iss: trap.url })}.AAAA`

  // Every route with every name, as form, JSON and query, with and without a session.
  const agent = new UserAgent(server.issuer)
  await enter(server, agent, '/apps')
  const routes = await routesOf(server)
  t.ok(routes.length > 40)
  for (const value of [trap.url, jwt]) {
    const members = Object.fromEntries(names.map((name) => [name, value]))
    const query = new URLSearchParams(members)
    for (const [method, target] of routes) {
      const isRead = method === 'GET' || method === 'HEAD'
      const bodies = isRead ? [undefined] : [query, JSON.stringify(members)]
      const sent = bodies.flatMap((body) => {
        const type = typeof body === 'string' ? { 'content-type': 'application/json' } : {}
        const headers = { ...type, origin: trap.url, referer: trap.url }
        const init = { method, headers, ...(body && { body }), redirect: 'manual' } as const
        const bearer = { ...init, headers: { ...headers, authorization: `Bearer ${value}` } }
        return [fetch(`${target}?${query}`, bearer), agent.send(`${target}?${query}`, init)]
      })
      for (const response of await Promise.all(sent)) await response.arrayBuffer()
    }
  }

  // What a client and a user can make the server store and show.
  const client = await register(server, {
    ...Object.fromEntries(
      ['client_uri', 'logo_uri', 'policy_uri', 'tos_uri'].map((name) => [name, url(name)]),
    ),
  })
  const tokens = await obtainTokens(server, client, { agent, fields: { scope: 'openid profile email' } })
  await callApi(server, '/api/oauth/userinfo', tokens.access_token)
  await authorize(server, client, { request_uri: url('request') })
  await post(server, '/api/oauth/introspect', { client_id: client.id, token: jwt })
  await post(server, '/api/oauth/revoke', { client_id: client.id, token: jwt })
  const profile = await enter(server, agent, '/profile')
  const fields = { picture: url('picture'), website: url('website'), profile: url('profile') }
  await agent.submit(
    profile,
    fields,
    profile.forms.find((form) => form.fields.length > 2),
  )
  await enter(server, agent, '/profile')
  const passkeys = await enter(server, agent, '/passkeys')
  const credential = JSON.stringify(new Authenticator(server.issuer).create(askedOf(passkeys)))
  await agent.submit(passkeys, { credential }, credentialForm(passkeys))
  const forgot = pageOf(await new UserAgent(server.issuer).open(`${server.issuer}/forgot-password`))
  await new UserAgent(server.issuer).submit(forgot, { username: 'alice' })

  const ours = [server.origin, mailbox.url].map((each) => new URL(each).port)
  t.strictSame(connections.except(...ours), [])
  t.strictSame(trap.asked, [])
})

t.test('a connection that no setting asks for is detected', async (t) => {
  const trap = await startTrap(t)
  await fetch(`${trap.url}/seen`)
  t.strictSame(trap.asked, ['/seen'])
  t.strictSame(connections.except().at(-1), new URL(trap.url).host)
})

function credentialForm(page: Page) {
  return page.forms.find(({ fields }) => fields.some(({ name }) => name === 'credential'))
}
