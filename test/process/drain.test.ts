import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import { isOnlyCommandOfNpm } from '../../src/cli/server.ts'
import { stop } from '../../src/http/drain.ts'
import { newFolder, spawnFile } from '../helpers/command.ts'
import { startProcess } from '../helpers/process.ts'
import { startServer } from '../helpers/server.ts'

/** A kept-alive connection, and the bytes received on it. */
class Connection {
  received = ''
  isClosed = false
  readonly #socket: Socket

  constructor(issuer: string) {
    const { hostname, port } = new URL(issuer)
    this.#socket = connect({ host: hostname, port: Number(port) })
    this.#socket.setEncoding('latin1')
    this.#socket.on('data', (chunk) => {
      this.received += chunk
    })
    this.#socket.on('close', () => {
      this.isClosed = true
    })
    this.#socket.on('error', () => {
      this.isClosed = true
    })
  }

  send(text: string): void {
    this.#socket.write(text)
  }

  async until(condition: () => boolean): Promise<boolean> {
    for (let waited = 0; waited < 3000; waited += 1) {
      if (condition()) return true
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
    return false
  }

  /** The status of the last response. */
  get status(): string | undefined {
    return this.received
      .match(/HTTP\/1\.1 (\d+)/g)
      ?.at(-1)
      ?.slice(-3)
  }
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`
const tokenRequest = 'grant_type=refresh_token&refresh_token=x&client_id=x'
const head = `POST /api/oauth/token HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${tokenRequest.length}\r\n\r\n`

t.test(
  'after SIGTERM every request on the wire gets a response, kept-alive connections are asked to close, and the process exits with 0',
  async (t) => {
    const running = await startProcess(t, newFolder(t), {
      LYCHGATE_DRAIN_SECONDS: '5',
      LYCHGATE_LOG_LEVEL: 'fatal',
    })
    const { issuer } = running.server
    const [idle, half, late] = [new Connection(issuer), new Connection(issuer), new Connection(issuer)]
    for (const connection of [idle, half, late]) {
      connection.send(get('/livez'))
      t.ok(await connection.until(() => connection.status === '200'))
      t.notMatch(connection.received, /connection: close/i)
      connection.received = ''
    }
    half.send(head + tokenRequest.slice(0, 20))
    // The server reads what was sent before this request first.
    await (await fetch(`${issuer}/livez`)).text()

    const end = running.stop('SIGTERM')
    const isStopping = async () => (await fetch(`${issuer}/readyz`)).status === 503
    while (!(await isStopping())) await nextTurn()
    t.notOk(idle.isClosed, 'an idle connection is left alone while others may still be using theirs')
    half.send(tokenRequest.slice(20))
    t.ok(await half.until(() => half.status === '400'), 'a request begun before is answered')
    t.match(half.received, /invalid_client/)
    t.match(half.received, /connection: close/i)
    late.send(get('/readyz'))
    t.ok(await late.until(() => late.status === '503'), 'not ready for more')
    t.match(late.received, /retry-after: 1/i)
    t.match(late.received, /connection: close/i)
    const fresh = await fetch(`${issuer}/.well-known/openid-configuration`)
    t.equal(fresh.status, 200, 'a new request is answered while draining')
    t.equal(fresh.headers.get('connection'), 'close')

    const { code, stderr } = await end
    t.strictSame({ code, stderr }, { code: 0, stderr: '' })
    t.ok(await idle.until(() => idle.isClosed))
    await t.rejects(fetch(`${issuer}/livez`), 'the listener is closed')
  },
)

t.test('a request in progress when draining ends gets a response before the process exits', async (t) => {
  const running = await startProcess(t, newFolder(t), { LYCHGATE_LOG_LEVEL: 'fatal' })
  const connection = new Connection(running.server.issuer)
  connection.send(head + tokenRequest.slice(0, 20))
  await (await fetch(`${running.server.issuer}/livez`)).text()
  const end = running.stop('SIGTERM')
  // Draining takes no time here: the listener is closed at once.
  const isListening = () =>
    fetch(`${running.server.issuer}/livez`).then(
      () => true,
      () => false,
    )
  while (await isListening()) await nextTurn()
  t.equal(running.child.exitCode, null)
  connection.send(tokenRequest.slice(20))
  t.ok(await connection.until(() => connection.status === '400'))
  t.match(await end, { code: 0 })
})

t.test('under load, SIGTERM loses no response', async (t) => {
  const running = await startProcess(t, newFolder(t), {
    LYCHGATE_DRAIN_SECONDS: '5',
    LYCHGATE_LOG_LEVEL: 'fatal',
  })
  const { issuer } = running.server
  let [isOver, responded] = [false, 0]
  const worker = async () => {
    while (!isOver) {
      const response = await fetch(`${issuer}/api/courses`)
      t.equal(response.status, 200)
      await response.text()
      responded += 1
    }
  }
  const load = Promise.all([worker(), worker(), worker(), worker()])
  const until = async (count: number) => {
    while (responded < count) await nextTurn()
  }
  await until(20)
  const end = running.stop('SIGTERM')
  await until(responded + 40)
  isOver = true
  await t.resolves(load)
  t.match(await end, { code: 0 })
})

t.test('a server started by `npm start` exits with npm, and its port is free', async (t) => {
  const { PATH = '', HOME = '' } = process.env
  const npmStart = ([, ...args]: readonly string[], environment: Readonly<Record<string, string>> = {}) =>
    spawnFile('npm', ['start', '--', ...args], { PATH, HOME, ...environment })
  const running = await startProcess(t, newFolder(t), {}, npmStart)
  await running.stop('SIGTERM')
  // npm's output is closed by the last process that has it, which is the server.
  await t.rejects(fetch(`${running.server.issuer}/livez`))
})

t.test('only an npm script that does nothing but start Lychgate is watched', async (t) => {
  const isWatched = (npm_lifecycle_script?: string) =>
    isOnlyCommandOfNpm({
      npm_lifecycle_event: 'start',
      ...(npm_lifecycle_script && { npm_lifecycle_script }),
    })
  const own = ['node src/lychgate.js dev', 'lychgate serve --data x', './node_modules/.bin/lychgate dev']
  for (const script of own) t.ok(isWatched(script), script)
  t.notOk(isOnlyCommandOfNpm({ npm_lifecycle_script: own[0] }), 'not by npm')
  const others = [
    '',
    'node scripts/docs.ts',
    'lychgate dev & ',
    'nohup lychgate dev &',
    'lychgate dev; true',
    'node test.js lychgate',
  ]
  for (const script of others) t.notOk(isWatched(script), script)
})

t.test('a stopping server logs the beginning and the result', async (t) => {
  const server = await startServer(t, { drainSeconds: 0 })
  const [idle, half] = [new Connection(server.issuer), new Connection(server.issuer)]
  for (const connection of [idle, half]) {
    connection.send(get('/livez'))
    t.ok(await connection.until(() => connection.status === '200'))
  }
  half.received = ''
  half.send(head + tokenRequest.slice(0, 20))
  const begun = once(server.app.server, 'request')
  await begun
  const { finished } = stop(server.app, server.deps.store)
  t.ok(await half.until(() => server.app.isDraining()))
  half.send(tokenRequest.slice(20))
  await finished
  const lines = server.log.map((line) => JSON.parse(line) as Record<string, unknown>)
  t.match(
    lines.find(({ msg }) => msg === 'stopping: draining connections'),
    { level: 30, connections: 2 },
  )
  t.match(lines.at(-1), { level: 30, msg: 'stopped', requests: 1, connectionsCut: 1, ms: Number })
  t.ok(await half.until(() => half.status === '400'))
})
