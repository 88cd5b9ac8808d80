/**
 * An API protected by Lychgate: callers with the scope `courses:read` may read notes, callers with `courses:write` may
 * add to them. README.md describes how to start it.
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
// `as`: our own authorization server always has these two members.
const discovered = (await discovery.json()) as Discovered

const app = Fastify()

// Names the authorization server for clients, RFC 9728. Every challenge of the guard points there.
await app.register(protectedResourceMetadata, {
  resource,
  authorizationServers: [issuer],
  scopes: ['courses:read', 'courses:write'],
  name: 'Notes',
})

// With credentials the API introspects and rejects revoked tokens immediately. Without them it verifies signatures.
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
    const note = { text: body.text, author: access?.sub ?? 'anonymous' }
    notes.push(note)
    return reply.code(201).send(note)
  },
)

const { hostname, port } = new URL(resource)
process.once('SIGTERM', () => void app.close())
process.stdout.write(`Notes is ready at ${await app.listen({ host: hostname, port: Number(port) })}\n`)
