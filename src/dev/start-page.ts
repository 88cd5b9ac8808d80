import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import type { Seconds } from '../domain/model.ts'
// Brings `app.faults`.
import type {} from './fault-routes.ts'
import type { Fault } from './faults.ts'
import { describeFlow } from './flows/describe-flow.ts'
import { type FlowLine, lineOf } from './flows/page-models.ts'
import type { DevDeps } from './plugin.ts'
import { knownPassword } from './users.ts'

/** What a developer looks for first. */
export interface StartPage {
  readonly issuer: string
  readonly now: Seconds
  readonly endpoints: readonly { readonly label: string; readonly url: string }[]
  readonly people: readonly {
    readonly username: string
    readonly name?: string
    /** Where it is public knowledge. */
    readonly password?: string
  }[]
  readonly flows: readonly FlowLine[]
  /** What is still to go wrong. */
  readonly faults: readonly string[]
  /** Whether it has issuers that lie. */
  readonly hasLiars: boolean
  /** A command that registers a client. */
  readonly registration: string
}

const labels: Readonly<Record<string, string>> = {
  authorization_endpoint: 'Authorization',
  token_endpoint: 'Token',
  registration_endpoint: 'Registration',
  userinfo_endpoint: 'UserInfo',
  introspection_endpoint: 'Introspection',
  revocation_endpoint: 'Revocation',
  end_session_endpoint: 'Sign-out',
  jwks_uri: 'Keys',
}
const mostUsers = 20

/** The issuer of a development server opened in a browser. */
export const startPage: FastifyPluginAsync<DevDeps> = async (app, deps) => {
  const { service, store, clock } = deps
  app.get('/', { schema: { hide: true } }, async (_request, reply) => {
    const accounts = await store.list('user')
    const people = accounts.slice(0, mostUsers).map(({ username, claims, passwordHash }) => {
      const [name, password] = [claims['name'], knownPassword(passwordHash)]
      return {
        username,
        ...(typeof name === 'string' && { name }),
        ...(password !== undefined && { password }),
      }
    })
    const recent = await Promise.all(
      app.recorder.book
        .flows()
        .slice(0, 5)
        .map((flow) => describeFlow(flow, deps)),
    )
    return reply.devPage('start', {
      issuer: service.issuer,
      now: clock(),
      endpoints: [...documentsOf(deps), ...endpointsOf(app)],
      people,
      flows: recent.map(lineOf),
      faults: app.faults.list().flatMap(toCome),
      hasLiars: !deps.isNested,
      registration: registrationAt(service.issuer),
    })
  })
}

function toCome({ fault, endpoint, client_id: clientId, requests, fired }: Fault): readonly string[] {
  const left = requests - fired
  return left > 0 ? [`${fault} ${endpoint ?? clientId ?? ''} ×${left}`] : []
}

function documentsOf({ service }: DevDeps) {
  const { issuer } = service
  return [
    { label: 'OAuth metadata', url: `${issuer}/.well-known/oauth-authorization-server` },
    { label: 'OpenID discovery', url: `${issuer}/.well-known/openid-configuration` },
    { label: 'Resource metadata', url: service.resourceMetadataUrl },
    { label: 'API description', url: `${issuer}/openapi.json` },
  ]
}

function endpointsOf(app: FastifyInstance) {
  const advertised = app.advertised()
  return Object.entries(labels).flatMap(([member, label]) => {
    const url = advertised[member]
    return typeof url === 'string' ? [{ label, url }] : []
  })
}

function registrationAt(issuer: string): string {
  const metadata = JSON.stringify({
    client_name: 'My first client',
    redirect_uris: ['http://127.0.0.1:7777/callback'],
  })
  return `curl -s ${issuer}/api/oauth/register -H 'content-type: application/json' -d '${metadata}'`
}
