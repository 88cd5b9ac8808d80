import { createServer } from 'node:net'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { drain } from '../../src/http/drain.ts'
import { findFreePort, listen } from '../../src/http/listen.ts'

/** An application that responds after a delay, and its address as configured. */
async function slow(t: Test, issuerHost = 'localhost') {
  const app = Fastify()
  await app.register(drain, { seconds: 0 })
  let finish: (() => void) | undefined
  const asked = new Promise<void>((resolve) => {
    app.get('/slow', async () => {
      resolve()
      await new Promise<void>((done) => {
        finish = done
      })
      return 'done'
    })
  })
  app.get('/', async () => 'here')
  t.teardown(() => app.close())
  const port = await findFreePort()
  const config = { host: '127.0.0.1', port, issuer: `http://${issuerHost}:${port}` }
  return { app, config, port, asked, finish: () => finish?.() }
}

const response = async (url: string) => (await fetch(url)).text()

t.test('the issuer localhost is reached over IPv4 and IPv6', async (t) => {
  const { app, config, port } = await slow(t)
  await listen(app, config)
  t.equal(await response(`http://127.0.0.1:${port}/`), 'here')
  t.equal(await response(`http://[::1]:${port}/`), 'here')
})

t.test('the host localhost is one server at both addresses', async (t) => {
  const { app, config, port } = await slow(t, '127.0.0.1')
  await listen(app, { ...config, host: 'localhost' })
  const served: string[] = []
  app.server.on('request', ({ socket }) => served.push(String(socket.localAddress)))
  for (const address of ['127.0.0.1', '[::1]']) t.equal(await response(`http://${address}:${port}/`), 'here')
  t.strictSame(served, ['127.0.0.1', '::1'], 'what hangs on the server sees the requests of both')
})

t.test('another issuer is served only at the configured address', async (t) => {
  const { app, config, port } = await slow(t, '127.0.0.1')
  await listen(app, config)
  t.equal(await response(`http://127.0.0.1:${port}/`), 'here')
  await t.rejects(response(`http://[::1]:${port}/`))
})

t.test('closing waits for the responses of both listeners, and for no idle connection', async (t) => {
  const { app, config, port, asked, finish } = await slow(t)
  await listen(app, config)
  t.equal(await response(`http://[::1]:${port}/`), 'here')
  const waiting = response(`http://[::1]:${port}/slow`)
  await asked
  await app.drain()
  let closed = false
  const end = app.close().then(() => {
    closed = true
  })
  const isReached = () =>
    response(`http://[::1]:${port}/`).then(
      () => true,
      () => false,
    )
  while (await isReached());
  t.equal(closed, false, 'nobody new gets in, and the response is still awaited')
  finish()
  t.equal(await waiting, 'done')
  await end
  await t.rejects(response(`http://[::1]:${port}/`))
})

t.test('a port that is in use in one address family is rejected', async (t) => {
  const { app, config, port } = await slow(t)
  const other = createServer()
  await new Promise<void>((resolve) => other.listen({ host: '::1', port }, resolve))
  t.teardown(() => other.close())
  await t.rejects(listen(app, config), { code: 'EADDRINUSE' })
})
