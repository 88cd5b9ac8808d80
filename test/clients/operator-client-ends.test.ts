/** What an operator ends or replaces about a client while the server runs. */
import t from 'tap'
import { newFolder } from '../helpers/command.ts'
import { runHere } from '../helpers/commands.ts'
import { authorize, callApi, obtainTokens, postAs, refresh, type TestClient } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { addClient, assertRejected, json } from '../helpers/wire.ts'

const data = newFolder(t)
const server = await startServer(t, { store: `sqlite:${data}/lychgate.db` })

async function run(...command: string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await runHere([...command, '--data', data, '--json'])
  if (code !== 0) throw new Error(stderr)
  return JSON.parse(stdout)
}

const addMachine = () =>
  addClient(server, { redirectUris: [], grantTypes: ['client_credentials'], scope: ['courses:read'] })
const askToken = (client: TestClient) =>
  postAs(server, client, '/api/oauth/token', { grant_type: 'client_credentials' })

t.test('a locked client gets nothing, and what it has is invalid until it is unlocked', async (t) => {
  const machine = await addMachine()
  const { access_token: token } = await json(await askToken(machine))
  const web = await addClient(server)
  const tokens = await obtainTokens(server, web)
  for (const { id } of [machine, web])
    t.match(await run('client', 'lock', id, '--yes'), { client_id: id, locked_at: Number })
  await assertRejected(t, await askToken(machine), 'invalid_client', 401)
  t.equal((await callApi(server, '/api/courses', String(token))).status, 401)
  t.equal((await callApi(server, '/api/oauth/userinfo', tokens.access_token)).status, 401)
  await assertRejected(t, await refresh(server, web, tokens.refresh_token), 'invalid_client', 401)
  const page = await authorize(server, web, {}, new UserAgent(server.issuer))
  t.equal(page.status, 400, 'no user is sent to it')
  t.match(await run('client', 'show', web.id), { locked_at: Number })
  for (const { id } of [machine, web]) await run('client', 'unlock', id)
  t.equal((await callApi(server, '/api/courses', String(token))).status, 200)
  t.equal((await askToken(machine)).status, 200)
  t.equal((await refresh(server, web, tokens.refresh_token)).status, 200)
  t.notOk('locked_at' in (await run('client', 'show', web.id)))
})

t.test('a replaced secret is accepted as long as the operator says, and its use is recorded', async (t) => {
  const machine = await addMachine()
  const rotated = await run('client', 'rotate-secret', machine.id, '--keep-old', '7d', '--yes')
  const renewed = { ...machine, secret: String(rotated['client_secret']) }
  t.match(await run('client', 'show', machine.id), { previous_secret_expires_at: Number })
  t.notOk('secret_used_at' in (await run('client', 'show', machine.id)))
  t.equal((await askToken(renewed)).status, 200)
  const before = await run('client', 'show', machine.id)
  t.match(before, { secret_used_at: Number })
  t.notOk('previous_secret_used_at' in before, 'the old one was not used yet')
  t.equal((await askToken(machine)).status, 200)
  t.match(await run('client', 'show', machine.id), { previous_secret_used_at: Number })
  server.advance(8 * 86_400)
  await assertRejected(t, await askToken(machine), 'invalid_client', 401)
  t.equal((await askToken(renewed)).status, 200)
})

t.test(
  'without --keep-old the replaced secret is invalid at once, and a third secret ends the first',
  async (t) => {
    const first = await addMachine()
    const second = {
      ...first,
      secret: String(
        (await run('client', 'rotate-secret', first.id, '--keep-old', '30d', '--yes'))['client_secret'],
      ),
    }
    const third = {
      ...first,
      secret: String(
        (await run('client', 'rotate-secret', first.id, '--keep-old', '30d', '--yes'))['client_secret'],
      ),
    }
    const works = async () =>
      Promise.all([first, second, third].map(async (client) => (await askToken(client)).status === 200))
    t.strictSame(await works(), [false, true, true])
    const fourth = await run('client', 'rotate-secret', first.id, '--yes')
    t.strictSame(await works(), [false, false, false])
    t.equal((await askToken({ ...first, secret: String(fourth['client_secret']) })).status, 200)
  },
)

t.test('an operator lists and revokes the grants of a client that acts for itself', async (t) => {
  const machine = await addMachine()
  const { access_token: token } = await json(await askToken(machine))
  await askToken(machine)
  const list = async () =>
    (await run('grant', 'list', '--client', machine.id)) as unknown as { grant: string }[]
  t.equal((await list()).length, 2)
  t.match(await run('grant', 'revoke', '--client', machine.id, '--yes'), { revoked: 2 })
  t.strictSame(await list(), [])
  t.equal((await callApi(server, '/api/courses', String(token))).status, 401)
})

t.test(
  'a locked client that registered itself cannot unlock itself by an update, and keeps its secrets',
  async (t) => {
    const response = await fetch(`${server.issuer}/api/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        redirect_uris: ['http://127.0.0.1/cb'],
        token_endpoint_auth_method: 'client_secret_basic',
      }),
    })
    const registered = await json(response)
    const id = String(registered['client_id'])
    await run('client', 'rotate-secret', id, '--keep-old', '7d', '--yes')
    await run('client', 'lock', id, '--yes')
    const update = await fetch(String(registered['registration_client_uri']), {
      method: 'PUT',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${registered['registration_access_token']}`,
      },
      body: JSON.stringify({ client_id: id, client_name: 'Renamed', redirect_uris: ['http://127.0.0.1/cb'] }),
    })
    t.equal(update.status, 200)
    t.match(await run('client', 'show', id), {
      client_name: 'Renamed',
      locked_at: Number,
      previous_secret_expires_at: Number,
    })
  },
)
