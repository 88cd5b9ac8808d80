import Fastify from 'fastify'
import t from 'tap'
import type { AppDeps } from '../../src/feature/deps.ts'
import { createSeams } from '../../src/feature/seams.ts'
import { declared } from '../../src/features.ts'
import { endpoints } from '../../src/http/endpoints.ts'

const service = { issuer: 'https://id.example/t', prefix: '/t' } as AppDeps['service'] // The plugin reads nothing else.

async function application() {
  const app = Fastify()
  app.decorate('seams', createSeams(declared))
  await app.register(endpoints, { service })
  return app
}

t.test('an endpoint is advertised and found by its name and its path', async (t) => {
  const app = await application()
  app.post('/t/par', { config: { endpoint: 'pushed_authorization_request' } }, async () => 'pushed')
  app.get('/t/keys', { config: { endpoint: 'jwks' } }, async () => ({ keys: [] }))
  app.get('/t/other', async () => 'no endpoint')
  t.strictSame(app.seams.metadata.all(), {
    pushed_authorization_request_endpoint: 'https://id.example/t/par',
    jwks_uri: 'https://id.example/t/keys',
  })
  t.strictSame(
    [...app.endpoints],
    [
      ['pushed_authorization_request', '/par'],
      ['jwks', '/keys'],
    ],
  )
  t.equal(app.endpointAt('/t/par'), 'pushed_authorization_request')
  t.equal(app.endpointAt('/t/other'), undefined)
})

t.test(
  'two methods at one path are one endpoint, and two paths with one name are an error at start',
  async (t) => {
    const app = await application()
    app.get('/t/authorize', { config: { endpoint: 'authorization' } }, async () => 'page')
    app.post('/t/authorize', { config: { endpoint: 'authorization' } }, async () => 'page')
    t.equal(app.endpoints.size, 1)
    t.throws(() => app.get('/t/again', { config: { endpoint: 'authorization' } }, async () => 'page'), {
      message: 'the endpoint authorization is registered at /authorize and at /again',
    })
  },
)
