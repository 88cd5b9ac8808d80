/** Connections of the one fetcher, before anything is sent. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import t from 'tap'
import { connect } from '../../src/outbound/exchange.ts'

const sockets = new Set<Socket>()
const accepted: (() => void)[] = []
const silent = createServer((socket) => {
  sockets.add(socket.on('error', () => {}))
  for (const listener of accepted) listener()
})
silent.listen(0, '127.0.0.1')
await once(silent, 'listening')
t.teardown(() => {
  for (const socket of sockets) socket.destroy()
  silent.close()
})
// `as`: of a server that listens on a port.
const host = `127.0.0.1:${(silent.address() as AddressInfo).port}`

t.test('an address that is not allowed is not connected to', async (t) => {
  const { signal } = new AbortController()
  const connecting = connect(new URL(`http://${host}`), { rule: () => false }, signal)
  await t.rejects(connecting, { name: 'FetchFailed', fault: 'address' })
  t.equal(sockets.size, 0)
})

t.test('a handshake that is never complete ends with the signal', async (t) => {
  const ending = new AbortController()
  accepted.push(() => ending.abort())
  await t.rejects(connect(new URL(`https://${host}`), { rule: () => true }, ending.signal), {
    name: 'AbortError',
  })
})
