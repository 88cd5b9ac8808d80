/** Two processes on one PostgreSQL: both send logout tokens, and both are killed while one client is paused. */
import { randomBytes } from 'node:crypto'
import t from 'tap'
import { put } from '../../src/domain/decision.ts'
import { finishedDeliveryKind } from '../../src/domain/logout-delivery.ts'
import { logoutPauseKind } from '../../src/specs/oidc-backchannel-logout/pause.ts'
import { openStore } from '../../src/storage/open.ts'
import { ask, pageOf, sentAway, signedIn } from '../helpers/authorization.ts'
import { newFolder, run } from '../helpers/command.ts'
import { claimsOf, exchange, type TestClient, type Tokens } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { startLogoutReceiver, verifyLogoutToken } from '../helpers/logout-receiver.ts'
import { devAlice, type ServerProcess, startProcess } from '../helpers/process.ts'
import { startPostgres } from '../storage/postgres-server.ts'

const callback = 'https://portal.example/callback'

async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20))
}

t.test('a client that does not respond stays paused when every process was killed', async (t) => {
  const url = await (await startPostgres(t)).createDatabase()
  const [data, ports] = [newFolder(t), [await freePort(), await freePort()]]
  const environment = {
    LYCHGATE_STORE: url,
    LYCHGATE_SECRET: randomBytes(32).toString('hex'),
    LYCHGATE_ISSUER: `http://localhost:${ports[0]}`,
    LYCHGATE_LOG_LEVEL: 'fatal',
  }
  const startBoth = async () => {
    const started: ServerProcess[] = []
    for (const port of ports) started.push(await startProcess(t, data, { port, ...environment }))
    return started
  }
  const add = async () => {
    const receiver = await startLogoutReceiver(t)
    const flags = ['--redirect-uri', callback, '--consent', 'skip', '--backchannel-logout-uri', receiver.uri]
    const { code, stdout, stderr } = await run(
      ['client', 'add', '--data', data, '--name', 'Portal', '--json', ...flags],
      { environment },
    )
    if (code !== 0) throw new Error(stderr)
    const { client_id: id, client_secret: secret } = JSON.parse(stdout) as Record<string, string>
    const client: TestClient = {
      id: id ?? '',
      method: 'client_secret_basic',
      redirectUri: callback,
      secret: secret ?? '',
    }
    return { client, receiver }
  }

  const both = await startBoth()
  const [{ server }] = both as [ServerProcess, ServerProcess] // one for each port
  const [silent, other] = [await add(), await add()]
  const browsers = []
  for (let count = 0; count < 4; count += 1) {
    const agent = await signedIn(server, silent.client, devAlice)
    let sid = ''
    for (const { client } of [other, silent]) {
      const { code = '' } = sentAway(await ask(server, client, {}, agent))
      const tokens = (await (await exchange(server, client, code)).json()) as Tokens
      sid = String(claimsOf(tokens.id_token)['sid'])
    }
    browsers.push({ agent, sid })
  }
  const [late, ...early] = browsers
  if (late === undefined) throw new Error('there are browsers')
  const signOut = async ({ agent }: typeof late) => {
    await agent.submit(pageOf(await agent.open(`${server.issuer}/oauth/logout`)), { decision: 'logout' })
    await verifyLogoutToken(server, other.client, await other.receiver.next())
  }

  silent.receiver.conduct = 'closed'
  for (const browser of early) await signOut(browser)
  const store = await openStore(url)
  t.teardown(() => store.close())
  const pause = () => store.find(logoutPauseKind, silent.client.id)
  await until(async () => ((await pause())?.failures ?? 0) >= 3)
  for (const { stop } of both) t.equal((await stop('SIGKILL')).code, null)
  const found = await pause()
  if (found === undefined) throw new Error('there is no pause')
  // The machine may stand still for longer than the pause lasts.
  await store.write(put(logoutPauseKind, { ...found, until: found.until + 500 }))
  const { length: tries } = silent.receiver.requests

  const again = await startBoth()
  await signOut(late)
  t.equal(silent.receiver.requests.length, tries, 'others get their token, and the client is left alone')
  silent.receiver.conduct = 200
  for (const port of ports) {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify({ advance: 600 })
    const moved = await fetch(`http://localhost:${port}/_dev/clock`, { method: 'POST', headers, body })
    t.equal(moved.status, 200)
  }
  for (const { sid } of browsers) {
    await until(async () => (await store.find(finishedDeliveryKind, sid)) !== undefined)
    t.match(await store.find(finishedDeliveryKind, sid), { outcome: 'delivered' })
  }
  const sent = silent.receiver.requests
    .slice(tries)
    .map(({ form }) => claimsOf(form.get('logout_token') ?? ''))
  t.strictSame(sent.map(({ sid }) => sid).sort(), browsers.map(({ sid }) => sid).sort(), 'each once')
  t.equal(await pause(), undefined)
  for (const { stop } of again) t.equal((await stop('SIGTERM')).code, 0)
})
