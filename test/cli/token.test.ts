import t from 'tap'
import { newFolder, run } from '../helpers/command.ts'
import { callApi } from '../helpers/flow.ts'
import { freePort } from '../helpers/free-port.ts'
import { startProcess } from '../helpers/process.ts'

const data = newFolder(t)
const port = await freePort()
const token = (...args: readonly string[]) =>
  run(['token', '--port', String(port), '--data', data, '--user', 'alice', ...args])

t.test('a token request without a development server is rejected in one line', async (t) => {
  const { code, stdout, stderr } = await token()
  t.equal(code, 1)
  t.equal(stdout, '')
  t.match(stderr, /^lychgate: no development server responds at [^\n]*; start lychgate dev\n$/)
})

t.test('a running development server issues a token, alone on its line', async (t) => {
  const { server, stop } = await startProcess(t, data, { port })
  const { code, stdout } = await token('--scope', 'openid courses:read')
  t.equal(code, 0)
  t.match(stdout, /^lyc_access_[\w-]+\n$/)
  t.equal((await callApi(server, '/api/courses', stdout.trim())).status, 200)
  t.match(await token('--scope', 'courses:sell'), { code: 1, stderr: /^lychgate: scope [^\n]*\n$/ })
  await stop('SIGTERM')
})

t.test('without it the data folder issues one, which works when the server is started again', async (t) => {
  const ended = await token('--expires-in', '-60s', '--json')
  t.equal(ended.code, 0)
  t.equal(JSON.parse(ended.stdout).expires_in, -60)
  const { stdout } = await token()
  const { server } = await startProcess(t, data, { port })
  t.equal((await callApi(server, '/api/oauth/userinfo', stdout.trim())).status, 200)
})

t.test('commands on a data folder use the issuer it was last served with, and print it', async (t) => {
  const issuer = `http://localhost:${port}`
  const said = `lychgate: issuer ${issuer}, as the server of ${data}\n`
  const minted = await run(['token', '--data', data, '--user', 'alice'])
  t.match(minted, { code: 0, stdout: /^lyc_access_/, stderr: said })
  const added = await run(['client', 'add', '--data', data, '--name', 'API', '--resource', issuer])
  t.match(added, { code: 0, stderr: said })
  const explicit = { environment: { LYCHGATE_ISSUER: issuer } }
  t.match(await run(['client', 'list', '--data', data], explicit), { code: 0, stderr: '' })
})

t.test('a command that names another issuer than the server of its data folder is rejected', async (t) => {
  const environment = { LYCHGATE_ISSUER: 'https://auth.example.org' }
  t.match(await run(['client', 'list', '--data', data], { environment }), {
    code: 78,
    stdout: '',
    stderr: `lychgate: issuer: LYCHGATE_ISSUER makes it https://auth.example.org, but the server of ${data} was last started as http://localhost:${port}; leave LYCHGATE_ISSUER out, name another folder with --data, or start the server with that issuer first\n`,
  })
  const unused = await freePort()
  t.match(await run(['token', '--data', data, '--user', 'alice', '--port', String(unused)]), {
    code: 78,
    stderr: /^lychgate: issuer: --port makes it [^\n]+ was last started as [^\n]+\n$/,
  })
  const ofServer = { environment: { LYCHGATE_PORT: String(unused) } }
  t.match(await run(['client', 'list', '--data', data], ofServer), { code: 0, stderr: /^lychgate: issuer / })
})
