import { connect, type Socket } from 'node:net'
import t from 'tap'
import { startServer } from '../helpers/server.ts'

const server = await startServer(t)
const { server: http } = server.app
const listening = http.address()
if (listening === null || typeof listening === 'string') throw new Error('it listens on no port')
const { address: host, port } = listening

/** A longer time is not the server's timeout. */
const patienceMilliseconds = 8000

/**
 * What a connection received until it was closed, and after how many milliseconds. It keeps its own direction open: a
 * client that closes with the server would hide a server that waits for it.
 */
function talk(begin: (socket: Socket) => void): Promise<{ text: string; after: number }> {
  return new Promise((resolve) => {
    const started = performance.now()
    const socket = connect({ host, port, allowHalfOpen: true })
    const giveUp = setTimeout(() => socket.destroy(), patienceMilliseconds)
    socket.on('close', () => clearTimeout(giveUp))
    let text = ''
    socket.setEncoding('latin1')
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve({ text, after: performance.now() - started }))
    socket.on('connect', () => begin(socket))
  })
}

/** Sends one byte every 100 milliseconds until it is disconnected. */
function drip(socket: Socket, text: string): void {
  socket.write(text)
  const timer = setInterval(() => socket.write('a'), 100)
  socket.on('close', () => clearInterval(timer))
}

const overdue = /^HTTP\/1\.1 408 .*content-type: application\/json.*"error":"invalid_request".*too long/s

t.test('headers have 10 seconds, a request 30, and both are checked every second', async (t) => {
  t.equal(http.headersTimeout, 10_000)
  t.equal(http.requestTimeout, 30_000)
  // The same limits, shortened; only the interval of the check is fixed. A disconnect after less than 8 seconds
  // below is due to these limits, however slow the machine.
  http.headersTimeout = 300
  http.requestTimeout = 600
})

t.test('a client that sends its headers byte by byte is disconnected', async (t) => {
  const { text, after } = await talk((socket) =>
    drip(socket, 'GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: '),
  )
  t.match(text, overdue)
  t.ok(after < patienceMilliseconds, `after ${Math.round(after)} ms`)
})

t.test('a client that ignores the response and continues to send is disconnected', async (t) => {
  const requests = {
    400: 'this is not HTTP\r\n\r\n',
    408: 'GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: ',
    431: `GET /livez HTTP/1.1\r\nHost: localhost\r\nX: ${'a'.repeat(20_000)}`,
  }
  const talks = Object.entries(requests).map(async ([status, request]) => ({
    status,
    ...(await talk((socket) => drip(socket, request))),
  }))
  for (const { status, text, after } of await Promise.all(talks)) {
    t.match(text, `HTTP/1.1 ${status} `)
    t.equal(text.match(/HTTP\/1\.1/g)?.length, 1, 'one response')
    t.ok(after < patienceMilliseconds, `${status}: closed after ${Math.round(after)} ms`)
  }
})

t.test('a client that sends nothing is disconnected', async (t) => {
  const { after } = await talk((socket) => socket.on('end', () => socket.end()))
  t.ok(after < patienceMilliseconds, `after ${Math.round(after)} ms`)
})

t.test('a client that sends its body byte by byte is disconnected', async (t) => {
  const form = 'Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 5000'
  const request = `POST /api/oauth/token HTTP/1.1\r\nHost: localhost\r\n${form}\r\n\r\nclient_id=`
  const { text, after } = await talk((socket) => drip(socket, request))
  t.match(text, overdue)
  t.ok(after < patienceMilliseconds, `after ${Math.round(after)} ms`)
})

t.test('a fast client is served at the same time', async (t) => {
  const slow = talk((socket) => drip(socket, 'GET / HTTP/1.1\r\nX: '))
  t.equal((await fetch(`${server.issuer}/livez`)).status, 200)
  await slow
  t.equal((await fetch(`${server.issuer}/livez`)).status, 200)
})
