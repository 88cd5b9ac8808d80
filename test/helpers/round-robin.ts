import { createServer, request as requestHttp } from 'node:http'

interface Test {
  teardown(end: () => unknown): unknown
}

/**
 * A plain proxy: every request goes to the next node, whatever its client and connection. It forwards requests
 * unchanged. A node that is removed from the list gets no more requests.
 */
export async function startRoundRobin(t: Test, port: number, nodes: readonly number[]): Promise<void> {
  let turn = 0
  const server = createServer((incoming, outgoing) => {
    const node = nodes[turn % nodes.length]
    turn += 1
    const { method, url: path } = incoming
    const headers = passed(incoming.rawHeaders)
    // One connection per request: a node could close a kept-alive one just when it is reused.
    const onward = requestHttp(
      { host: 'localhost', port: node, agent: false, method, path, headers },
      (response) => {
        outgoing.writeHead(response.statusCode ?? 502, response.statusMessage, passed(response.rawHeaders))
        response.pipe(outgoing)
      },
    )
    // If a node is down, the client sees what it would see of a server that is down.
    onward.on('error', () => outgoing.destroy())
    outgoing.on('close', () => onward.destroy())
    incoming.pipe(onward)
  })
  await new Promise<void>((resolve) => server.listen(port, 'localhost', resolve))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
}

/** Names and values in turn, without those that are about one connection, RFC 9110 §7.6.1. */
function passed(raw: readonly string[]): string[] {
  return raw.filter((_each, index) => !/^(connection|keep-alive)$/i.test(raw[index - (index % 2)] ?? ''))
}
