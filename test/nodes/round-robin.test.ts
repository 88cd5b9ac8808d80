/** The proxy in front of the nodes in other tests: if it used only one node, they would prove nothing. */
import { createServer } from 'node:http'
import { buffer } from 'node:stream/consumers'
import t from 'tap'
import { freePort } from '../helpers/free-port.ts'
import { startRoundRobin } from '../helpers/round-robin.ts'

t.test('requests go to the nodes in turn, and requests and responses arrive unchanged', async (t) => {
  const nodes = await Promise.all(['a', 'b', 'c'].map((name) => startEcho(name)))
  const port = await freePort()
  await startRoundRobin(t, port, nodes)
  const ask = async (n: number) => {
    const response = await fetch(`http://localhost:${port}/path?n=${n}`, {
      method: 'POST',
      body: 'x'.repeat(n),
    })
    return { text: await response.text(), status: response.status, cookies: response.headers.getSetCookie() }
  }
  const inTurn = [await ask(1), await ask(2), await ask(3), await ask(4)]
  t.strictSame(
    inTurn.map(({ text }) => text),
    ['a', 'b', 'c', 'a'].map(
      (name, index) => `${name} POST /path?n=${index + 1} ${index + 1} localhost:${port}`,
    ),
  )
  for (const { status, cookies } of inTurn)
    t.strictSame({ status, cookies }, { status: 201, cookies: ['a=1', 'b=2'] })
  const atOnce = await Promise.all([5, 6, 7, 8, 9, 10].map(ask))
  const names = atOnce.map(({ text }) => text[0])
  t.strictSame(names.sort(), ['a', 'a', 'b', 'b', 'c', 'c'])

  async function startEcho(name: string): Promise<number> {
    const own = await freePort()
    const echo = createServer(async (incoming, outgoing) => {
      const { length } = await buffer(incoming)
      outgoing.writeHead(201, { 'set-cookie': ['a=1', 'b=2'] })
      outgoing.end([name, incoming.method, incoming.url, length, incoming.headers.host].join(' '))
    })
    await new Promise<void>((resolve) => echo.listen(own, 'localhost', resolve))
    t.teardown(() => {
      echo.closeAllConnections()
      echo.close()
    })
    return own
  }
})
