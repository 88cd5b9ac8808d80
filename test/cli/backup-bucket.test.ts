import { readdirSync } from 'node:fs'
import t from 'tap'
import { bucketKeys, startBucketServer } from '../helpers/bucket.ts'
import { ended, newFolder, run, start } from '../helpers/command.ts'
import { obtainTokens, register } from '../helpers/flow.ts'
import { devAlice, startProcess } from '../helpers/process.ts'

t.test('a copy goes into a bucket, is rehearsed from there, and restored', async (t) => {
  const [data, other] = [newFolder(t), newFolder(t)]
  const { objects, environment, fault } = await startBucketServer(t)
  const running = await startProcess(t, data, { LYCHGATE_LOG_LEVEL: 'fatal' })
  await obtainTokens(running.server, await register(running.server), { user: devAlice })
  const lychgate = (...args: readonly string[]) => run([...args, '--data', data], { environment })

  const copied = await lychgate('backup', '--json', 's3://copies/school/lychgate.db')
  t.equal(copied.code, 0, copied.stderr)
  t.match(JSON.parse(copied.stdout), { file: 's3://copies/school/lychgate.db', users: 2, grants: 1 })
  const first = objects.get('/copies/school/lychgate.db')
  t.equal(first?.subarray(0, 15).toString(), 'SQLite format 3')

  const line = /^lychgate: file: s3:\/\/copies\/\w+\/\w+\.db exists; name another, [^\n]*\n$/
  const rejected = { code: 1, stdout: '', stderr: line }
  fault.isRacing = true
  t.match(await lychgate('backup', 's3://copies/school/raced.db'), rejected)
  t.equal(objects.get('/copies/school/raced.db')?.toString(), 'of another')
  fault.isUnconditional = true
  t.match(await lychgate('backup', 's3://copies/school/lychgate.db'), rejected)
  t.equal(objects.get('/copies/school/lychgate.db'), first)
  await register(running.server)
  t.match(await lychgate('backup', '--force', 's3://copies/school/lychgate.db'), { code: 0, stderr: '' })
  t.not(objects.get('/copies/school/lychgate.db'), first)

  const rehearsed = await lychgate('restore', '--rehearse', 's3://copies/school/lychgate.db')
  const sound = /^rehearsed +s3:\/\/copies\/school\/lychgate\.db\n[\s\S]*The backup is sound/
  t.match(rehearsed, { code: 0, stdout: sound })
  const onOther = ['--data', other, 's3://copies/school/lychgate.db']
  const restored = await run(['restore', '--json', ...onOther], { environment })
  t.match(JSON.parse(restored.stdout), { from: 's3://copies/school/lychgate.db', clients: 2, grants: 1 })

  fault.isCutting = true
  const cut = await lychgate('restore', '--rehearse', 's3://copies/school/lychgate.db')
  t.match(cut, { code: 1, stdout: '', stderr: /^lychgate: bucket: the download ended too early\n$/ })
  for (const folder of [data, other])
    t.strictSame(
      readdirSync(folder).filter((name) => /load|rehearsal|unfinished/.test(name)),
      [],
    )
})

t.test('copies are repeated into a bucket, and old ones are deleted', async (t) => {
  const data = newFolder(t)
  const { objects, environment } = await startBucketServer(t)
  await startProcess(t, data, { LYCHGATE_LOG_LEVEL: 'fatal' })
  const old = ['2020-01-01T00-00-00Z', '2020-01-02T00-00-00Z', '2020-01-03T00-00-00Z']
  for (const time of old) objects.set(`/copies/school/lychgate-${time}.db`, Buffer.from('old'))
  objects.set('/copies/school/notes.txt', Buffer.from('not of this command'))
  objects.set('/copies/lychgate-2020-01-01T00-00-00Z.db', Buffer.from('in another folder'))

  const every = ['backup', '--every', '1s', '--keep', '2', '--data', data, 's3://copies/school']
  const child = start(every, environment)
  const end = ended(child)
  let printed = ''
  await new Promise<void>((resolve) => {
    child.stdout?.on('data', (chunk) => {
      printed += chunk
      if (printed.split('The backup does not contain').length > 3) resolve()
    })
  })
  child.kill('SIGTERM')
  t.match(await end, { code: 0, stderr: '' })
  const copies = [...objects.keys()].filter((key) => /school\/lychgate-/.test(key)).toSorted()
  t.equal(copies.length, 2, copies.join())
  for (const key of copies) t.notMatch(key, '2020')
  t.ok(objects.has('/copies/school/notes.txt'))
  t.ok(objects.has('/copies/lychgate-2020-01-01T00-00-00Z.db'))

  const args = ['restore', '--rehearse', '--json', '--data', data, 's3://copies/school/']
  const rehearsed = await run(args, { environment })
  t.equal(JSON.parse(rehearsed.stdout).backup, `s3:/${copies[1]}`)
})

t.test('what is wrong with a bucket has one line, without the secret', async (t) => {
  const data = newFolder(t)
  const { endpoint, environment, objects } = await startBucketServer(t)
  await startProcess(t, data, { LYCHGATE_LOG_LEVEL: 'fatal' })
  const rejected = async (
    [code, line]: readonly [number, RegExp],
    args: readonly string[],
    changed: Readonly<Record<string, string>> = {},
  ) => {
    const outcome = await run([...args, '--data', data], { environment: { ...environment, ...changed } })
    t.match(outcome, { code, stdout: '' }, args.join(' '))
    t.match(outcome.stderr, line)
    t.equal(outcome.stderr.trimEnd().split('\n').length, 1, outcome.stderr)
    t.notMatch(outcome.stderr, bucketKeys.secretKey)
  }
  const copy = ['backup', 's3://copies/lychgate.db']
  const wrong = { LYCHGATE_BACKUP_SECRET_KEY: 'another' }
  await rejected([1, /bucket: HEAD \S+\/copies\/lychgate\.db: 403\n/], copy, wrong)
  const listed = ['backup', '--every', '1d', 's3://copies/']
  await rejected([1, /bucket: GET \S+\/copies\/: 403 SignatureDoesNotMatch\n/], listed, wrong)
  await rejected([1, /bucket: HEAD .*ECONNREFUSED/], copy, { LYCHGATE_BACKUP_ENDPOINT: 'http://127.0.0.1:1' })
  await rejected([78, /backup\.endpoint: must be https/], copy, {
    LYCHGATE_BACKUP_ENDPOINT: endpoint.replace('127.0.0.1', 'store.example'),
  })
  await rejected([78, /backup\.secretKey: is missing/], copy, { LYCHGATE_BACKUP_SECRET_KEY: '' })
  for (const address of ['s3://', 's3://COPIES/a', 's3://copies/../a', 's3://copies/a b', 's3://copies//a'])
    await rejected([64, /is no address of a bucket; write s3:/], ['backup', address])
  await rejected([64, /is a folder; name the copy, or repeat it/], ['backup', 's3://copies/'])
  await rejected([64, /is a folder; name one of its copies/], ['restore', 's3://copies/'])
  await rejected([1, /file: s3:\/\/copies\/ has no copy/], ['restore', '--rehearse', 's3://copies/'])
  await rejected([1, /GET \S+\/a\.db: 404 NoSuchKey/], ['restore', 's3://copies/a.db'])
  t.equal(objects.size, 0)

  const none = await run(['backup', 's3://copies/a.db', '--data', data])
  t.match(none, { code: 1, stderr: /^lychgate: backup\.endpoint: is missing; name the server/ })
})
