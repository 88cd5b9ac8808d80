import type { FastifyInstance } from 'fastify'
import type { Fault } from './faults.ts'
import { describeFlow, lineOf } from './flows/describe-flow.ts'
import { type DevDeps, type DevPart, hidden } from './part.ts'
import { knownPassword } from './users.ts'

const [mostUsers, mostFlows] = [20, 5]

/** The issuer of a development server opened in a browser. */
export const startPage: DevPart = async (app, deps) => {
  const { service, store, clock, isNested } = deps
  app.get('/', hidden, async (_request, reply) => {
    const users = await store.list('user')
    const flows = app.recorder.book.flows().slice(0, mostFlows)
    return reply.devPage('start', {
      issuer: service.issuer,
      now: clock(),
      endpoints: [...documentsOf(deps), ...endpointsOf(app, service.issuer)],
      users: users.slice(0, mostUsers).map(({ username, claims, passwordHash }) => ({
        username,
        name: claims['name'],
        password: knownPassword(passwordHash),
      })),
      flows: (await Promise.all(flows.map((flow) => describeFlow(flow, deps)))).map(lineOf),
      faults: app.faults.flatMap(describeRemaining),
      hasIssuers: !isNested,
      registration: registrationAt(service.issuer),
    })
  })
}

function describeRemaining({ fault, endpoint, client_id: clientId, requests, fired }: Fault) {
  return requests > fired ? [`${fault} ${endpoint ?? clientId ?? ''} ×${requests - fired}`] : []
}

function documentsOf({ service: { issuer, resourceMetadataUrl } }: DevDeps) {
  return [
    { label: 'OAuth metadata', url: `${issuer}/.well-known/oauth-authorization-server` },
    { label: 'OpenID discovery', url: `${issuer}/.well-known/openid-configuration` },
    { label: 'Resource metadata', url: resourceMetadataUrl },
    { label: 'API description', url: `${issuer}/openapi.json` },
  ]
}

function endpointsOf(app: FastifyInstance, issuer: string) {
  return [...app.endpoints].map(([name, path]) => {
    const title = app.endpointTitle(name)
    return { label: title.charAt(0).toUpperCase() + title.slice(1), url: `${issuer}${path}` }
  })
}

function registrationAt(issuer: string): string {
  const metadata = JSON.stringify({
    client_name: 'My first client',
    redirect_uris: ['http://127.0.0.1:7777/callback'],
  })
  return `curl -s ${issuer}/api/oauth/register -H 'content-type: application/json' -d '${metadata}'`
}
