import Fastify, { type FastifyInstance } from 'fastify'
import { insert } from '../../src/domain/decision.ts'
import { declared } from '../../src/features.ts'
import { type GuardOptions, guard, protectedResourceMetadata } from '../../src/guard/guard.ts'
import { systemRandom } from '../../src/system/system.ts'
import { addOperatorClient } from './client-request.ts'
import type { TestServer } from './server.ts'

/** The part of tap's `t` that a teardown needs. */
interface Test {
  teardown(end: () => unknown): unknown
}

/** Credentials of a resource server that may introspect tokens meant for this resource. */
export async function addResourceServer({ deps, issuer }: TestServer, resource: string) {
  const scopes = deps.config.scopes.map(({ name }) => name)
  const resources = [issuer, ...deps.config.resources.map(({ identifier }) => identifier)]
  const request = {
    name: 'Resource server',
    redirectUris: [],
    postLogoutRedirectUris: [],
    authenticationMethod: 'client_secret_basic',
    pkce: 'required',
    idTokenSignedResponseAlg: 'RS256',
    resources: [resource],
  } as const
  const fresh = { id: systemRandom(16), secret: systemRandom(32) }
  const { client, secret = '' } = addOperatorClient(
    request,
    { declared, scopes, resources },
    fresh,
    deps.clock(),
  )
  await deps.store.write(insert('client', client))
  return { endpoint: `${issuer}/api/oauth/introspect`, clientId: client.id, clientSecret: secret }
}

export interface ApiOptions extends Omit<GuardOptions, 'resource'> {
  /** What the application does with errors; Fastify's own response by default. */
  readonly setUp?: (app: FastifyInstance) => void
}

/**
 * Another application behind the guard, listening at its own identifier: `/read` needs `courses:read`, `/both` needs
 * `courses:write` too; each returns who is calling.
 */
export async function startApi(
  t: Test,
  resource: string,
  { setUp, ...options }: ApiOptions,
): Promise<FastifyInstance> {
  const app = Fastify()
  setUp?.(app)
  await app.register(protectedResourceMetadata, {
    resource,
    authorizationServers: ['https://issuer.example'],
    scopes: ['courses:read', 'courses:write'],
    name: 'Somebody else',
  })
  await app.register(guard, { resource, ...options })
  const caller = async ({ access }: { readonly access: unknown }) => ({ caller: access ?? 'anonymous' })
  app.get('/read', { preHandler: app.requireScope('courses:read') }, caller)
  app.post('/read', { preHandler: app.requireScope('courses:read') }, caller)
  app.get('/both', { preHandler: app.requireScope('courses:read', 'courses:write') }, caller)
  t.teardown(() => app.close())
  const { hostname, port } = new URL(resource)
  await app.listen({ host: hostname, port: Number(port) })
  return app
}

/** Calls an API and returns any response. */
export async function callAt(url: string, token?: string, headers: Record<string, string> = {}) {
  const response = await fetch(url, {
    headers: { ...(token !== undefined && { authorization: `Bearer ${token}` }), ...headers },
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  return {
    status: response.status,
    challenge: response.headers.get('www-authenticate'),
    headers: response.headers,
    body: (isJson ? JSON.parse(text) : { text }) as Record<string, unknown>,
  }
}
