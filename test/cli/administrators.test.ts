/** A store in which no administrator can sign in: each door says so, with the command that ends it. SQLite and PostgreSQL. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { examine } from '../../src/cli/doctor/examine.ts'
import { ended, newFolder, run, start } from '../helpers/command.ts'
import { secret } from '../helpers/doctor.ts'
import { freePort } from '../helpers/free-port.ts'
import { startPostgres } from '../storage/postgres-server.ts'

const input = 'a password nobody else has\n'
const postgres = await startPostgres(t)
const stores = {
  SQLite: async () => ({}),
  PostgreSQL: async () => ({ LYCHGATE_STORE: await postgres.createDatabase() }),
}

/** The settings of a server on a new store. */
async function newServer(t: Test, store: (typeof stores)[keyof typeof stores]) {
  const port = await freePort()
  const issuer = `http://localhost:${port}`
  const settings = { LYCHGATE_DATA: newFolder(t), LYCHGATE_ISSUER: issuer, LYCHGATE_SECRET: secret }
  return { ...settings, LYCHGATE_PORT: String(port), LYCHGATE_DRAIN_SECONDS: '0', ...(await store()) }
}

type Settings = Awaited<ReturnType<typeof newServer>>

/** What `serve` prints on standard error until it is stopped. */
async function startAndStop(t: Test, environment: Settings): Promise<string> {
  const child = start(['serve'], environment)
  t.teardown(() => child.kill('SIGKILL'))
  const end = ended(child)
  while ((await fetch(`${environment.LYCHGATE_ISSUER}/readyz`).catch(() => undefined))?.status !== 200) {
    if (child.exitCode !== null) throw new Error((await end).stderr)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  child.kill('SIGTERM')
  const { code, stderr } = await end
  t.equal(code, 0)
  // A database on a busy machine may need a second attempt.
  return stderr.replace(/^lychgate: the store is unavailable: .*\n/, '')
}

async function findingOf(environment: Settings) {
  const findings = await examine({ mode: 'serve', environment, isContainer: false, offline: true })
  return findings.find(({ check }) => check === 'administrators')
}

for (const [name, store] of Object.entries(stores)) {
  t.test(`${name}: the first user of a command is no administrator, and each door says so`, async (t) => {
    const environment = await newServer(t, store)
    const { LYCHGATE_ISSUER: issuer } = environment
    t.match(await startAndStop(t, environment), /^lychgate: No users yet\. Open this link/)
    t.match(await findingOf(environment), { level: 'warning', said: /^there are no users yet/ })

    const added = await run(['user', 'add', 'ada'], { environment, input })
    const line = `lychgate: no administrator can sign in, and only administrators open ${issuer}/admin; make one: lychgate group add admins ada, or lychgate user add NAME --admin`
    t.match(added, { code: 0, stderr: `${line}; the link that lychgate serve printed has ended\n` })
    t.equal(await startAndStop(t, environment), `${line.replace(' ada,', ' USER,')}\n`)
    t.match(await findingOf(environment), {
      level: 'warning',
      change: ['lychgate group add admins USER', 'lychgate user add NAME --admin'],
    })

    // The command as it was printed: there is no such group yet.
    t.match(await run(['group', 'add', 'admins', 'ada'], { environment }), { code: 0, stderr: '' })
    t.equal(await startAndStop(t, environment), '')
    t.match(await findingOf(environment), { level: 'ok' })
    t.match(await run(['user', 'add', 'bob'], { environment, input }), { code: 0, stderr: '' })
    const log = await run(['audit', '--json'], { environment })
    const events: { event: string }[] = JSON.parse(log.stdout)
    t.strictSame(
      events
        .map(({ event }) => event)
        .filter((event) => /^(user|group)-/.test(event))
        .toSorted(),
      ['group-created', 'group-member-added', 'user-added', 'user-added'],
    )
    t.match(await run(['user', 'lock', 'ada', '--yes', '--force'], { environment }), { code: 0 })
    t.match(await findingOf(environment), { level: 'warning' }, 'one who is locked cannot sign in')
  })
}

t.test('user add --admin adds an administrator, on an empty store and later', async (t) => {
  const environment = await newServer(t, stores.SQLite)
  for (const name of ['ada', 'grace']) {
    const added = await run(['user', 'add', name, '--admin', '--json'], { environment, input })
    t.match(added, { code: 0, stderr: '' })
  }
  const shown = await run(['group', 'show', 'admins', '--json'], { environment })
  t.match(JSON.parse(shown.stdout).members, [{ username: /ada|grace/ }, { username: /ada|grace/ }])
  t.equal(await startAndStop(t, environment), '')
  const taken = await run(['user', 'add', 'ada', '--admin'], { environment, input })
  t.match(taken, { code: 1, stderr: 'lychgate: the user name or email address is taken\n' })
})

t.test(
  'a group of administrators with another name is created by its name, and quoted for a shell',
  async (t) => {
    const environment = { ...(await newServer(t, stores.SQLite)), LYCHGATE_ADMIN_GROUP: 'The ops room' }
    const added = await run(['user', 'add', 'ada'], { environment, input })
    t.match(added.stderr, "lychgate group add 'The ops room' ada")
    t.match(await run(['group', 'add', 'admins', 'ada'], { environment }), {
      code: 1,
      stderr: /no group has this name or id/,
    })
    t.match(await run(['group', 'add', 'the ops room', 'ada'], { environment }), { code: 0 })
    t.match(await findingOf(environment), { level: 'ok' })
  },
)

t.test('a server without admin pages and admin API needs no administrator', async (t) => {
  const environment = {
    ...(await newServer(t, stores.SQLite)),
    LYCHGATE_ADMIN_PAGES: 'off',
    LYCHGATE_ADMIN_API: 'off',
  }
  t.match(await run(['user', 'add', 'ada'], { environment, input }), { code: 0, stderr: '' })
  t.equal(await startAndStop(t, environment), '')
  t.equal(await findingOf(environment), undefined)
})

t.test('an invitation of the first user says the same', async (t) => {
  const environment = await newServer(t, stores.SQLite)
  const invited = await run(['user', 'invite', 'ada@example.org', '--username', 'ada'], { environment })
  t.match(invited, { code: 0, stderr: /lychgate group add admins ada, or / })
})

t.test('every recipe that adds the first user by a command makes an administrator', async (t) => {
  const read = (path: string) =>
    readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8')
  for (const path of [
    'deploy/compose.yaml',
    'deploy/compose.postgres.yaml',
    'deploy/lychgate.service',
    'docs/production.md',
  ]) {
    const [first] = read(path).match(/lychgate user (?:add|invite) .*/) ?? []
    t.match(first, /lychgate user add ada .*--admin\b/, path)
  }
  const environment = await newServer(t, stores.SQLite)
  const [, line = ''] = /exec lychgate lychgate (user add .*)/.exec(read('deploy/compose.yaml')) ?? []
  t.match(await run(line.split(' '), { environment, input }), { code: 0, stderr: '' })
  t.match(await findingOf(environment), { level: 'ok' })
})
