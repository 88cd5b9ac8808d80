/** `lychgate serve` as several processes: to clients and operators they are one server. */
import { createServer } from 'node:net'
import t from 'tap'
import { pauseAfter } from '../../src/cli/workers.ts'
import { run, start } from '../helpers/command.ts'
import { callApi, obtainTokens, postAs, register } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { devAlice } from '../helpers/process.ts'
import { childrenOf, getAlone, startWorkers } from '../helpers/workers.ts'

const isRunning = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
const until = async (isSo: () => boolean | Promise<boolean>) => {
  const patience = AbortSignal.timeout(120_000)
  while (!(await isSo())) {
    patience.throwIfAborted()
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
/** New connections, as many as it takes so that each worker accepts some. */
const everyWorker = [1, 2, 3, 4, 5, 6, 7, 8]

t.test('two workers are one server', async (t) => {
  const port = await freePort()
  const { server, child, environment, ready, logged, output, end } = await startWorkers(t, {
    LYCHGATE_MANAGEMENT_PORT: String(port),
    LYCHGATE_KEYS_RELOAD_SECONDS: '1',
    LYCHGATE_DRAIN_SECONDS: '0',
    LYCHGATE_LOG_LEVEL: 'debug',
  })
  const sample = async (form: RegExp) => {
    const lines = (await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()).split('\n')
    return lines
      .filter((line) => form.test(line))
      .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
  }
  const keyRequests = () => sample(/^lychgate_http_requests_total\{method="GET",route="\/api\/oauth\/jwks"/)
  const client = await register(server)

  await t.test('what one revokes, no other accepts at the next request', async (t) => {
    for (let round = 0; round < 5; round += 1) {
      const { access_token: token } = await obtainTokens(server, client, { user: devAlice })
      const use = () => getAlone(`${server.issuer}/api/oauth/userinfo`, { authorization: `Bearer ${token}` })
      for (const _ of everyWorker) t.equal(await use(), 200)
      t.equal((await postAs(server, client, '/api/oauth/revoke', { token })).status, 200)
      const after = await Promise.all(everyWorker.map(use))
      t.strictSame(new Set(after), new Set([401]), `round ${round}`)
    }
    const pids = new Set(
      output()
        .split('\n')
        .filter((line) => line.includes('/api/oauth/userinfo'))
        .map((line) => JSON.parse(line).pid),
    )
    t.strictSame(pids, new Set(ready()), 'each of them served some')
  })

  await t.test('a key that an operator adds is published by all', async (t) => {
    const { code } = await run(['keys', 'rotate', '--now'], { environment })
    t.equal(code, 0)
    const published = async () => {
      const { keys } = (await (
        await fetch(`${server.issuer}/api/oauth/jwks`, { headers: { connection: 'close' } })
      ).json()) as { keys: readonly unknown[] }
      return keys.length
    }
    await logged('the keys have changed', 2)
    const counts = await Promise.all(everyWorker.map(published))
    t.equal(new Set(counts).size, 1, String(counts))
  })

  await t.test('their metrics are added up, also those of one that has ended', async (t) => {
    const before = await keyRequests()
    for (const _ of everyWorker) await getAlone(`${server.issuer}/api/oauth/jwks`)
    await until(async () => (await keyRequests()) === before + everyWorker.length)
    t.equal(
      await sample(/^lychgate_keys\{algorithm="ES256",state="active"/),
      1,
      'what all read from the store is not',
    )
    const [killed = 0] = ready()
    process.kill(killed, 'SIGKILL')
    await logged('ready', 3)
    await until(async () => (await keyRequests()) === before + everyWorker.length)
    t.match(output(), `"worker":${killed},"code":null,"signal":"SIGKILL"`)
  })

  await t.test('SIGHUP replaces one after the other, and the server is always ready', async (t) => {
    const [requests, old] = [await keyRequests(), childrenOf(child)]
    child.kill('SIGHUP')
    const statuses = new Set<number>()
    const polled = until(async () => {
      statuses.add(await getAlone(`${server.issuer}/readyz`))
      return output().includes('restarted every worker')
    })
    await logged('restarted every worker')
    await polled
    t.strictSame(statuses, new Set([200]))
    t.strictSame(old.filter(isRunning), [])
    t.equal(childrenOf(child).length, 2)
    await until(async () => (await keyRequests()) === requests)
    t.equal((await callApi(server, '/api/oauth/userinfo', 'none')).status, 401)
  })

  await t.test('connections do not pass through the process that starts them', async (t) => {
    child.kill('SIGSTOP')
    t.teardown(() => child.kill('SIGCONT'))
    const statuses = await Promise.all(everyWorker.map(() => getAlone(`${server.issuer}/livez`)))
    t.strictSame(new Set(statuses), new Set([200]))
  })

  await t.test('a restart ends a worker that hangs', async (t) => {
    const [hanging = 0] = childrenOf(child)
    process.kill(hanging, 'SIGSTOP')
    child.kill('SIGHUP')
    await logged('restarted every worker', 2)
    t.notOk(isRunning(hanging))
    t.equal(childrenOf(child).length, 2)
  })

  await t.test('SIGTERM stops all of them, and exits with 0', async (t) => {
    const workers = childrenOf(child)
    child.kill('SIGTERM')
    const { code, stderr } = await end
    t.equal(code, 0, stderr)
    t.strictSame(workers.filter(isRunning), [])
  })
})

t.test('workers end with their primary process', async (t) => {
  const { child, end } = await startWorkers(t)
  const workers = childrenOf(child)
  t.equal(workers.length, 2)
  child.kill('SIGKILL')
  await end
  await until(() => !workers.some(isRunning))
})

t.test('workers that end again and again end the server', async (t) => {
  const { child, end, logged } = await startWorkers(t)
  const [worker = 0] = childrenOf(child)
  process.kill(worker, 'SIGKILL')
  await logged('a worker has ended; another one is started')
  const killed = new Set([worker])
  const kill = setInterval(() => {
    if (child.exitCode !== null) return
    for (const pid of childrenOf(child)) {
      if (isRunning(pid)) process.kill(pid, 'SIGKILL')
      killed.add(pid)
    }
    // A server that goes on for ever is the failure of this test, and not its timeout.
    if (killed.size > 12) child.kill('SIGKILL')
  }, 20)
  const { code, stderr } = await end
  clearInterval(kill)
  t.equal(code, 1)
  t.match(stderr, /^lychgate: \d+ workers ended within a minute; the server stops$/m)
})

t.test('pauses grow, and end after a few', async (t) => {
  t.strictSame(
    [1, 2, 3, 6, 7].map((ended) => pauseAfter(ended, 2)),
    [50, 100, 200, 1600, undefined],
  )
  t.equal(pauseAfter(20, 16), 5000)
})

t.test('what one process rejects at its start, several reject', async (t) => {
  const taken = createServer()
  const port = await new Promise<number>(
    (resolve) => taken.listen(0, '127.0.0.1', () => resolve((taken.address() as { port: number }).port)), // of a listening server
  )
  t.teardown(() => taken.close())
  const folder = t.testdir()
  const environment = {
    LYCHGATE_DATA: folder,
    LYCHGATE_ISSUER: `http://localhost:${port}`,
    LYCHGATE_SECRET: 'a secret of a server with two workers',
  }
  const serve = (...args: readonly string[]) => run(['serve', ...args], { environment })
  const inUse = await serve('--workers', '2', '--port', String(port))
  t.equal(inUse.code, 1)
  t.match(inUse.stderr, `lychgate: port ${port} on `)
  const wrong = await serve('--workers', 'many')
  t.match(wrong, {
    code: 78,
    stderr: 'workers (--workers): must be an integer from 1 to 128 or auto, not "many"',
  })
  const memory = start(['serve', '--workers', '2'], { ...environment, LYCHGATE_STORE: 'sqlite::memory:' })
  const said = new Promise((resolve) => memory.stderr.on('data', (text) => resolve(String(text))))
  t.match(await said, 'lychgate: workers: must be 1 for a store in memory')
})
