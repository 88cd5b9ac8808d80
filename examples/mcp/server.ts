/**
 * An MCP server that is a protected resource of Lychgate: its guard sends clients without a token to the
 * authorization server, and the tools learn who calls. README.md says how to start it.
 */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import Fastify from 'fastify'
import { type Access, guard, protectedResourceMetadata, signedBy } from 'lychgate/guard'

const {
  ISSUER: issuer = 'http://localhost:9400',
  // The identifier of this server, path and all; ../lychgate.yaml has the same one.
  RESOURCE: resource = 'http://127.0.0.1:9502/mcp',
} = process.env

const discovery = await fetch(`${issuer}/.well-known/oauth-authorization-server`).catch(() => undefined)
if (!discovery?.ok) {
  process.stderr.write(`no authorization server answers at ${issuer}: start it first\n`)
  process.exit(1)
}
// `as`: it is our own authorization server, and advertises where its keys are.
const { jwks_uri: jwksUri } = (await discovery.json()) as { readonly jwks_uri: string }

const lessons = ['Monday: reading', 'Tuesday: writing']

/** The tools, as this caller may use them. */
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

/** What a body needs; it may be a batch, of which one message is enough. */
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
// MCP Authorization: a token has to be made for this server, RFC 8707 §2, and is never passed on. The guard checks `aud`.
await app.register(guard, { resource, verifyToken: signedBy({ issuer, jwksUri }), anonymous: 'challenge' })

const { hostname, port, pathname } = new URL(resource)

app.post<{ Body: Message | readonly Message[] | null }>(
  pathname,
  {
    // One tool needs more than the rest: its caller gets 403 and the scope to come back with, RFC 6750 §3.1.
    preHandler: (request, reply) => app.requireScope(scopeOf(request.body)).call(app, request, reply),
  },
  async (request, reply) => {
    // The guard let nobody through without a token.
    if (request.access === undefined) return reply.code(500).send()
    // Without sessions: a server and a transport for each request, so that nothing of one caller reaches another.
    const server = toolsFor(request.access)
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true })
    reply.hijack()
    reply.raw.once('close', () => void server.close())
    await server.connect(transport)
    await transport.handleRequest(request.raw, reply.raw, request.body)
  },
)
// This server sends nothing by itself, so there is no stream to listen to.
app.get(pathname, (_request, reply) => reply.code(405).header('allow', 'POST').send())

process.once('SIGTERM', () => void app.close())
await app.listen({ host: hostname, port: Number(port) })
process.stdout.write(`Timetable is ready at ${resource}\n`)
