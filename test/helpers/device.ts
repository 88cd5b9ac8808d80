import { grantType } from '../../src/specs/rfc8628-device-grant/rules/codes.ts'
import { type Fields, type Issuer, postAs, type TestClient } from './flow.ts'
import { alice } from './server.ts'
import { type Page, UserAgent } from './user-agent.ts'
import { addClient, json } from './wire.ts'

/** A response of the device authorization endpoint, RFC 8628 §3.2. */
export interface StartedDevice {
  readonly device_code: string
  readonly user_code: string
  readonly verification_uri: string
  /** Absent for a client that no operator added. */
  readonly verification_uri_complete: string
  readonly expires_in: number
  readonly interval: number
}

type TestServer = Parameters<typeof addClient>[0]

/** A client for devices, public unless the request says otherwise. */
export function addDeviceClient(server: TestServer, request: Parameters<typeof addClient>[1] = {}) {
  return addClient(server, {
    name: 'Living room',
    redirectUris: [],
    grantTypes: [grantType, 'refresh_token'],
    authenticationMethod: 'none',
    ...request,
  })
}

/** The response of the device authorization endpoint; fields override or (undefined) omit. */
export function requestDevice(server: Issuer, client: TestClient, fields: Fields = {}): Promise<Response> {
  return postAs(server, client, '/oauth/device_authorization', { scope: 'openid courses:read', ...fields })
}

/** The codes of a new device. */
export async function startDevice(
  server: Issuer,
  client: TestClient,
  fields: Fields = {},
): Promise<StartedDevice> {
  const response = await requestDevice(server, client, fields)
  const body = await json(response)
  if (response.status !== 200) throw new Error(`no device: ${response.status} ${JSON.stringify(body)}`)
  return body as unknown as StartedDevice
}

/** The response to a poll, RFC 8628 §3.4. */
export function poll(
  server: Issuer,
  client: TestClient,
  device: Pick<StartedDevice, 'device_code'>,
  fields: Fields = {},
): Promise<Response> {
  return postAs(server, client, '/api/oauth/token', {
    grant_type: grantType,
    device_code: device.device_code,
    ...fields,
  })
}

/** The page of a browser, which must not have been redirected away. */
export function pageOf(landing: Awaited<ReturnType<UserAgent['open']>>): Page {
  if (landing.at !== 'page') throw new Error(`redirected to ${landing.location}`)
  return landing.page
}

/** Types a code, and returns the page that follows. */
export async function typeCode(server: Issuer, agent: UserAgent, userCode: string): Promise<Page> {
  const form = pageOf(await agent.open(`${server.issuer}/device`))
  return pageOf(await agent.submit(form, { user_code: userCode }))
}

/** Types a code and signs in: the page on which the user decides. */
export async function openConfirmation(
  server: Issuer,
  userCode: string,
  agent = new UserAgent(server.issuer),
  user = alice,
): Promise<Page> {
  const page = await typeCode(server, agent, userCode)
  const asks = page.forms[0]?.fields.some(({ name }) => name === 'password')
  return asks ? pageOf(await agent.submit(page, user)) : page
}

/** Types a code, signs in, and decides. */
export async function decide(
  server: Issuer,
  userCode: string,
  decision: 'approve' | 'deny' = 'approve',
  agent = new UserAgent(server.issuer),
): Promise<Page> {
  return pageOf(await agent.submit(await openConfirmation(server, userCode, agent), { decision }))
}
