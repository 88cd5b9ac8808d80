/**
 * A client without a user that calls the API, RFC 6749 §4.4. It authenticates with a key instead of a secret, RFC 7523 §2.2.
 */
import { createPrivateKey } from 'node:crypto'
import { readFileSync } from 'node:fs'
import {
  allowInsecureRequests,
  clientCredentialsGrant,
  discovery,
  fetchProtectedResource,
  PrivateKeyJwt,
} from 'openid-client'

const { ISSUER = 'http://localhost:9400', CLIENT_ID = '', KEY_FILE = 'service.pem' } = process.env

// A client with several keys names one by its `kid`; this one has one.
const key = createPrivateKey(readFileSync(KEY_FILE)).toCryptoKey({ name: 'Ed25519' }, false, ['sign'])
const issuer = new URL(ISSUER)
const config = await discovery(issuer, CLIENT_ID, undefined, PrivateKeyJwt(key), {
  // Only for an issuer on this computer.
  execute: issuer.protocol === 'http:' ? [allowInsecureRequests] : [],
})

// Without a scope the token has all that the operator allowed. There is no refresh token: ask again (§4.4.3).
const { access_token: token, expires_in: seconds } = await clientCredentialsGrant(config)
const response = await fetchProtectedResource(config, token, new URL('/api/courses', issuer), 'GET')
console.log(`${response.status} ${await response.text()} (the token expires in ${seconds} s)`)
