/** A run of `lychgate apply` that is killed: the next one makes the rest of the changes. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { openStore } from '../../src/storage/open.ts'
import { ended, newFolder, run, start } from '../helpers/command.ts'
import { startPostgres } from '../storage/postgres-server.ts'

const count = 150
const users = Array.from({ length: count }, (_, index) => `  - { username: user${index}, groups: [staff] }\n`)
const clients = Array.from(
  { length: 3 },
  (_, index) =>
    `  - { client_id: app${index}, client_name: App, redirect_uris: [https://a.example/cb], newSecretFile: ${index}.secret }\n`,
)
const text = `groups: [{ name: staff }]\nusers:\n${users.join('')}clients:\n${clients.join('')}`

async function killAndContinue(t: Test, url?: string) {
  const folder = newFolder(t)
  const files = join(folder, 'files')
  mkdirSync(files)
  writeFileSync(join(files, 'all.yaml'), text)
  const environment = { LYCHGATE_STORE: url ?? `sqlite:${folder}/lychgate.db`, LYCHGATE_DATA: folder }
  const child = start(['apply', '-f', files], environment)
  const end = ended(child)
  // Each invitation is printed when its user is there: some are, and most are not.
  let seen = ''
  await new Promise<void>((resolve) => {
    child.stdout?.on('data', (chunk) => {
      seen += chunk
      if ((seen.match(/^link /gm)?.length ?? 0) >= 5) resolve()
    })
  })
  child.kill('SIGKILL')
  t.equal((await end).code, null)
  const store = await openStore(environment.LYCHGATE_STORE)
  t.teardown(() => store.close())
  const { length } = await store.list('user')
  t.ok(length >= 5 && length < count, `${length} of ${count} users`)
  t.equal((await store.list('client')).length, 0)

  const rest = await run(['apply', '-f', files], { environment })
  t.match(rest, { code: 0 })
  t.match(rest.stdout, new RegExp(`${count - length} users and 3 clients added`))
  t.match(await run(['apply', '-f', files, '--prune', '--yes'], { environment }), {
    code: 0,
    stdout: 'nothing to change\n',
  })
  const exported = await run(['export', '--json'], { environment })
  const { users } = JSON.parse(exported.stdout) as { users: { groups?: string[] }[] }
  t.equal(users.length, count)
  t.ok(users.every(({ groups }) => groups?.join() === 'staff'))
  const events = await store.audit({ since: 0, name: 'user-invited', limit: 1000 })
  t.equal(events.length, count, 'each user is added once, and each is audited')
}

t.test('SQLite: killed in the middle, and applied again', (t) => killAndContinue(t))
t.test('PostgreSQL: killed in the middle, and applied again', async (t) => {
  const postgres = await startPostgres(t)
  await killAndContinue(t, await postgres.createDatabase())
})
