import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { ended, newFolder, run, start } from '../helpers/command.ts'
import { obtainTokens, register } from '../helpers/flow.ts'
import { devAlice, startProcess } from '../helpers/process.ts'

t.test('a backup is repeated into a folder, rehearsed there, and old ones are deleted', async (t) => {
  const [data, shelf] = [newFolder(t), newFolder(t)]
  const { server } = await startProcess(t, data, { LYCHGATE_LOG_LEVEL: 'fatal' })
  await obtainTokens(server, await register(server), { user: devAlice })
  const others = ['lychgate.db', 'notes.txt', 'lychgate-2020-01-01.db']
  for (const name of others) writeFileSync(`${shelf}/${name}`, 'not of this command')
  writeFileSync(`${shelf}/lychgate-2020-01-01T00-00-00Z.db`, 'the oldest')
  writeFileSync(`${shelf}/lychgate-2020-01-01T00-00-00Z.db.unfinished-7`, 'of a killed one')

  const every = ['backup', '--every', '1s', '--keep', '2', '--json', '--data', data, shelf]
  const child = start(every)
  const end = ended(child)
  let printed = ''
  await new Promise<void>((resolve) => {
    child.stdout?.on('data', (chunk) => {
      printed += chunk
      if (printed.split('"file"').length > 3) resolve()
    })
  })
  child.kill('SIGTERM')
  t.match(await end, { code: 0, stderr: '' })
  const copies = readdirSync(shelf).filter((name) => !others.includes(name))
  t.equal(copies.length, 2, copies.join())
  for (const name of copies) t.match(name, /^lychgate-2\d{3}-\d\d-\d\dT\d\d-\d\d-\d\dZ\.db$/)
  t.notOk(existsSync(`${shelf}/lychgate-2020-01-01T00-00-00Z.db`))
  for (const name of others) t.ok(existsSync(`${shelf}/${name}`), name)

  // The newest of the folder, while the server runs.
  const rehearsed = await run(['restore', '--rehearse', '--json', '--data', data, shelf])
  t.equal(rehearsed.code, 0, rehearsed.stderr)
  t.match(JSON.parse(rehearsed.stdout), {
    backup: `${shelf}/${copies[1]}`,
    users: 2,
    clients: 1,
    grants: 1,
    keys: 4,
    newest_event_at: Number,
  })
  const asText = await run(['restore', '--rehearse', '--data', data, `${shelf}/${copies[0]}`])
  t.match(asText, {
    code: 0,
    stdout: /grants +1\n[\s\S]*The backup is sound, and the secret opens its keys\.\n$/,
  })
  const secret = { environment: { LYCHGATE_SECRET: 'another secret of at least 32 characters' } }
  const wrong = await run(['restore', '--rehearse', '--data', data, shelf], secret)
  t.match(wrong, { code: 78, stderr: /^lychgate: secret: the secret does not open[^\n]*\n$/ })
  const damaged = await run(['restore', '--rehearse', '--data', data, `${shelf}/lychgate.db`])
  t.match(damaged, { code: 1, stderr: /^lychgate: file: [^\n]* cannot be restored: [^\n]*\n$/ })
  t.strictSame(
    readdirSync(data).filter((name) => name.includes('rehearsal')),
    [],
  )
  for (const name of copies) rmSync(`${shelf}/${name}`)
  const none = await run(['restore', '--rehearse', '--data', data, shelf])
  t.match(none, { code: 1, stderr: /lychgate-\*\.db cannot be restored: there is no such file\n$/ })
})

t.test('a folder that is not there ends the command', async (t) => {
  const data = newFolder(t)
  const { code, stderr } = await run(['backup', '--every', '1d', '--data', data, `${data}/none`])
  t.equal(code, 1)
  t.match(stderr, /^lychgate: file: the folder [^\n]*none cannot be read: [^\n]*\n$/)
})

t.test('a combination of flags that would do less than it says is rejected', async (t) => {
  const data = newFolder(t)
  const rejected = async (line: string, ...flags: readonly string[]) => {
    const ended = await run(['backup', ...flags, '--data', data, data])
    t.match(ended, { code: 64, stdout: '', stderr: `lychgate: ${line}\n` })
  }
  await rejected('--keep goes with --every', '--keep', '3')
  await rejected('--every is at least 1s', '--every', '0s')
  await rejected('--force goes without --every, which replaces no copy', '--every', '1d', '--force')
})

t.test('PostgreSQL has programs of its own for both', async (t) => {
  const data = newFolder(t)
  const environment = { LYCHGATE_STORE: 'postgres://lychgate@localhost:1/lychgate' }
  const repeated = await run(['backup', '--every', '1d', data], { environment })
  t.match(repeated, { code: 1, stderr: /^lychgate: store: is in PostgreSQL; pg_dump [^\n]*\n$/ })
  const rehearsed = await run(['restore', '--rehearse', data], { environment })
  t.match(rehearsed, { code: 1, stderr: /^lychgate: store: is in PostgreSQL; restore a dump [^\n]*\n$/ })
})
