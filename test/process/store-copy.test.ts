import { existsSync } from 'node:fs'
import Database from 'better-sqlite3'
import t, { type Test } from 'tap'
import { Authenticator, askedOf } from '../helpers/authenticator.ts'
import { pageOf } from '../helpers/authorization.ts'
import { ended, newFolder, printed, run, start } from '../helpers/command.ts'
import { callApi, obtainTokens, refresh, register, type TestClient, type Tokens } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import type { TestServer } from '../helpers/server.ts'
import { type Page, UserAgent } from '../helpers/user-agent.ts'
import { startPostgres } from '../storage/postgres-server.ts'

const postgres = await startPostgres(t)
const user = { username: 'ada', password: 'a password nobody else has' }
const secret = 'a secret of at least thirty-two characters'

async function site(t: Test) {
  const data = newFolder(t)
  const port = await freePort()
  const issuer = `http://localhost:${port}`
  const server = { issuer, origin: issuer } as TestServer
  const environment = (store: string) => ({
    LYCHGATE_SECRET: secret,
    LYCHGATE_STORE: store,
    LYCHGATE_DATA: data,
    LYCHGATE_ISSUER: issuer,
    LYCHGATE_DRAIN_SECONDS: '0',
  })
  return {
    data,
    server,
    environment,
    command: (store: string, ...args: readonly string[]) =>
      run(args, { environment: environment(store), input: `${user.password}\n` }),
    serve: async (store: string) => {
      const child = start(['serve', '--port', `${port}`], environment(store))
      t.teardown(() => child.kill('SIGKILL'))
      const end = ended(child)
      while ((await fetch(`${issuer}/readyz`).catch(() => undefined))?.status !== 200) {
        if (child.exitCode !== null) throw new Error((await end).stderr)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      return async () => {
        child.kill('SIGTERM')
        return (await end).code
      }
    },
  }
}

const formOf = (page: Page) =>
  page.forms.find(({ fields }) => fields.some(({ name }) => name === 'credential'))

/** Adds the passkey of this device. */
async function addPasskey(server: TestServer, agent: UserAgent, device: Authenticator) {
  let page = pageOf(await agent.open(`${server.issuer}/account/passkeys`))
  if (formOf(page) === undefined) page = pageOf(await agent.submit(page, user))
  const credential = JSON.stringify(device.create(askedOf(page)))
  return pageOf(await agent.submit(page, { credential }, formOf(page)))
}

/** Signs in a new browser with it. Returns where that ends. */
async function signInByPasskey(server: TestServer, device: Authenticator) {
  const agent = new UserAgent(server.issuer)
  const page = pageOf(await agent.open(`${server.issuer}/account/apps`))
  const credential = JSON.stringify(device.get(askedOf(page)))
  return new URL(pageOf(await agent.submit(page, { credential }, formOf(page))).url).pathname
}

/** What a user and a client have of a server. */
interface Held {
  readonly client: TestClient
  readonly agent: UserAgent
  readonly device: Authenticator
  tokens: Tokens
}

/** Everything that was issued before works, at the server that is up now. */
async function assertWorks(t: Test, server: TestServer, held: Held) {
  const info = await callApi(server, '/api/oauth/userinfo', held.tokens.access_token)
  t.equal(info.status, 200, 'an access token')
  const response = await refresh(server, held.client, held.tokens.refresh_token)
  t.equal(response.status, 200, 'a refresh token')
  held.tokens = (await response.json()) as Tokens
  await obtainTokens(server, held.client, { agent: held.agent })
  t.equal(await signInByPasskey(server, held.device), '/account/apps', 'a passkey')
}

async function assertMoves(t: Test, from: string, to: string) {
  const { server, command, serve, data } = await site(t)
  const [old, young] = [from, to].map((url) => url.replace('DATA', data)) as [string, string]
  let stop = await serve(old)
  t.equal((await command(old, 'user', 'add', 'ada', '--email', 'ada@example.org')).code, 0)
  const [client, agent] = [await register(server), new UserAgent(server.issuer)]
  const device = new Authenticator(server.issuer)
  const held: Held = { client, agent, device, tokens: await obtainTokens(server, client, { agent, user }) }
  await addPasskey(server, agent, device)

  // While the server goes on, which changes things between two runs.
  const copied = await command(old, 'store', 'copy', '--to', young)
  t.match(copied, { code: 0, stdout: /then nothing is written for about\n[\d.]+ seconds/ })
  t.match(await command(young, 'user', 'list'), { code: 1, stderr: /a copy into it has not ended[^\n]*\n$/ })
  await assertWorks(t, server, held)
  const gone = await register(server)
  t.equal((await command(old, 'client', 'delete', '--yes', gone.id)).code, 0)

  const moved = await command(old, 'store', 'copy', '--pause', '--json', '--to', young)
  t.equal(moved.code, 0, moved.stderr)
  const { state, rows } = JSON.parse(moved.stdout)
  t.equal(state, 'moved')
  t.match(rows, { users: 1, clients: 1, keys: 4 })

  // The server of the old store reads, and writes nothing.
  t.equal((await callApi(server, '/api/oauth/userinfo', held.tokens.access_token)).status, 200)
  const paused = await refresh(server, client, held.tokens.refresh_token)
  t.match([paused.status, paused.headers.get('retry-after')], [503, /^\d+$/])
  t.match(await command(old, 'user', 'list'), { code: 1, stderr: /its contents were moved[^\n]*\n$/ })
  t.match((await command(old, 'doctor', '--offline')).stdout, /contents of this database were moved/)
  t.equal(await stop(), 0)
  t.match(await command(old, 'serve', '--port', '0'), { code: 1, stderr: /lychgate store resume\n$/ })

  stop = await serve(young)
  await assertWorks(t, server, held)
  // A number is not given again: the new client is not taken for the one that is gone.
  await register(server)
  t.equal(await stop(), 0)
  const again = await command(old, 'store', 'copy', '--pause', '--to', young)
  t.match(again, { code: 1, stderr: /^lychgate: --to: this store is in use[^\n]*\n$/ })
  t.equal((await command(old, 'store', 'resume')).code, 0)
  t.match(await command(old, 'store', 'resume'), { code: 1, stderr: /its contents were not moved\n$/ })
  t.equal((await command(old, 'user', 'delete', '--yes', 'ada')).code, 0, 'it takes writes again')
}

t.test('a store moves to PostgreSQL while its server runs, and what was issued before works', async (t) =>
  assertMoves(t, 'sqlite:DATA/lychgate.db', await postgres.createDatabase()),
)

t.test('a store moves to SQLite while its server runs, and what was issued before works', async (t) =>
  assertMoves(t, await postgres.createDatabase(), 'sqlite:DATA/moved.db'),
)

t.test('what cannot be copied is one line and an exit code, and no store is changed', async (t) => {
  const { command, serve, data, environment } = await site(t)
  const [store, other] = [`sqlite:${data}/lychgate.db`, `sqlite:${data}/other.db`]
  const line = async (to: string, expected: object, from = store) =>
    t.match(await command(from, 'store', 'copy', '--to', to), expected)
  await line(other, { code: 1, stderr: /^lychgate: store: there is none\n$/ })
  await (await serve(store))()
  await line('mysql://db', { code: 64, stderr: /^lychgate: --to: must be sqlite:[^\n]*\n$/ })
  await line(store, { code: 1, stderr: /^lychgate: --to: this store is in use[^\n]*\n$/ })
  await line(`sqlite:${data}/no/folder.db`, { code: 1, stderr: /^lychgate: --to: [^\n]*folder\.db[^\n]*\n$/ })
  await line('postgres://ada:hidden@127.0.0.1:1/x', {
    code: 1,
    stderr: /^lychgate: --to: (?!.*hidden)[^\n]*\n$/,
  })
  t.notOk(existsSync(`${data}/other.db`))
  const wrong = await run(['store', 'copy', '--to', other], {
    environment: { LYCHGATE_STORE: store, LYCHGATE_SECRET: secret.toUpperCase() },
  })
  t.match(wrong, { code: 78, stderr: /^lychgate: secret: the secret does not open the stored keys[^\n]*\n$/ })
  t.notOk(existsSync(`${data}/other.db`))

  // Interrupted before it was complete: the old store goes on, and nothing starts with the new one.
  await line(other, { code: 0 })
  await line(
    `sqlite:${data}/third.db`,
    { code: 1, stderr: /^lychgate: store: a copy into it[^\n]*\n$/ },
    other,
  )
  const child = start(['store', 'copy', '--pause', '--to', other], environment(store))
  await printed(child, /nothing is written to this store/)
  child.kill('SIGKILL')
  await ended(child)
  t.match(await command(other, 'user', 'list'), { code: 1, stderr: /a copy into it has not ended/ })
  t.equal((await command(store, 'store', 'copy', '--pause', '--to', other)).code, 0)
  t.equal((await command(other, 'user', 'list')).code, 0)
  const database = new Database(`${data}/other.db`)
  database.exec("insert into __drizzle_migrations (hash, created_at) values ('later', 8000000000000)")
  database.close()
  t.equal((await command(store, 'store', 'resume')).code, 0)
  await line(other, { code: 1, stderr: /^lychgate: --to: the database was made by a newer version[^\n]*\n$/ })
})
