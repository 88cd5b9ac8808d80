/**
 * A program without a browser, such as one on a TV or over ssh: it shows a code and waits, RFC 8628. It knows only the
 * issuer, and registers itself without a redirect URI.
 */
import * as client from 'openid-client'
import QRCode from 'qrcode'

const { ISSUER: issuer = 'http://localhost:9400' } = process.env
const grantType = 'urn:ietf:params:oauth:grant-type:device_code'

// A program that is kept would store its client_id and its refresh token, as examples/cli-app does.
const config = await client.dynamicClientRegistration(
  new URL(issuer),
  {
    client_name: 'Living room',
    grant_types: [grantType, 'refresh_token'],
    redirect_uris: [],
    // A secret in a program that is distributed to users is not secret, RFC 8252 §8.5.
    token_endpoint_auth_method: 'none',
  },
  client.None(),
  // Plain http is for a development server; openid-client rejects it by default.
  { execute: issuer.startsWith('http://') ? [client.allowInsecureRequests] : [] },
)

// RFC 8628 §3.1: both codes. PKCE is not required; with it a stolen device code is of no use.
const verifier = client.randomPKCECodeVerifier()
const device = await client.initiateDeviceAuthorization(config, {
  scope: 'openid profile courses:read',
  code_challenge: await client.calculatePKCECodeChallenge(verifier),
  code_challenge_method: 'S256',
})

// RFC 8628 §3.3.1: the QR code has the user code in it; the page shows it again, for the user to compare.
const { user_code: code, verification_uri: page, verification_uri_complete: link = page } = device
console.log(await QRCode.toString(link, { type: 'terminal', small: true }))
console.log(`Open ${page} on your phone or computer, and type ${code}`)

// RFC 8628 §3.5: polls in the interval of the server, and more slowly when it says slow_down. Throws if the user denies,
// or does nothing until the code expires.
const tokens = await client.pollDeviceAuthorizationGrant(config, device, { code_verifier: verifier })
const { sub = '' } = tokens.claims() ?? {}
const user = await client.fetchUserInfo(config, tokens.access_token, sub)
console.log(`Signed in as ${user.name ?? sub}, for ${tokens.scope}`)
