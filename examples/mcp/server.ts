/**
 * An MCP server that is a protected resource of Lychgate: the guard directs clients without a token to the
 * authorization server, and the tools receive the caller. README.md describes how to start it.
 */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import Fastify from 'fastify'
import { type Access, guard, protectedResourceMetadata, signedBy } from 'lychgate/guard'

const {
  ISSUER: issuer = 'http://localhost:9400',
  // The identifier of this server with its path; ../lychgate.yaml has the same one.
  RESOURCE: resource = 'http://127.0.0.1:9502/mcp',
} = process.env

const discovery = await fetch(`${issuer}/.well-known/oauth-authorization-server`).catch(() => undefined)
if (!discovery?.ok) {
  process.stderr.write(`no authorization server answers at ${issuer}: start it first\n`)
  process.exit(1)
}
// `as`: our own authorization server always has this member.
const { jwks_uri: jwksUri } = (await discovery.json()) as { readonly jwks_uri: string }

const lessons = ['Monday: reading', 'Tuesday: writing']

/** The tools that this caller may use. */
function toolsFor(caller: Access): McpServer {
  const server = new McpServer({ name: 'Timetable', version: '1.0.0' })
  const text = (content: string) => ({ content: [{ type: 'text' as const, text: content }] })
  server.registerTool('list_lessons', { description: 'The lessons of the week' }, () =>
    text(lessons.join('\n')),
  )
  server.registerTool('clear_lessons', { description: 'Removes every lesson' }, () => {
    lessons.length = 0
    return text(`${caller.sub} removed every lesson.`)
  })
  return server
}

interface Message {
  readonly method?: string
  readonly params?: { readonly name?: unknown }
}

/** The scope that a body needs. In a batch one message is enough. */
function scopeOf(body: Message | readonly Message[] | null): string {
  const clears = [body]
    .flat()
    .some((message) => message?.method === 'tools/call' && message.params?.name === 'clear_lessons')
  return clears ? 'courses:write' : 'courses:read'
}

const app = Fastify()
// RFC 9728 §3: served at /.well-known/oauth-protected-resource/mcp. Clients ask for the scopes named here.
await app.register(protectedResourceMetadata, {
  resource,
  authorizationServers: [issuer],
  scopes: ['courses:read', 'courses:write'],
  name: 'Timetable',
})
// MCP Authorization: tokens must be issued for this server, RFC 8707 §2, and never passed on. The guard checks `aud`.
await app.register(guard, { resource, verifyToken: signedBy({ issuer, jwksUri }), anonymous: 'challenge' })

const { hostname, port, pathname } = new URL(resource)

app.post<{ Body: Message | readonly Message[] | null }>(
  pathname,
  {
    // One tool needs more than the others: a caller without it gets 403 and the scope to request, RFC 6750 §3.1.
    preHandler: (request, reply) => app.requireScope(scopeOf(request.body)).call(app, request, reply),
  },
  async (request, reply) => {
    // Never happens: the guard rejects requests without a token.
    if (request.access === undefined) return reply.code(500).send()
    // Without sessions: each request has its own server and transport, so callers share nothing.
    const server = toolsFor(request.access)
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true })
    reply.hijack()
    reply.raw.once('close', () => void server.close())
    await server.connect(transport)
    await transport.handleRequest(request.raw, reply.raw, request.body)
  },
)
// This server sends no messages of its own, so there is no stream to open.
app.get(pathname, (_request, reply) => reply.code(405).header('allow', 'POST').send())

process.once('SIGTERM', () => void app.close())
await app.listen({ host: hostname, port: Number(port) })
process.stdout.write(`Timetable is ready at ${resource}\n`)
