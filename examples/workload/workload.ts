/**
 * A workload that gets a token for itself without a secret or a key: it shows the token that its platform gave it, RFC 7521
 * §4.2. It runs in GitHub Actions, and in Kubernetes with TOKEN_FILE.
 */
import { readFileSync } from 'node:fs'
import {
  allowInsecureRequests,
  type ClientAuth,
  clientCredentialsGrant,
  discovery,
  fetchProtectedResource,
} from 'openid-client'

const {
  ISSUER = 'http://localhost:9400',
  TOKEN_FILE,
  ACTIONS_ID_TOKEN_REQUEST_URL: url = '',
  ACTIONS_ID_TOKEN_REQUEST_TOKEN: runnerToken,
} = process.env

/** The token of the platform, read again each time: it is replaced before it expires. */
async function platformToken(): Promise<string> {
  if (TOKEN_FILE !== undefined) return readFileSync(TOKEN_FILE, 'utf8').trim()
  const response = await fetch(`${url}&audience=${encodeURIComponent(ISSUER)}`, {
    headers: { authorization: `bearer ${runnerToken}` },
  })
  if (!response.ok) throw new Error(`the platform responded with ${response.status}`)
  const { value } = (await response.json()) as { value: string }
  return value
}

const token = await platformToken()
// No client_id: issuer, subject and audience of the token name the client.
const byPlatformToken: ClientAuth = (_as, _client, body) => {
  body.set('client_assertion_type', 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
  body.set('client_assertion', token)
}
const issuer = new URL(ISSUER)
const config = await discovery(issuer, 'named by its token', undefined, byPlatformToken, {
  // Only for an issuer on this computer.
  execute: issuer.protocol === 'http:' ? [allowInsecureRequests] : [],
})
const { access_token: accessToken } = await clientCredentialsGrant(config)
const response = await fetchProtectedResource(config, accessToken, new URL('/api/courses', issuer), 'GET')
console.log(`${response.status} ${await response.text()}`)
