import t from 'tap'
import { start } from '../../src/dev/start.ts'
import { grantType } from '../../src/specs/rfc8628-device-grant/rules/codes.ts'
import { addDeviceClient, poll, startDevice } from '../helpers/device.ts'
import { postAs, register } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { assertRejected, json } from '../helpers/wire.ts'

const server = await startServer(t, { mode: 'dev' })
const client = await addDeviceClient(server)

async function act(userCode: string, action: string, body: object = {}, status = 200) {
  const response = await fetch(`${server.issuer}/_dev/devices/${userCode}/${action}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const found = await json(response)
  t.equal(response.status, status, JSON.stringify(found))
  return found
}

t.test('a test decides in place of the user', async (t) => {
  const device = await startDevice(server, client)
  const { devices } = await json(await fetch(`${server.issuer}/_dev/devices`))
  t.match(devices, [{ user_code: device.user_code, client_id: client.id, state: 'pending' }])
  await act(device.user_code, 'approve', { user: 'nobody' }, 400)
  await act(device.user_code, 'approve', {}, 400)
  await act('BBBB-BBBB', 'approve', { user: 'alice' }, 404)
  t.match(await act(device.user_code, 'approve', { user: 'alice', scope: 'openid' }), { state: 'approved' })
  await act(device.user_code, 'deny', {}, 409)
  const response = await poll(server, client, device)
  t.equal(response.status, 200)
  t.equal((await json(response))['scope'], 'openid')

  const denied = await startDevice(server, client)
  t.match(await act(denied.user_code, 'deny'), { state: 'denied' })
  await act(denied.user_code, 'approve', { user: 'alice' }, 409)
  await assertRejected(t, await poll(server, client, denied), 'access_denied')

  const expired = await startDevice(server, client)
  t.match(await act(expired.user_code, 'expire'), { state: 'expired' })
  await assertRejected(t, await poll(server, client, expired), 'expired_token')
})

t.test('a test slows a device down, and the flow shows its polls as one line', async (t) => {
  const own = await addDeviceClient(server)
  const device = await startDevice(server, own)
  await assertRejected(t, await poll(server, own, device), 'authorization_pending')
  await act(device.user_code, 'slow-down')
  await assertRejected(t, await poll(server, own, device), 'slow_down')
  await act(device.user_code, 'approve', { user: 'alice' })
  t.equal((await poll(server, own, device)).status, 200)
  const flows = await json(await fetch(`${server.issuer}/_dev/flows.json`))
  const [flow] = (flows['flows'] as { client?: { id: string }; exchanges: object[] }[]).filter(
    (each) => each.client?.id === own.id,
  )
  const polls = flow?.exchanges.filter((each) => 'step' in each && each.step === 'poll of a device')
  t.match(polls, [{ times: 2, refused: { error: 'slow_down' } }, { status: 200 }])
})

t.test('a server that signs in and consents by itself approves devices', async (t) => {
  const users = [{ username: 'carol' }]
  const own = await start({ users, config: { dev: { autoSignIn: 'carol', autoConsent: 'on' } } })
  t.teardown(() => own.stop())
  const grantTypes = { grant_types: [grantType], redirect_uris: [] }
  const device = await register(own, grantTypes)
  const codes = await postAs(own, device, '/oauth/device_authorization', { scope: 'openid' })
  const fields = { grant_type: grantType, device_code: String((await json(codes))['device_code']) }
  t.equal((await postAs(own, device, '/api/oauth/token', fields)).status, 200)
})
