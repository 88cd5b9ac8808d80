import { setTimeout } from 'node:timers/promises'
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  buildAuthorizationUrlWithJAR,
  buildAuthorizationUrlWithPAR,
  type Configuration,
  calculatePKCECodeChallenge,
  clientCredentialsGrant,
  discovery,
  dynamicClientRegistration,
  enableNonRepudiationChecks,
  fetchProtectedResource,
  fetchUserInfo,
  getDPoPHandle,
  initiateDeviceAuthorization,
  None,
  PrivateKeyJwt,
  pollDeviceAuthorizationGrant,
  randomDPoPKeyPair,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
  refreshTokenGrant,
  tokenIntrospection,
  tokenRevocation,
} from 'openid-client'
import { decide } from '../../helpers/device.ts'
import type { ClientUnderTest, Surroundings } from './client.ts'

const redirectUri = 'http://127.0.0.1:51004/callback'

/** An application over openid-client: as its README shows it, with or without its check of signatures. */
export function openidClient(name: string, checksSignatures: boolean): ClientUnderTest {
  return { name, run: (surroundings, at) => run(surroundings, at, checksSignatures) }
}

async function run(
  { issuer, user, service, waitForExpiry, tell, device }: Surroundings,
  at: (step: string) => void,
  checksSignatures: boolean,
) {
  at('discovery')
  const execute = [allowInsecureRequests, ...(checksSignatures ? [enableNonRepudiationChecks] : [])]
  const metadata = { client_name: 'openid-client', redirect_uris: [redirectUri] }
  const config = await dynamicClientRegistration(new URL(issuer), metadata, None(), { execute })

  at('code')
  const { url, checks } = await authorizationRequest(config)
  const response = await user.approve(url)
  const obtainedAt = Math.floor(Date.now() / 1000)
  const tokens = await authorizationCodeGrant(config, response, checks)
  const sub = tokens.claims()?.sub ?? ''
  const now = (await waitForExpiry?.()) ?? obtainedAt
  const api = new URL(`${issuer}/api/courses`)
  if (now < obtainedAt + (tokens.expires_in ?? 0)) {
    at('UserInfo')
    await fetchUserInfo(config, tokens.access_token, sub)
    at('API')
    await fetchProtectedResource(config, tokens.access_token, api, 'GET')
  }

  at('refresh')
  const refreshed = await refreshTokenGrant(config, tokens.refresh_token ?? '')
  await fetchProtectedResource(config, refreshed.access_token, api, 'GET')
  at('second refresh')
  const again = await refreshTokenGrant(config, refreshed.refresh_token ?? tokens.refresh_token ?? '')

  at('introspection')
  await tokenRevocation(config, again.access_token)
  await judged(tell, async () => (await tokenIntrospection(config, again.access_token)).active)
  // Its assertion has the time of this machine.
  if (waitForExpiry === undefined) await actForItself({ issuer, service, user }, at)
  // How it polls has nothing to do with signatures.
  if (device !== undefined && !checksSignatures) await actOnDevice(issuer, device, at)
  at('end')
}

/** The same application without a user: it signs instead of sending a secret. */
async function actForItself(
  { issuer, service, user }: Pick<Surroundings, 'issuer' | 'service' | 'user'>,
  at: (step: string) => void,
) {
  at('service')
  const { privateKey, jwk } = service.key
  const key = privateKey.toCryptoKey({ name: 'ECDSA', namedCurve: 'P-256' }, false, ['sign'])
  const authentication = PrivateKeyJwt({ key, kid: String(jwk['kid']) })
  const execute = [allowInsecureRequests]
  const config = await discovery(new URL(issuer), service.id, undefined, authentication, { execute })
  const tokens = await clientCredentialsGrant(config, { scope: 'courses:read' })
  at('service API')
  const api = new URL(`${issuer}/api/courses`)
  await fetchProtectedResource(config, tokens.access_token, api, 'GET')
  // A proof is for one URL: the issuer rejects that of an endpoint elsewhere.
  if (!config.serverMetadata().token_endpoint?.startsWith(issuer)) return
  at('key')
  const DPoP = getDPoPHandle(config, await randomDPoPKeyPair('ES256'))
  const bound = await clientCredentialsGrant(config, { scope: 'courses:read' }, { DPoP })
  at('key API')
  await fetchProtectedResource(config, bound.access_token, api, 'GET', null, undefined, { DPoP })
  at('pushed request')
  const { url: plain, checks } = await authorizationRequest(config)
  const pushed = await buildAuthorizationUrlWithPAR(config, plain.searchParams)
  await authorizationCodeGrant(config, await user.approve(pushed), checks)
  at('signed request')
  const again = await authorizationRequest(config)
  const signed = await buildAuthorizationUrlWithJAR(config, again.url.searchParams, key)
  await authorizationCodeGrant(config, await user.approve(signed), again.checks)
}

/** The same application on a device without a browser. */
async function actOnDevice(issuer: string, conduct: Surroundings['device'], at: (step: string) => void) {
  at('device')
  const metadata = { redirect_uris: [], grant_types: ['urn:ietf:params:oauth:grant-type:device_code'] }
  const execute = [allowInsecureRequests]
  const config = await dynamicClientRegistration(new URL(issuer), metadata, None(), { execute })
  const device = await initiateDeviceAuthorization(config, { scope: 'courses:read' })
  if (conduct === 'approved') await decide({ issuer }, device.user_code)
  // It adds to its interval; that of the server would only make the test slow.
  const polling = pollDeviceAuthorizationGrant(config, { ...device, interval: 0.1 }, undefined, {
    ...(conduct === 'gives up' && { signal: AbortSignal.timeout(500) }),
  })
  if (conduct !== 'gives up') return void (await polling)
  // It learns of the signal when its interval is over.
  polling.catch(() => {})
  await setTimeout(500)
}

/** An authorization request, and the values to check its response against. */
async function authorizationRequest(config: Configuration) {
  const [verifier, state, nonce] = [randomPKCECodeVerifier(), randomState(), randomNonce()]
  const url = buildAuthorizationUrl(config, {
    redirect_uri: redirectUri,
    scope: 'openid courses:read',
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state,
    nonce,
  })
  return { url, checks: { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce } }
}

/** Reports the result of introspecting a dead token to the server. */
export async function judged(tell: Surroundings['tell'], isActive: () => Promise<unknown>): Promise<void> {
  try {
    await tell?.((await isActive()) ? 'fooled' : 'rejected')
  } catch (error) {
    await tell?.('rejected')
    throw error
  }
}
