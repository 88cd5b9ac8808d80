import t from 'tap'
import { newFolder, run } from '../helpers/command.ts'
import { callApi } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { startProcess } from '../helpers/process.ts'

const data = newFolder(t)
const port = await freePort()
const token = (...args: readonly string[]) =>
  run(['token', '--port', String(port), '--data', data, '--user', 'alice', ...args])

t.test('a token of no development server is refused in one line', async (t) => {
  const { code, stdout, stderr } = await token()
  t.equal(code, 1)
  t.equal(stdout, '')
  t.match(stderr, /^lychgate: no development server answers at [^\n]*; start lychgate dev\n$/)
})

t.test('a running development server gives a token, alone on its line', async (t) => {
  const { server, stop } = await startProcess(t, data, { port })
  const { code, stdout } = await token('--scope', 'openid courses:read')
  t.equal(code, 0)
  t.match(stdout, /^lyc_access_[\w-]+\n$/)
  t.equal((await callApi(server, '/api/courses', stdout.trim())).status, 200)
  t.match(await token('--scope', 'courses:sell'), { code: 1, stderr: /^lychgate: scope [^\n]*\n$/ })
  await stop('SIGTERM')
})

t.test('without it the data folder gives one, which works when it is started again', async (t) => {
  const ended = await token('--expires-in', '-60s', '--json')
  t.equal(ended.code, 0)
  t.equal(JSON.parse(ended.stdout).expires_in, -60)
  const { stdout } = await token()
  const { server } = await startProcess(t, data, { port })
  t.equal((await callApi(server, '/api/oauth/userinfo', stdout.trim())).status, 200)
})
