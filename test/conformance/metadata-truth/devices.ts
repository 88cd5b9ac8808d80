import { grantType } from '../../../src/specs/rfc8628-device-grant/rules/codes.ts'
import { integrate } from '../../helpers/authorization.ts'
import { pageOf, type StartedDevice } from '../../helpers/device.ts'
import { assertRejected, json } from '../../helpers/wire.ts'
import type { Exercise, Promises } from './promise.ts'
import { type Subject, send } from './subject.ts'

const addDevice = ({ server }: Subject) =>
  integrate(server, { redirectUris: [], grantTypes: [grantType], authenticationMethod: 'none' })

const begin: Exercise<unknown> = async (t, subject, url) => {
  const started = await send(subject, 'device_authorization_endpoint', await addDevice(subject), {})
  t.equal(started.status, 200)
  t.match(await json(started), { device_code: String, user_code: String })
  const other = await send(subject, 'device_authorization_endpoint', subject.client, {})
  await assertRejected(t, other, 'unauthorized_client')
  const get = await fetch(String(url))
  t.equal(get.status, 405)
  t.match(get.headers.get('allow'), 'POST')
}

/** Approves a device as alice, who is signed in, and fetches its tokens. */
export const redeemDevice: Exercise = async (t, subject) => {
  const { agent } = subject
  const client = await addDevice(subject)
  const fields = { scope: 'courses:read' }
  const started = await send(subject, 'device_authorization_endpoint', client, fields)
  const device = (await json(started)) as unknown as StartedDevice
  const form = pageOf(await agent.open(device.verification_uri_complete))
  const confirmation = pageOf(await agent.submit(form, {}))
  await agent.submit(confirmation, { decision: 'approve' })
  const poll = { grant_type: grantType, device_code: device.device_code }
  const response = await send(subject, 'token_endpoint', client, poll)
  t.equal(response.status, 200)
  t.match(await json(response), { access_token: String, scope: 'courses:read' })
}

/** What RFC 8628 adds to the metadata. */
export const devicePromises: Promises = {
  device_authorization_endpoint: { value: begin },
}
