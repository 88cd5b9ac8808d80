// A bare Fastify with the request shapes of the workloads: what no server on it can go below.
import formbody from '@fastify/formbody'
import fastify from 'fastify'

const [, , port, documentBytes = '3000'] = process.argv
const app = fastify()
await app.register(formbody)
const answer = {
  schema: {
    response: {
      200: {
        type: 'object',
        properties: {
          access_token: { type: 'string' },
          token_type: { type: 'string' },
          expires_in: { type: 'integer' },
          refresh_token: { type: 'string' },
          scope: { type: 'string' },
        },
      },
    },
  },
}
const tokens = {
  access_token: `at_${'a'.repeat(80)}`,
  token_type: 'Bearer',
  expires_in: 3600,
  refresh_token: `rt_${'r'.repeat(80)}`,
  scope: 'openid courses:read',
}
const document = JSON.stringify({ access_token: 'd'.repeat(Number(documentBytes) - 19) })
app.get('/readyz', async () => 'ready')
app.get('/get', answer, async () => tokens)
app.get('/document', (_request, reply) => reply.type('application/json; charset=utf-8').send(document))
app.post('/post', answer, async ({ body }) => ({ ...tokens, scope: body.scope ?? tokens.scope }))
await app.listen({ host: 'localhost', port: Number(port) })
