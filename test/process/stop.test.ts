/** SIGTERM while the server waits for others: they decide nothing about its end. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { stop } from '../../src/http/drain.ts'
import { MailFailed, sendEmail } from '../../src/outbound/mailer.ts'
import { pageOf } from '../helpers/authorization.ts'
import { newFolder } from '../helpers/command.ts'
import { obtainTokens } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { addLogoutClient } from '../helpers/logout-client.ts'
import { devAlice, startProcess } from '../helpers/process.ts'
import { startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'

/** A busy machine can be slow. */
const patient = { timeout: 120_000 }

/** A server of TCP, and the connections it has. */
async function startPeer(t: Test, serve: (socket: Socket) => void) {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    serve(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { server, sockets, host: `127.0.0.1:${(server.address() as AddressInfo).port}` } // it listens
}

/** A mail server that greets for ever, a character at a time. */
const greetForEver = (socket: Socket) => {
  socket.write('220-')
  const timer = setInterval(() => socket.write('x'), 50)
  socket.on('close', () => clearInterval(timer))
}

const conducts = {
  'responds with 101': (socket: Socket) =>
    void socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'),
  'never responds': () => {},
}

for (const [conduct, respond] of Object.entries(conducts))
  t.test(`SIGTERM ends a server whose logout receiver ${conduct} with exit code 0`, patient, async (t) => {
    const receiver = await startPeer(t, (socket) => socket.once('data', () => respond(socket)))
    const [data, port] = [newFolder(t), await freePort()]
    const client = await addLogoutClient(`sqlite:${data}/lychgate.db`, `http://${receiver.host}/out`)
    const running = await startProcess(t, data, { port, LYCHGATE_LOG_LEVEL: 'fatal' })
    const agent = new UserAgent(running.server.issuer)
    await obtainTokens(running.server, client, { agent, user: devAlice })
    const page = pageOf(await agent.open(`${running.server.issuer}/oauth/logout`))
    const connected = once(receiver.server, 'connection')
    await agent.submit(page, { decision: 'logout' })
    await connected
    t.match(await running.stop('SIGTERM'), { code: 0, stderr: '' })
  })

t.test('a mail server that greets for ever does not keep a server from closing', patient, async (t) => {
  const peer = await startPeer(t, greetForEver)
  const server = await startServer(t, {
    drainSeconds: 0,
    mail: { url: `smtp://${peer.host}`, from: 'accounts@example.org' },
  })
  const agent = new UserAgent(server.issuer)
  const page = pageOf(await agent.open(`${server.issuer}/forgot-password`))
  const connected = once(peer.server, 'connection')
  await agent.submit(page, { username: 'alice' })
  await connected
  await stop(server.app, server.deps.store).finished
  t.pass('it has closed')
})

t.test('an email that takes too long has failed, and its connection is closed', patient, async (t) => {
  const peer = await startPeer(t, greetForEver)
  const email = { to: 'a@b.example', subject: '', text: '', html: '' }
  const sent = sendEmail({ url: `smtp://${peer.host}`, from: 'c@d.example' }, email, 200)
  await t.rejects(sent, new MailFailed(`mail: ${peer.host} did not accept the email (not done in 0.2 s)`, {}))
  // It may be reset, which `once` would throw.
  for (const socket of peer.sockets) await new Promise((resolve) => socket.once('close', resolve))
  t.equal(peer.sockets.size, 0)
})

t.test('a store that does not close does not keep a server from ending', patient, async (t) => {
  const server = await startServer(t, { drainSeconds: 0 })
  await stop(server.app, { close: () => new Promise(() => {}) }).finished
  t.pass('it has ended')
})
