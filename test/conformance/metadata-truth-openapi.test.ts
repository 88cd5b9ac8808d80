/**
 * The API description as served: every operation is called, every response is compared with it, and it has every
 * operation there is. An operation that no code here can call fails.
 */
import t from 'tap'
import { buildApp } from '../../src/app/app.ts'
import { obtainTokens, register } from '../helpers/flow.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { json } from '../helpers/wire.ts'
import { type Described, type Description, readDescription } from './metadata-truth/description.ts'
import { operateFor, type Scene } from './metadata-truth/operations.ts'

async function openScene(issuerPath: string): Promise<Scene & { readonly description: Description }> {
  const server = await startServer(t, { issuerPath })
  const client = await register(server)
  const confidential = await register(server, { token_endpoint_auth_method: 'client_secret_basic' })
  const agent = new UserAgent(server.issuer)
  const tokens = (scope: string) => obtainTokens(server, client, { agent, fields: { scope } })
  const { access_token: unable } = await tokens('openid')
  const { access_token: able } = await tokens(server.deps.config.scopes.map(({ name }) => name).join(' '))
  const description = await readDescription(`${server.issuer}/openapi.json`)
  return { server, client, confidential, agent, tokens, able, unable, description }
}

const scenes = await Promise.all(['', '/t'].map(openScene))
const [scene] = scenes
if (scene === undefined) throw new Error('there is a scene')

/** Responses that need more than one request: too many of them, or a store that is down. Each has its own tests. */
const elsewhere = [429, 503]
/** Only a request with two Authorization headers is malformed here, and fetch cannot send it. */
const needsRaw = ({ path, method }: Described) => (method === 'GET' && path.startsWith('/api/') ? [400] : [])

/** The areas are alike: one of them is enough where only the path or the limits differ. */
const isNoOtherArea = ({ path }: Described) => /^\/api\/(oauth|courses)\b|^\/(?!api)/.test(path)

for (const each of scenes) {
  const { server, description } = each
  const tried = [...description.operations.values()].filter((one) => each === scene || isNoOtherArea(one))
  t.test(
    `[service-4-openapi] every operation of ${new URL(server.issuer).pathname} responds as described, with each of its statuses`,
    async (t) => {
      t.ok(tried.length > 20)
      for (const described of tried) {
        const { operationId, responses } = described
        const operate = operateFor(described)
        if (operate === undefined) t.fail(`no code here can call ${operationId}`)
        await operate?.((init) => description.call(t, operationId, init), each)
        const seen = description.seen.get(operationId) ?? new Set()
        const untold = Object.keys(responses)
          .map(Number)
          .filter((status) => ![...seen, ...elsewhere, ...needsRaw(described)].includes(status))
        t.strictSame(untold, [], `${operationId} responds with every status it describes`)
        t.ok(
          [...seen].some((status) => status < 400),
          `${operationId} can be used`,
        )
      }
    },
  )
}

/** Every route of this server as `GET /path`, below the issuer. */
async function routesOf({ deps, issuer }: TestServer): Promise<readonly string[]> {
  const prefix = new URL(issuer).pathname.replace(/^\/$/, '')
  const routes: string[] = []
  const app = await buildApp(deps, {
    logTo: { write: () => {} },
    observe: async (observed) => {
      observed.addHook('onRoute', ({ method, url }) => {
        if (!url.startsWith(`${prefix}/`)) return
        const path = url.slice(prefix.length).replaceAll(/:(\w+)/g, '{$1}')
        for (const each of [method].flat()) routes.push(`${each} ${path}`)
      })
    },
  })
  await app.ready()
  await app.close()
  return [...new Set(routes)].filter((route) => !/^(HEAD|OPTIONS) /.test(route)).sort()
}

/** Routes for users and for operators, which are deliberately not part of the API. */
const pagesAndHealth = [
  'GET /',
  // What operators store has its metadata below this path, as each configured resource has at its own.
  'GET /.well-known/oauth-protected-resource/*',
  'GET /assets/copy.js',
  'GET /assets/form-post.js',
  'GET /assets/icon.svg',
  'GET /assets/passkeys.js',
  'GET /assets/recovery-codes.js',
  'GET /assets/style.css',
  'GET /client-logo',
  'GET /consent',
  'GET /device',
  'GET /device/confirm',
  'GET /favicon.ico',
  'GET /link',
  'GET /livez',
  'GET /login',
  'GET /login/upstream/{upstream}',
  'GET /login/upstream/{upstream}/callback',
  'GET /login/upstream/{upstream}/try',
  'GET /oauth/arrival',
  'GET /oauth/logout',
  'GET /readyz',
  'POST /consent',
  'POST /device',
  'POST /device/confirm',
  'POST /language',
  'POST /link',
  'POST /login',
  'POST /oauth/logout',
]

