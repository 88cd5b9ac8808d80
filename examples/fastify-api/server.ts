/**
 * An API of your own behind Lychgate: notes that anyone with the scope `courses:read` may read, and anyone with
 * `courses:write` may add to. README.md says how to start it.
 */
import Fastify from 'fastify'
import { guard, introspectedBy, protectedResourceMetadata, signedBy } from 'lychgate/guard'

const {
  ISSUER: issuer = 'http://localhost:9400',
  // The identifier of this API; ../lychgate.yaml has the same one.
  RESOURCE: resource = 'http://127.0.0.1:9500',
  CLIENT_ID: clientId,
  CLIENT_SECRET: clientSecret,
} = process.env

interface Discovered {
  readonly jwks_uri: string
  readonly introspection_endpoint: string
}

const discovery = await fetch(`${issuer}/.well-known/openid-configuration`).catch(() => undefined)
if (!discovery?.ok) {
  process.stderr.write(`no authorization server answers at ${issuer}: start it first\n`)
  process.exit(1)
}
// `as`: it is our own authorization server, and these two members are required of it.
const discovered = (await discovery.json()) as Discovered

const app = Fastify()

// Where clients find out which authorization server to go to, RFC 9728: every challenge of the guard points there.
await app.register(protectedResourceMetadata, {
  resource,
  authorizationServers: [issuer],
  scopes: ['courses:read', 'courses:write'],
  name: 'Notes',
})

// Credentials to ask with: then a revoked token is refused at once. Without, its signature counts until it expires.
const verifyToken =
  clientId !== undefined && clientSecret !== undefined
    ? introspectedBy({ endpoint: discovered.introspection_endpoint, clientId, clientSecret })
    : signedBy({ issuer, jwksUri: discovered.jwks_uri })
await app.register(guard, { resource, verifyToken, anonymous: 'challenge' })

const notes = [{ text: 'Bring a pencil', author: 'the teacher' }]

app.get('/', async () => ({ name: 'Notes', notes: notes.length }))

app.get('/notes', { preHandler: app.requireScope('courses:read') }, async () => notes)

app.post<{ Body: { text: string } }>(
  '/notes',
  {
    preHandler: app.requireScope('courses:write'),
    schema: {
      body: { type: 'object', required: ['text'], properties: { text: { type: 'string', maxLength: 1000 } } },
    },
  },
  async ({ body, access }, reply) => {
    const note = { text: body.text, author: access?.sub ?? 'nobody' }
    notes.push(note)
    return reply.code(201).send(note)
  },
)

const { hostname, port } = new URL(resource)
process.once('SIGTERM', () => void app.close())
process.stdout.write(`Notes is ready at ${await app.listen({ host: hostname, port: Number(port) })}\n`)
