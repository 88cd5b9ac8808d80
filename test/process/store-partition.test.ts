/** `lychgate store partition`, with the server that users run. */
import pg from 'pg'
import t from 'tap'
import { ended, newFolder, run, start } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'
import { startPostgres } from '../storage/postgres-server.ts'

const postgres = await startPostgres(t)

t.test('a running server goes on with a log that is divided, and starts with it', async (t) => {
  const store = await postgres.createDatabase()
  const port = await freePort()
  const issuer = `http://localhost:${port}`
  const environment = {
    LYCHGATE_SECRET: 'a secret of at least thirty-two characters',
    LYCHGATE_STORE: store,
    LYCHGATE_DATA: newFolder(t),
    LYCHGATE_ISSUER: issuer,
    LYCHGATE_DRAIN_SECONDS: '0',
    LYCHGATE_SWEEP_SECONDS: '1',
  }
  const command = (...args: readonly string[]) => run(args, { environment })
  t.match(await command('store', 'partition'), { code: 1, stderr: /^lychgate: store: there is none\n$/ })

  const child = start(['serve', '--port', `${port}`], environment)
  t.teardown(() => child.kill('SIGKILL'))
  const end = ended(child)
  const ready = async () => (await fetch(`${issuer}/readyz`).catch(() => undefined))?.status === 200
  while (!(await ready())) {
    if (child.exitCode !== null) throw new Error((await end).stderr)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  t.equal((await command('group', 'create', 'before')).code, 0)
  const divided = await command('store', 'partition', '--json')
  t.match(divided, { code: 0, stderr: '' })
  const { state, next } = JSON.parse(divided.stdout)
  t.equal(state, 'partitioned')
  t.match(await command('store', 'partition'), {
    code: 1,
    stderr: 'lychgate: store: the audit log has partitions already\n',
  })
  const registered = await fetch(`${issuer}/api/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'Tool', redirect_uris: ['http://127.0.0.1/callback'] }),
  })
  t.equal(registered.status, 201)
  const events = JSON.parse((await command('audit', '--json')).stdout) as { event: string }[]
  t.strictSame(
    events.map(({ event }) => event).filter((event) => !event.startsWith('key-')),
    ['link-made', 'group-created', 'store-partitioned', 'registration'],
  )

  // The server that was started before the log had partitions looks after them.
  const client = new pg.Client(store)
  await client.connect()
  t.teardown(() => client.end())
  await client.query(`select setval('audit_events_seq_seq', ${next})`)
  const made = "select inhrelid from pg_inherits where inhparent = 'audit_events'::regclass"
  while ((await client.query(made)).rowCount !== 4) await new Promise((resolve) => setTimeout(resolve, 20))
  t.notMatch((await command('doctor', '--offline')).stdout, /partition/)
  child.kill('SIGTERM')
  t.match(await end, { code: 0 })
  await client.query(`select setval('audit_events_seq_seq', 9000000000000000)`)
  t.match((await command('doctor', '--offline')).stdout, /the audit log has no partition after the one/)
})

t.test('a store in SQLite has no partitions', async (t) => {
  const environment = { LYCHGATE_DATA: newFolder(t), LYCHGATE_STORE: `sqlite:${t.testdir()}/x.db` }
  t.match(await run(['store', 'partition'], { environment }), { code: 1 })
})