/** The pages of users and of administrators: test/pages/account and admin-pages.test.ts list every route of them. */
const ownPage = /^(GET|POST) \/(account|admin)(\/|$)/
/** What proxies ask, by the method of the request that they ask about, and what they route here: docs/forward-auth.md. */
const ofProxies = /^([A-Z]+ \/forward-auth|GET \/\.lychgate\/(sign-in|callback|probe))$/

t.test('every route is described, except pages, health checks and what is for proxies', async (t) => {
  const described = [...scene.description.operations.values()].map(({ method, path }) => `${method} ${path}`)
  const served = await routesOf(scene.server)
  t.strictSame(
    described.filter((operation) => !served.includes(operation)),
    [],
    'all of it is served',
  )
  t.strictSame(
    served.filter((route) => !described.includes(route) && !ownPage.test(route) && !ofProxies.test(route)),
    pagesAndHealth,
  )
})

t.test('with every rate limit at one, exactly the operations that describe 429 respond so', async (t) => {
  const requestsPerMinute = { registration: 1, authorization: 1, token: 1, signIn: 1 }
  const server = await startServer(t, { rateLimits: 'on', requestsPerMinute })
  const description = await readDescription(`${server.issuer}/openapi.json`)
  const tried = [...description.operations.values()].filter(isNoOtherArea)
  t.ok(tried.some(({ responses }) => '429' in responses))
  for (const { operationId, responses, method } of tried) {
    const body = method === 'GET' ? {} : { body: new URLSearchParams({ client_id: 'x' }) }
    const parameters = { client_id: 'x' }
    for (let times = 0; times < 2; times += 1) await description.call(t, operationId, { ...body, parameters })
    t.equal(description.seen.get(operationId)?.has(429), '429' in responses, operationId)
  }
})

t.test("an area that an operator's catalogue lacks is neither served nor described", async (t) => {
  const scopes = scene.server.deps.config.scopes.filter(({ name }) => !/^(courses|orders):/.test(name))
  const server = await startServer(t, { scopes, issuerPath: '/t' })
  const { operations } = await readDescription(`${server.issuer}/openapi.json`)
  const missing = [...scene.description.operations.keys()].filter((id) => !operations.has(id))
  t.strictSame(missing.toSorted(), [
    'delete_courses',
    'get_courses',
    'get_orders',
    'patch_courses',
    'post_courses',
    'put_courses',
  ])
  for (const area of ['courses', 'orders']) {
    t.equal((await fetch(`${server.issuer}/api/${area}`)).status, 404)
  }
  t.equal((await fetch(`${server.issuer}/api/pages`)).status, 200)
})

interface Requirement {
  readonly oauth2?: readonly string[]
  readonly openIdConnect?: readonly string[]
}

t.test('the description names the scope of each operation, and where a tool signs in for it', async (t) => {
  for (const { server, client, agent } of scenes) {
    const whole = await json(await fetch(`${server.issuer}/openapi.json`))
    const metadata = await json(await fetch(`${server.issuer}/.well-known/openid-configuration`))
    const { components, paths } = whole as unknown as {
      components: { securitySchemes: Record<'oauth2' | 'openIdConnect', Record<string, unknown>> }
      paths: Record<string, Record<string, { security?: readonly Requirement[] }>>
    }
    const { oauth2, openIdConnect } = components.securitySchemes
    t.equal(openIdConnect['openIdConnectUrl'], `${server.issuer}/.well-known/openid-configuration`)
    t.match(oauth2, {
      type: 'oauth2',
      flows: {
        authorizationCode: {
          authorizationUrl: metadata['authorization_endpoint'],
          tokenUrl: metadata['token_endpoint'],
          refreshUrl: metadata['token_endpoint'],
        },
      },
    })
    const { flows } = oauth2 as { flows: { authorizationCode: { scopes: Record<string, string> } } }
    t.strictSame(Object.keys(flows.authorizationCode.scopes), metadata['scopes_supported'])
    for (const [method, scope] of [
      ['get', 'courses:read'],
      ['post', 'courses:write'],
    ] as const) {
      const security = paths['/api/courses']?.[method]?.security ?? []
      t.strictSame(security, [{}, { oauth2: [scope] }, { openIdConnect: [scope] }, { bearer: [] }])
      const { access_token: token } = await obtainTokens(server, client, { agent, fields: { scope } })
      const called = await fetch(`${server.issuer}/api/courses`, {
        method: method.toUpperCase(),
        headers: { authorization: `Bearer ${token}` },
      })
      t.equal(called.status, 200, scope)
    }
    const ofUserInfo = [{ oauth2: ['openid'] }, { openIdConnect: ['openid'] }, { bearer: [] }]
    t.strictSame(paths['/api/oauth/userinfo']?.['get']?.security, ofUserInfo)
  }
})
