import { readdirSync } from 'node:fs'
import t, { type Test } from 'tap'
import { quickStartOption } from '../../scripts/quick-start.ts'
import { ended, entry, newFolder, spawnFile } from '../helpers/command.ts'
import { callApi, obtainTokens, postAs, refresh, register, type Tokens } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import type { TestServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { versionAfter } from '../helpers/versions.ts'
import { startPostgres } from '../storage/postgres-server.ts'

// The next version, made here: this one, and a migration that adds a table and two columns.
const postgres = await startPostgres(t)
const user = { username: 'ada', password: 'a password nobody else has' }

async function site(t: Test, store: string) {
  const data = newFolder(t)
  const port = [await freePort(), await freePort()] as const
  const issuer = `http://localhost:${port[0]}`
  const environment = {
    PATH: process.env['PATH'] ?? '',
    NODE_OPTIONS: quickStartOption,
    LYCHGATE_SECRET: 'a secret of at least thirty-two characters',
    LYCHGATE_STORE: store.replace('DATA', data),
    LYCHGATE_DATA: data,
    LYCHGATE_ISSUER: issuer,
  }
  const spawn = (version: string, ...args: readonly string[]) =>
    spawnFile(process.execPath, [version, ...args], environment)
  return {
    data,
    issuer,
    run: (version: string, ...args: readonly string[]) => {
      const child = spawn(version, ...args)
      child.stdin?.end(`${user.password}\n`)
      return ended(child)
    },
    /** Starts a server of this version at the issuer, or next to it. */
    serve: async (version: string, at: 0 | 1) => {
      const child = spawn(version, 'serve', '--port', `${port[at]}`)
      t.teardown(() => child.kill('SIGKILL'))
      const end = ended(child)
      const origin = `http://localhost:${port[at]}`
      while ((await fetch(`${origin}/readyz`).catch(() => undefined))?.status !== 200) {
        if (child.exitCode !== null) throw new Error((await end).stderr)
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
      return {
        server: { issuer: origin, origin } as TestServer,
        stop: async () => {
          child.kill('SIGTERM')
          t.equal((await end).code, 0)
        },
      }
    },
  }
}

async function assertServe(t: Test, store: string) {
  const { entry: next } = versionAfter(t, '-- compatible: it only adds\n')
  const { run, serve, issuer, data } = await site(t, store)
  let old = await serve(entry, 0)
  t.equal((await run(entry, 'user', 'add', 'ada', '--email', 'ada@example.org')).code, 0)
  const client = await register(old.server)
  const agent = new UserAgent(issuer)
  let tokens = await obtainTokens(old.server, client, { agent, user })
  const refreshAt = async ({ server }: typeof old) => {
    const response = await refresh(server, client, tokens.refresh_token)
    t.equal(response.status, 200)
    tokens = (await response.json()) as Tokens
  }

  // Upgraded while the version before serves: it adds to the tables that the other one uses.
  const young = await serve(next, 1)
  await refreshAt(young)
  await refreshAt(old)
  const another = await obtainTokens(old.server, client, { agent })
  t.equal((await callApi(young.server, '/api/oauth/userinfo', another.access_token)).status, 200)
  const revocation = { token: another.refresh_token }
  t.equal((await postAs(young.server, client, '/api/oauth/revoke', revocation)).status, 200)
  t.equal((await callApi(old.server, '/api/oauth/userinfo', another.access_token)).status, 401)

  // And back: the version before starts on these tables, and the other one ends.
  await old.stop()
  old = await serve(entry, 0)
  await refreshAt(young)
  await young.stop()
  await refreshAt(old)
  await obtainTokens(old.server, client, { agent })
  t.match((await run(entry, 'doctor', '--offline')).stdout, /schema: a newer version added to it/)
  await old.stop()
  t.strictSame(copiesIn(data), [], 'what only adds needs no copy')
}

const copiesIn = (data: string) => readdirSync(data).filter((name) => /schema|unfinished/.test(name))

t.test('two versions serve one store, and one goes back to the version before: SQLite', (t) =>
  assertServe(t, 'sqlite:DATA/lychgate.db'),
)

t.test('two versions serve one store, and one goes back to the version before: PostgreSQL', async (t) =>
  assertServe(t, await postgres.createDatabase()),
)

t.test(
  'a migration that does not say so is for the newer version alone, and a copy is made first',
  async (t) => {
    const { run, data } = await site(t, 'sqlite:DATA/lychgate.db')
    const { entry: next } = versionAfter(t, '')
    t.equal((await run(entry, 'user', 'add', 'ada', '--email', 'ada@example.org')).code, 0)
    t.strictSame(copiesIn(data), [], 'a new store needs none')
    t.equal((await run(next, 'user', 'add', 'bob', '--email', 'bob@example.org')).code, 0)
    const [copy = '', ...others] = copiesIn(data)
    t.match(copy, /^lychgate\.db-schema-\d+$/)
    t.strictSame(others, [])
    t.match(await run(entry, 'user', 'list'), { code: 1, stderr: /made by a newer version[^\n]*\n$/ })
    t.equal((await run(entry, 'restore', `${data}/${copy}`)).code, 0)
    const users = await run(entry, 'user', 'list')
    t.equal(users.code, 0)
    t.match(users.stdout, /ada@example\.org/)
    t.notMatch(users.stdout, /bob/)
  },
)
