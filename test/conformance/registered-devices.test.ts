/** The device grant for clients that no operator added: the option `registration.deviceGrant`. */
import { join } from 'node:path'
import t from 'tap'
import { insert, update } from '../../src/domain/decision.ts'
import { grantType } from '../../src/specs/rfc8628-device-grant/rules/codes.ts'
import { newFolder } from '../helpers/command.ts'
import {
  addDeviceClient,
  decide,
  pageOf,
  poll,
  requestDevice,
  startDevice,
  typeCode,
} from '../helpers/device.ts'
import { redirectUri, refresh, register } from '../helpers/flow.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { assertRejected, introspect, json } from '../helpers/wire.ts'

const store = `sqlite:${join(newFolder(t), 'lychgate.db')}`
const off = await startServer(t, { store, rateLimits: 'off' })
const { issuer } = off
const on = await startServer(t, { store, issuer, rateLimits: 'off', registration: { deviceGrant: 'on' } })
const both = { grant_types: [grantType, 'refresh_token'], redirect_uris: [] }

const send = async (server: TestServer, metadata: object) => {
  const response = await fetch(`${server.origin}/api/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'Telly', ...metadata }),
  })
  return { status: response.status, body: await json(response) }
}
const assertClosed = async (response: Response) => {
  const { error, error_description: why } = await json(response)
  t.strictSame([response.status, error], [400, 'unauthorized_client'])
  t.match(why, /registration\.deviceGrant/, 'it names the option')
}

t.test('the option is off, and on for a development server', async (t) => {
  const development = await startServer(t, { mode: 'dev' })
  t.equal((await send(development, both)).status, 201)
  t.equal((await send(off, both)).status, 400)
  const metadata = await json(await fetch(`${off.origin}/.well-known/oauth-authorization-server`))
  t.match(
    metadata['device_authorization_endpoint'],
    /\/oauth\/device_authorization$/,
    'for clients of operators',
  )
  t.ok((metadata['grant_types_supported'] as string[]).includes(grantType))
})

t.test('a registration says which grant types it got', async (t) => {
  const only = await send(off, both)
  t.match(only, { status: 400, body: { error: 'invalid_client_metadata' } })
  t.match(only.body['error_description'], /registration\.deviceGrant/)
  const more = await send(off, {
    grant_types: ['authorization_code', grantType],
    redirect_uris: [redirectUri],
  })
  t.match(more, { status: 201, body: { grant_types: ['authorization_code'] } })
  const open = await send(on, {
    grant_types: ['authorization_code', grantType],
    redirect_uris: [redirectUri],
  })
  t.strictSame((open.body['grant_types'] as string[]).length, 2)
})

t.test('where it is off, a client that registered itself starts and redeems nothing', async (t) => {
  const client = await register(on, both)
  await assertClosed(await requestDevice(off, client))
  await assertClosed(await requestDevice(off, await register(off)))
  const device = await startDevice(on, client)
  await decide(on, device.user_code)
  await assertClosed(await poll(off, client, device))
  const { access_token: token } = await json(await poll(on, client, device))
  t.equal(
    (await introspect(off, client, String(token)))['active'],
    true,
    'tokens that were issued stay valid',
  )
})

t.test('a client of a metadata document is no different', async (t) => {
  const known = await register(on, both)
  const row = await on.deps.store.find('client', known.id)
  if (row === undefined) throw new Error('the client is there')
  const id = 'client_of_a_document'
  const published = { host: 'agents.example', terms: 'x' }
  await on.deps.store.write(insert('client', { ...row, id, published }))
  await assertClosed(await requestDevice(off, { ...known, id }))
  const started = await startDevice(on, { ...known, id })
  t.notOk('verification_uri_complete' in started)
})

t.test('where it is on, such a client gets no refresh token and no link with the code', async (t) => {
  const client = await register(on, both)
  const device = await startDevice(on, client, { scope: 'openid offline_access' })
  t.notOk('verification_uri_complete' in device)
  await decide(on, device.user_code)
  const issued = await json(await poll(on, client, device))
  t.notOk('refresh_token' in issued)
  t.equal(issued['scope'], 'openid', 'offline_access is ignored')
})

t.test('a link with the code of such a client does not save typing it', async (t) => {
  const client = await register(on, both)
  const { user_code: code } = await startDevice(on, client, { scope: 'openid' })
  const agent = new UserAgent(on.origin)
  const linked = pageOf(await agent.open(`${on.origin}/device?user_code=${code}`))
  const again = pageOf(await agent.submit(linked, {}))
  t.equal(again.status, 400)
  t.match(again.html, /role="alert">Enter the code that your device shows/)
  t.notMatch(again.html, code)
  const confirm = pageOf(await agent.open(`${on.origin}/device/confirm?user_code=${code}`))
  t.match(confirm.url, /\/device\?user_code=/, 'nothing was opened')
  t.match((await typeCode({ issuer: on.origin }, agent, code)).url, /\/login/, 'typed, it is')

  const operators = await addDeviceClient(on)
  const { user_code: theirs } = await startDevice(on, operators)
  const filled = pageOf(await agent.open(`${on.origin}/device?user_code=${theirs}`))
  t.match(pageOf(await agent.submit(filled, {})).url, /\/login/)
})

t.test('what an operator added is as it was, and so are tokens of before', async (t) => {
  const client = await addDeviceClient(off)
  const device = await startDevice(off, client)
  t.equal(device.verification_uri_complete, `${issuer}/device?user_code=${device.user_code}`)
  const row = await on.deps.store.find('client', client.id)
  if (row === undefined) throw new Error('the client is there')
  const browser = new UserAgent(off.origin)
  const started = await startDevice(off, client, { scope: 'openid' })
  await decide(off, started.user_code, 'approve', browser)
  const { refresh_token: token } = await json(await poll(off, client, started))
  // As if it had been issued to a client that registered itself, by a server of before.
  await off.deps.store.write(update('client', { ...row, origin: 'registered' }))
  t.equal((await refresh(off, client, String(token))).status, 200)
  await assertRejected(t, await requestDevice(off, client), 'unauthorized_client')
})
