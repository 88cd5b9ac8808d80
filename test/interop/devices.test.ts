/** Client libraries of other authors on a device without a browser, RFC 8628. */
import {
  deviceAuthorizationRequest,
  deviceCodeGrantRequest,
  discoveryRequest,
  allowInsecureRequests as insecure,
  None as noAuthentication,
  processDeviceAuthorizationResponse,
  processDeviceCodeResponse,
  processDiscoveryResponse,
} from 'oauth4webapi'
import {
  allowInsecureRequests,
  discovery,
  fetchUserInfo,
  initiateDeviceAuthorization,
  None,
  pollDeviceAuthorizationGrant,
  refreshTokenGrant,
} from 'openid-client'
import t from 'tap'
import { addDeviceClient, decide } from '../helpers/device.ts'
import { startServer } from '../helpers/server.ts'

const server = await startServer(t, { clock: 'machine', deviceGrant: { intervalSeconds: 1 } })
const { id } = await addDeviceClient(server)

t.test('[rfc8628-3.3-interaction] openid-client polls until the user has approved', async (t) => {
  const config = await discovery(new URL(server.issuer), id, {}, None(), { execute: [allowInsecureRequests] })
  const device = await initiateDeviceAuthorization(config, { scope: 'openid profile' })
  const polling = pollDeviceAuthorizationGrant(config, device)
  await decide(server, device.user_code)
  const tokens = await polling
  const sub = tokens.claims()?.sub ?? ''
  t.match(await fetchUserInfo(config, tokens.access_token, sub), { sub, name: 'Alice Ångström' })
  t.ok((await refreshTokenGrant(config, tokens.refresh_token ?? '')).access_token)

  const denied = await initiateDeviceAuthorization(config, { scope: 'openid' })
  await decide(server, denied.user_code, 'deny')
  await t.rejects(pollDeviceAuthorizationGrant(config, denied), {
    code: 'OAUTH_RESPONSE_BODY_ERROR',
    error: 'access_denied',
    status: 400,
  })
})

t.test('[rfc8628-3.5-pending] oauth4webapi understands every response', async (t) => {
  const issuer = new URL(server.issuer)
  const options = { [insecure]: true }
  const as = await processDiscoveryResponse(
    issuer,
    await discoveryRequest(issuer, { algorithm: 'oauth2', ...options }),
  )
  const client = { client_id: id }
  const request = await deviceAuthorizationRequest(
    as,
    client,
    noAuthentication(),
    { scope: 'openid' },
    options,
  )
  const device = await processDeviceAuthorizationResponse(as, client, request)
  t.match(device, { verification_uri: `${server.issuer}/device`, interval: 1 })
  const ask = async () => {
    const response = await deviceCodeGrantRequest(as, client, noAuthentication(), device.device_code, options)
    return processDeviceCodeResponse(as, client, response)
  }
  await t.rejects(ask(), { code: 'OAUTH_RESPONSE_BODY_ERROR', error: 'authorization_pending', status: 400 })
  await decide(server, device.user_code)
  const tokens = await ask()
  t.match(tokens, { token_type: 'bearer', scope: 'openid' })
  await t.rejects(ask(), { code: 'OAUTH_RESPONSE_BODY_ERROR', error: 'invalid_grant', status: 400 })
})
