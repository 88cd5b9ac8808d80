import { createServer, request as requestHttp } from 'node:http'

interface Test {
  teardown(end: () => unknown): unknown
}

/**
 * A plain proxy: every request goes to the next node, whoever sent the one before and on whatever connection. It
 * passes on what it gets and names nobody. A node taken out of the list is asked nothing more.
 */
export async function startRoundRobin(t: Test, port: number, nodes: readonly number[]): Promise<void> {
  let turn = 0
  const server = createServer((incoming, outgoing) => {
    const node = nodes[turn % nodes.length]
    turn += 1
    const { method, url: path } = incoming
    const headers = passed(incoming.rawHeaders)
    // A connection for each: one that is kept could be closed by its node just when it is used again.
    const onward = requestHttp(
      { host: 'localhost', port: node, agent: false, method, path, headers },
      (answer) => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.statusMessage, passed(answer.rawHeaders))
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
    server.closeAllConnections()
    server.close()
  })
}

/** Names and values in turn, without those that are about one connection, RFC 9110 §7.6.1. */
function passed(raw: readonly string[]): string[] {
  return raw.filter((_each, index) => !/^(connection|keep-alive)$/i.test(raw[index - (index % 2)] ?? ''))
}
