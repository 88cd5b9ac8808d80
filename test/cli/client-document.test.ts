import t from 'tap'
import { newFolder } from '../helpers/command.ts'
import { runHere as run } from '../helpers/commands.ts'
import { startStandInDocuments } from '../helpers/stand-in-documents.ts'

const data = newFolder(t)
const site = await startStandInDocuments(t)
const document = (...args: string[]) => run(['client', 'document', ...args, '--data', data])
const shown = async (...args: string[]) => JSON.parse((await document(...args, '--json')).stdout)

t.test('an operator fetches a document, sees it, and learns what is wrong with it', async (t) => {
  const { client, document: published } = site.publish({ client_uri: 'https://client.example' })
  t.match(await document('show', client.id), { code: 1, stderr: /refresh fetches it/ })
  const { host } = new URL(client.id)
  const fetched = await shown('refresh', client.id)
  t.match(fetched, { client_id: client.id, client_name: 'Course Agent', host, sha256: /^[\w-]{43}$/ })
  t.equal(fetched.fresh_until, fetched.fetched_at + 300)
  t.strictSame(await shown('show', client.id), fetched)
  t.match(await document('show', client.id), { code: 0, stdout: /host +127\.0\.0\.1/ })
  published.body = { client_id: client.id, client_secret: 'x' }
  t.match(await document('refresh', client.id), {
    code: 1,
    stderr: /client_secret must not be in a client metadata document/,
  })
  published.status = 404
  t.match(await document('refresh', client.id), { code: 1, stderr: /cannot be fetched: .*status 404/ })
  t.strictSame(await shown('show', client.id), fetched, 'what was stored stays')
  t.match(await document('refresh', 'https://client.example'), { code: 1, stderr: /https URL with a path/ })
  t.match(await document('refresh', 'https://10.0.0.1/client.json'), { code: 1, stderr: /no public address/ })
})

t.test('a denied document is not fetched until it is allowed again', async (t) => {
  const { client } = site.publish()
  await document('refresh', client.id)
  t.match(await document('deny', client.id), { code: 1 }, 'it is asked for confirmation')
  t.match(await document('deny', client.id, '--yes'), { code: 0, stdout: /denied/ })
  t.match(await shown('show', client.id), { denied_at: Number, locked_at: Number })
  const before = site.requests.length
  t.match(await document('refresh', client.id), { code: 1, stderr: /an operator denied this client/ })
  t.equal(site.requests.length, before)
  const { stdout } = await run(['audit', '--data', data])
  t.match(stdout, `client-locked`)
  t.match(stdout, client.id)
  t.match(await document('allow', client.id), { code: 0 })
  t.notMatch(await shown('refresh', client.id), { locked_at: Number })
  t.match(await document('allow', client.id), { code: 1, stderr: /not denied/ })
  const unknown = `${site.origin}/never.json`
  t.match(await document('deny', unknown, '--yes'), { code: 0 }, 'also one that was never fetched')
  t.match(await shown('show', unknown), { client_id: unknown, denied_at: Number })
})
