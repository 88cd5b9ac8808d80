import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { openStore } from '../../src/storage/open.ts'
import { copyDatabase } from '../../src/storage/sqlite/backup.ts'
import { newFolder, run } from '../helpers/command.ts'
import { callApi, obtainTokens, postAs, refresh, register, type Tokens } from '../helpers/flow.ts'
import { devAlice, startProcess } from '../helpers/process.ts'

t.test('a restored backup has what existed when it was taken, and nothing later', async (t) => {
  const [data, shelf] = [newFolder(t), newFolder(t)]
  const file = `${shelf}/lychgate.db`
  const running = await startProcess(t, data, { LYCHGATE_LOG_LEVEL: 'fatal' })
  const { server } = running
  const port = Number(new URL(server.issuer).port)
  const client = await register(server)
  const user = devAlice
  const [same, rotated, revoked] = [
    await obtainTokens(server, client, { user }),
    await obtainTokens(server, client, { user }),
    await obtainTokens(server, client, { user }),
  ]
  const backup = await run(['backup', '--data', data, '--json', file])
  t.match(JSON.parse(backup.stdout), {
    file,
    database: `${data}/lychgate.db`,
    users: 2,
    clients: 1,
    grants: 3,
  })
  t.equal(statSync(file).mode & 0o777, 0o600)

  const late = await register(server)
  const successor = (await (await refresh(server, client, rotated.refresh_token)).json()) as Tokens
  await postAs(server, client, '/api/oauth/revoke', { token: revoked.refresh_token })
  const early = await run(['restore', '--data', data, file])
  t.match(early, {
    code: 1,
    stderr: /^lychgate: store: .*lychgate\.db is open in another process; stop the server first\n$/,
  })

  await running.stop('SIGTERM')
  const restored = await run(['restore', '--data', data, file])
  t.match(restored, {
    code: 0,
    stderr: '',
    stdout: /users +2\nclients +1\ngrants +3\nreplaced +.*-replaced-\d{4}-/,
  })
  t.match(restored.stdout, /are valid again until they expire/)
  const kept = readdirSync(data).find((name) => name.includes('replaced')) ?? ''

  const explained = await run(['explain', '--data', data, '-'], { input: successor.refresh_token })
  t.match(
    explained.stdout,
    /not active\nwhy +it is number 2 of a grant that is at 1: was the database restored from a backup\?/,
  )
  const again = await startProcess(t, data, { port, LYCHGATE_LOG_LEVEL: 'fatal' })
  t.equal((await callApi(server, '/api/oauth/userinfo', same.access_token)).status, 200)
  t.equal((await refresh(server, client, same.refresh_token)).status, 200)
  t.equal(
    (await callApi(server, '/api/oauth/userinfo', successor.access_token)).status,
    401,
    'newer than its grant',
  )
  const newer = await refresh(server, client, successor.refresh_token)
  t.match(await newer.json(), { error: 'invalid_grant', error_description: /as after a restore/ })
  t.equal(
    (await callApi(server, '/api/oauth/userinfo', rotated.access_token)).status,
    401,
    'and it ended the grant',
  )
  t.equal(
    (await callApi(server, '/api/oauth/userinfo', revoked.access_token)).status,
    200,
    'the revocation is undone',
  )
  t.equal((await refresh(server, late, 'x')).status, 400, 'a client since then is unknown')

  await again.stop('SIGTERM')
  const undone = await run(['restore', '--data', data, '--json', `${data}/${kept}`])
  t.match(JSON.parse(undone.stdout), { clients: 2, replaced: /-replaced-/ }, 'a restore can be undone')
})

t.test('a backup replaces no file without --force', async (t) => {
  const data = newFolder(t)
  await (await openStore(`sqlite:${data}/lychgate.db`)).close()
  writeFileSync(`${data}/there`, 'a file')
  t.match(await run(['backup', '--data', data, `${data}/there`]), {
    code: 1,
    stderr: `lychgate: file: ${data}/there exists; name another, or replace it with --force\n`,
  })
  t.equal(readFileSync(`${data}/there`, 'utf8'), 'a file')
  t.match(await run(['backup', '--data', data, '--force', `${data}/there`]), {
    code: 0,
    stdout: /^backup +.*there\n/,
  })
  t.strictSame(readdirSync(data).sort(), ['lychgate.db', 'there'])
  t.match(await run(['backup', '--data', data, '--force', `${data}/lychgate.db`]), {
    code: 1,
    stderr: /^lychgate: file: is the database itself; name another\n$/,
  })
})

t.test('what cannot be backed up or restored is reported in one line', async (t) => {
  const data = newFolder(t)
  writeFileSync(`${data}/text`, 'no database')
  const rejected = async (args: readonly string[], stderr: RegExp, environment = {}) => {
    const ended = await run(args, { environment })
    t.match(ended, { code: 1, stdout: '', stderr })
    t.equal(ended.stderr.split('\n').length, 2, ended.stderr)
  }
  await rejected(
    ['backup', '--data', data, `${data}/copy`],
    /^lychgate: store: there is no database .*; name its folder/,
  )
  await rejected(
    ['restore', '--data', data, `${data}/text`],
    /^lychgate: file: .*text was not restored: file is not a database\n/,
  )
  t.strictSame(readdirSync(data), ['text'])
  const postgres = { LYCHGATE_STORE: 'postgres://user:secret@db.example/lychgate' }
  await rejected(['backup', `${data}/copy`], /^lychgate: store: is in PostgreSQL; pg_dump .*\n/, postgres)
  await rejected(['restore', `${data}/text`], /^lychgate: store: is in PostgreSQL; pg_restore .*\n/, postgres)
  await (await openStore(`sqlite:${data}/lychgate.db`)).close()
  copyDatabase(`${data}/lychgate.db`, `${data}/copy`)
  writeFileSync(`${data}/lychgate.db`, 'what is left of a database')
  await rejected(
    ['restore', '--data', data, `${data}/copy`],
    /^lychgate: store: .*lychgate\.db cannot be replaced; stop every server, move it away, and restore again: /,
  )
  t.equal(readFileSync(`${data}/lychgate.db`, 'utf8'), 'what is left of a database')
  t.ok(existsSync(`${data}/copy`))
})
