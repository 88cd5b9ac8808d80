import {
  Agent,
  createServer,
  type IncomingMessage,
  request as requestHttp,
  type ServerResponse,
} from 'node:http'

interface Test {
  teardown(end: () => unknown): unknown
}

/**
 * A plain proxy: every request goes to the next node, whoever sent the one before and on whatever connection. It
 * passes on what it gets, byte for byte, and names nobody. A node taken out of the list is asked nothing more.
 */
export async function startRoundRobin(t: Test, port: number, nodes: readonly number[]): Promise<void> {
  const agent = new Agent({ keepAlive: true })
  let turn = 0
  const server = createServer((incoming: IncomingMessage, outgoing: ServerResponse) => {
    const node = nodes[turn % nodes.length]
    turn += 1
    const { method, url: path, rawHeaders } = incoming
    const onward = requestHttp(
      { host: 'localhost', port: node, agent, method, path, headers: rawHeaders, setHost: false },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.statusMessage, answer.rawHeaders)
        answer.pipe(outgoing)
      },
    )
    // A node that is gone: the client sees what it would see of a server that is gone.
    onward.on('error', () => outgoing.destroy())
    outgoing.on('close', () => onward.destroy())
    incoming.pipe(onward)
  })
  await new Promise<void>((resolve) => server.listen(port, 'localhost', resolve))
  t.teardown(() => {
    agent.destroy()
    server.closeAllConnections()
    server.close()
  })
}
