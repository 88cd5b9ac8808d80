/** The admin API at the management listener of a running server: there, and nowhere else. */
import { writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { newFolder, run } from '../helpers/command.ts'
import { freePort } from '../helpers/free-port.ts'
import { startProcess } from '../helpers/process.ts'

const [data, port, managementPort] = [newFolder(t), await freePort(), await freePort()]
const secret = 'a secret that no response shows'.padEnd(40, '!')
const issuer = `http://localhost:${port}/t`
const { stop } = await startProcess(t, data, {
  port,
  LYCHGATE_ISSUER: issuer,
  LYCHGATE_ADMIN_LISTENER: 'management',
  LYCHGATE_MANAGEMENT_PORT: managementPort,
  LYCHGATE_SECRET: secret,
  LYCHGATE_MAIL_URL: 'smtp://mailer:hunter2@localhost:2525',
  LYCHGATE_MAIL_FROM: 'accounts@example.test',
})
const management = `http://127.0.0.1:${managementPort}/t`
const path = '/api/admin/v1'

const scope = 'admin:users:read admin:users:write admin:audit:read admin:clients:read'
const environment = { LYCHGATE_ADMIN_API: 'on', LYCHGATE_ISSUER: issuer, LYCHGATE_SECRET: secret }
const added = await run(
  [
    ...['client', 'add', '--data', data, '--name', 'Tool', '--json'],
    ...['--grant-type', 'client_credentials', '--scope', scope],
  ],
  { environment },
)
const client = JSON.parse(added.stdout) as { client_id: string; client_secret: string }
const granted = await fetch(`${issuer}/api/oauth/token`, {
  method: 'POST',
  headers: { authorization: `Basic ${btoa(`${client.client_id}:${client.client_secret}`)}` },
  body: new URLSearchParams({ grant_type: 'client_credentials', scope }),
})
const token = ((await granted.json()) as { access_token: string }).access_token
const authorization = { authorization: `Bearer ${token}` }

t.test('the management listener serves it, for the tokens of the issuer', async (t) => {
  const listed = await fetch(`${management}${path}/users`, { headers: authorization })
  t.equal(listed.status, 200)
  t.match(await listed.json(), { items: [{ username: 'alice' }] })
  const invited = await fetch(`${management}${path}/users`, {
    method: 'POST',
    headers: { ...authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'carol@example.test' }),
  })
  t.equal(invited.status, 201, 'with the body of the request')
  t.match(invited.headers.get('location'), /^\/t\/api\/admin\/v1\/users\/user_/)
  const bare = await fetch(`${management}${path}/users`)
  t.equal(bare.status, 401)
  const [, metadata = ''] =
    /resource_metadata="([^"]+)"/.exec(bare.headers.get('www-authenticate') ?? '') ?? []
  t.match(await (await fetch(metadata)).json(), { resource: issuer }, 'the audience is the issuer, as before')
  t.equal((await fetch(`${management}${path}/no/such`, { headers: authorization })).status, 404)
  const described = await (await fetch(`${management}${path}/openapi.json`)).json()
  t.match(described, { servers: [{ url: '/t' }] }, 'its URLs are those of the listener')
})

t.test('files are exported and applied there, with a token of the issuer', async (t) => {
  const secretFile = join(data, 'tool.secret')
  writeFileSync(secretFile, client.client_secret)
  const at = ['--server', issuer, '--client-id', client.client_id, '--secret-file', secretFile]
  const there = [...at, '--api', management]
  const exported = await run(['export', ...there])
  t.equal(exported.code, 0, exported.stderr)
  t.match(exported.stdout, /- username: alice\n/)
  t.equal(exported.stderr, 'upstreams are left out: the token has no scope admin:upstreams:read\n')
  t.notMatch(exported.stdout, 'upstreams')
  const file = join(data, 'groups.yaml')
  writeFileSync(file, 'groups: [{ name: choir }]\n')
  t.match(await run(['apply', '-f', file, ...there]), { code: 0, stdout: /1 group added/ })
  t.match(
    await run(['export', ...at]),
    { code: 1, stderr: /is admin\.api on, and at this place/ },
    'not at the issuer',
  )
  t.match(await run(['export', ...at, '--api', 'http://id.example.org']), {
    code: 1,
    stderr: /--api must be an https URL, or one of this computer/,
  })
})

t.test('settings are those in effect, with where each comes from, and no secret', async (t) => {
  const response = await fetch(`${management}${path}/settings`, { headers: authorization })
  const text = await response.text()
  const { mode, items } = JSON.parse(text) as { mode: string; items: { option: string }[] }
  t.equal(mode, 'dev')
  const setting = (option: string) => items.find((one) => one.option === option)
  t.strictSame(setting('admin.listener'), {
    option: 'admin.listener',
    value: 'management',
    source: 'variable',
    name: 'LYCHGATE_ADMIN_LISTENER',
  })
  t.match(setting('port'), { value: port, source: 'flag', name: '--port' })
  t.match(setting('admin.group'), { value: 'admins', source: 'default' })
  t.match(setting('secret'), { value: '***', source: 'variable' })
  t.match(setting('mail.url'), { value: 'smtp://mailer:***@localhost:2525' })
  t.notMatch(text, secret)
  t.notMatch(text, 'hunter2')
  const printed = await run(['config', 'print', '--dev', '--json'], { environment })
  t.strictSame(
    items.map(({ option }) => option),
    Object.keys(JSON.parse(printed.stdout).settings),
    'the same as on the command line',
  )
})

t.test('the listener of the issuer serves nothing of it', async (t) => {
  for (const method of ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE', 'OPTIONS', 'PUT'])
    for (const end of ['/users', '/users/x', '/openapi.json', '/no/such', '/%75sers']) {
      const { status, headers } = await fetch(`${issuer}${path}${end}`, { method, headers: authorization })
      t.equal(status, 404, `${method} ${end}`)
      t.equal(headers.get('allow'), null)
    }
  t.equal((await fetch(`${issuer}/%61pi/admin/v1/users`, { headers: authorization })).status, 404)
})

t.test('the management listener serves nothing else of the issuer, and to no other Host', async (t) => {
  t.equal((await fetch(`${management}/.well-known/openid-configuration`)).status, 404)
  t.equal((await fetch(`${management}/api/oauth/token`, { method: 'POST' })).status, 405)
  const status = await new Promise((resolve, reject) => {
    const headers = { ...authorization, host: 'evil.example' }
    const asked = request(`${management}${path}/users`, { headers }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
    asked.on('error', reject)
    asked.end()
  })
  t.equal(status, 403, 'DNS rebinding')
  t.equal((await stop('SIGTERM')).code, 0)
})

t.test('it needs such a listener', async (t) => {
  const { code, stderr } = await run(['config', 'validate', '--dev'], {
    environment: { LYCHGATE_ADMIN_LISTENER: 'management' },
  })
  t.equal(code, 78)
  t.match(stderr, 'management.port: is missing; admin.listener: management needs it')
})
