/** The example that adds users through the admin API, with types made from its description. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { newFolder } from '../helpers/command.ts'
import { runHere } from '../helpers/commands.ts'
import { runExample, startExampleServer } from '../helpers/examples.ts'

const { issuer, location } = await startExampleServer(t)
const file = join(newFolder(t), 'choir.csv')
writeFileSync(file, 'dora@example.com, Dora Example\nemil@example.com\n')

async function addClient(scope: string): Promise<Record<string, string>> {
  const flags = ['--name', 'Provisioning', '--grant-type', 'client_credentials', '--scope', scope]
  const method = ['--auth', 'client_secret_basic', '--json']
  const { code, stdout, stderr } = await runHere(['client', 'add', ...flags, ...method, ...location])
  if (code !== 0) throw new Error(stderr)
  const { client_id: id, client_secret: secret } = JSON.parse(stdout)
  return { ISSUER: issuer, CLIENT_ID: id, CLIENT_SECRET: secret }
}

const run = (environment: Record<string, string>) =>
  runExample(t, ['admin-tool/add-users.ts', file, 'choir'], environment).end()

t.test('the tool adds users to a group, and a second run changes nothing', async (t) => {
  const environment = await addClient('admin:users:read admin:users:write')
  const link = /^(dora|emil)@example\.com {2}http:\/\/localhost:\d+\/\S+$/gm
  const { code, output } = await run(environment)
  t.equal(code, 0, output)
  t.equal(output.match(link)?.length, 2, output)
  t.match(output, /^choir has 2 members$/m)
  t.match(await run(environment), { code: 0, output: /^choir has 2 members\n$/ })
  const { stdout } = await runHere(['user', 'show', 'dora@example.com', ...location])
  t.match(stdout, /^groups +choir$/m)
})

t.test('without the scope to write it says what is missing', async (t) => {
  writeFileSync(file, 'fritz@example.com\n')
  t.match(await run(await addClient('admin:users:read')), {
    code: 1,
    output: /403 .*scope="admin:users:write"/,
  })
})
