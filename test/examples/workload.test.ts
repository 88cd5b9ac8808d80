/** The example that shows the token of its platform instead of a secret. */
import { join } from 'node:path'
import t from 'tap'
import { newFolder } from '../helpers/command.ts'
import { runHere } from '../helpers/commands.ts'
import { runExample, startExampleServer } from '../helpers/examples.ts'
import { freePort } from '../helpers/free-port.ts'

const { issuer, location } = await startExampleServer(t)
const TOKEN_FILE = join(newFolder(t), 'token')
const ORIGIN = `http://127.0.0.1:${await freePort()}`
const platform = runExample(t, ['workload/platform.ts'], { ORIGIN, AUDIENCE: issuer, TOKEN_FILE })
await platform.until(/ready/)
const branch = 'repo:example/courses:ref:refs/heads/main'
const github = {
  ISSUER: issuer,
  ACTIONS_ID_TOKEN_REQUEST_URL: `${ORIGIN}/actions/token?api-version=2.0`,
  ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'a-runner',
}

async function add(name: string, trusted: Readonly<Record<string, unknown>>): Promise<void> {
  const flags = ['--name', name, '--grant-type', 'client_credentials', '--scope', 'courses:read']
  const trust = ['--auth', 'private_key_jwt', '--trusted-issuers', JSON.stringify([trusted])]
  // No assertion: outside of a test, tap takes the first one for the end of the file.
  const { code, stderr } = await runHere(['client', 'add', ...flags, ...trust, ...location])
  if (code !== 0) throw new Error(stderr)
}

await add('Publish', { issuer: `${ORIGIN}/actions`, subject: branch })
await add('Import', {
  issuer: `${ORIGIN}/cluster`,
  subject: 'system:serviceaccount:courses:import',
  reusable: true,
})

t.test('a step of a workflow gets a token without a secret', async (t) => {
  t.match(await runExample(t, ['workload/workload.ts'], github).end(), {
    code: 0,
    output: /^200 .*"caller":"client"/,
  })
})

t.test('a pod does, as often as it likes', async (t) => {
  for (const _time of [1, 2])
    t.match(await runExample(t, ['workload/workload.ts'], { ISSUER: issuer, TOKEN_FILE }).end(), {
      code: 0,
      output: /^200 .*"caller":"client"/,
    })
})

t.test('a workload that is not trusted gets nothing', async (t) => {
  const stranger = { ...github, ACTIONS_ID_TOKEN_REQUEST_TOKEN: 'another' }
  t.match(await runExample(t, ['workload/workload.ts'], stranger).end(), { code: 1, output: /401/ })
  const { stdout } = await runHere(['client', 'list', '--json', ...location])
  const publish = JSON.parse(stdout).find(
    ({ client_name: name }: { client_name: string }) => name === 'Publish',
  )
  await runHere(['client', 'remove', publish.client_id, '--yes', ...location])
  const removed = await runExample(t, ['workload/workload.ts'], github).end()
  t.match(removed, { code: 1, output: /invalid_client/ })
})
