import { writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { ended, newFolder, printed, run, start } from '../helpers/command.ts'
import { obtainTokens, refresh, register, type Tokens } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import type { TestServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { startPostgres } from '../storage/postgres-server.ts'

const before = 'the secret before, of at least 32 characters'
const after = 'the secret after, of at least 32 characters'
const postgres = await startPostgres(t)
const user = { username: 'ada', password: 'a password nobody else has' }

/** A store and what runs on it. */
async function site(t: Test, store: string) {
  const data = newFolder(t)
  const file = `${data}/secret.new`
  writeFileSync(file, `${after}\n`)
  const port = await freePort()
  const issuer = `http://localhost:${port}`
  const environment = (secret: string) => ({
    LYCHGATE_SECRET: secret,
    LYCHGATE_STORE: store.replace('DATA', data),
    LYCHGATE_DATA: data,
  })
  const command = (secret: string, ...args: readonly string[]) =>
    run(args, { environment: environment(secret), input: `${user.password}\n` })
  const reseal = (...args: readonly string[]) => ['keys', 'reseal', '--new-secret-file', file, ...args]
  return {
    file,
    issuer,
    server: { issuer, origin: issuer } as TestServer,
    command,
    reseal,
    /** Runs the command until it has printed this, and kills it. */
    killed: async (text: RegExp) => {
      const child = start(reseal('--stopped'), environment(before))
      await printed(child, text)
      child.kill('SIGKILL')
      await ended(child)
    },
    /** Starts a server with this secret. */
    serve: async (secret: string) => {
      const child = start(['serve', '--port', `${port}`, '--issuer', issuer], environment(secret))
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

async function assertChanges(t: Test, store: string) {
  const { command, reseal, killed, serve, server, issuer } = await site(t, store)
  let stop = await serve(before)
  t.equal((await command(before, 'user', 'add', 'ada', '--email', 'ada@example.org')).code, 0)
  const client = await register(server)
  const agent = new UserAgent(issuer)
  let tokens = await obtainTokens(server, client, { agent, user })
  const refreshed = async () => {
    const response = await refresh(server, client, tokens.refresh_token)
    t.equal(response.status, 200)
    tokens = (await response.json()) as Tokens
  }

  // One after the other: begun while a server runs, which is then started with the new secret.
  t.match(await command(before, ...reseal()), { code: 0, stdout: /^Both secrets open this store now\./ })
  await refreshed()
  t.equal(await stop(), 0)
  t.match(await command(after, ...reseal()), {
    code: 75,
    stderr: /^lychgate: the change has just begun;[^\n]*\n$/,
  })
  stop = await serve(before)
  t.match(await command(before, ...reseal()), {
    code: 75,
    stderr: /^lychgate: a server used the old secret \d+ seconds ago;[^\n]*\n$/,
  })
  t.equal(await stop(), 0)
  stop = await serve(after)
  await refreshed()
  t.equal((await command(before, 'keys', 'list')).code, 0)
  t.equal((await command(after, 'keys', 'list')).code, 0)
  t.match((await command(after, 'doctor', '--offline')).stdout, /change of it has begun and not ended/)
  t.equal(await stop(), 0)

  // Killed where it says that it goes on, and run again.
  await killed(/sealed with both secrets\n/)
  t.equal((await command(after, 'keys', 'list')).code, 0)
  const { code, stdout } = await command(before, ...reseal('--stopped', '--json'))
  t.equal(code, 0)
  t.match(JSON.parse(stdout), { state: 'done', keys: 4, secrets: 0, unopened: 0 })
  t.match(await command(after, ...reseal()), { code: 0, stdout: /sealed with this secret already/ })
  t.match(await command(before, 'keys', 'list'), { code: 78, stderr: /does not open the stored keys/ })
  const rejected = await command(before, 'serve', '--port', '0')
  t.match(rejected, {
    code: 78,
    stderr: /^lychgate: secret: the secret does not open the stored keys;[^\n]*\n$/,
  })
  stop = await serve(after)
  await refreshed()
  const { access_token } = await obtainTokens(server, client, { agent })
  t.type(access_token, 'string', 'the session goes on')
  t.match((await command(after, 'audit')).stdout, /key-reseal-begun[\s\S]*key-resealed/)
  t.equal(await stop(), 0)
}

t.test('the secret changes, server by server, and a kill loses nothing: SQLite', (t) =>
  assertChanges(t, 'sqlite:DATA/lychgate.db'),
)

t.test('the secret changes, server by server, and a kill loses nothing: PostgreSQL', async (t) =>
  assertChanges(t, await postgres.createDatabase()),
)

t.test('what cannot be done is one line and an exit code', async (t) => {
  const { command, reseal, serve, file } = await site(t, 'sqlite:DATA/lychgate.db')
  const line = async (secret: string, expected: object) =>
    t.match(await command(secret, ...reseal()), expected)
  await line(before, { code: 1, stderr: /^lychgate: this store has no keys yet[^\n]*\n$/ })
  const stop = await serve(before)
  await stop()
  await line('another secret of at least 32 characters', {
    code: 78,
    stderr: /^lychgate: secret: the secret does not[^\n]*\n$/,
  })
  writeFileSync(file, 'short')
  await line(before, { code: 78, stderr: /^lychgate: --new-secret-file: [^\n]*32 characters\n$/ })
  writeFileSync(file, after)
  await line(before, { code: 0 })
  writeFileSync(file, 'a third secret of at least 32 characters')
  await line(before, { code: 1, stderr: /^lychgate: --new-secret-file: another one was named[^\n]*\n$/ })
  t.equal((await command(before, 'keys', 'list')).code, 0)
})
