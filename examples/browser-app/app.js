/**
 * A single-page app: a public client without its own server. Tokens are only in a variable, so a reload signs the user
 * out of the page, and a script that reads the storage finds none.
 */
import * as oauth from './oauth4webapi.js'

const issuer = new URL((await (await fetch('issuer')).json()).issuer)
// Plain http is for a development server; oauth4webapi rejects it by default.
const http = { [oauth.allowInsecureRequests]: issuer.protocol === 'http:' }
const home = `${location.origin}/`

/** The token response, while a user is signed in. */
let tokens
/** The `sub` of that user, from the ID Token. */
let signedIn

// RFC 8414 §3: the issuer is all it needs to know.
const server = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, http))

/** Each browser registers once, RFC 7591 §3, and stores the client id, which is public. An https app has a fixed one. */
async function registered() {
  const known = localStorage.getItem(server.issuer)
  if (known !== null) return { client_id: known }
  const metadata = {
    client_name: 'Course reader',
    redirect_uris: [home],
    post_logout_redirect_uris: [home],
    token_endpoint_auth_method: 'none',
  }
  const response = await oauth.dynamicClientRegistrationRequest(server, metadata, http)
  const client = await oauth.processDynamicClientRegistrationResponse(response)
  localStorage.setItem(server.issuer, client.client_id)
  return client
}

/** Redirects the user to the server. The values of this request stay in this tab until the redirect back. */
async function signIn() {
  const client = await registered()
  const request = {
    state: oauth.generateRandomState(),
    nonce: oauth.generateRandomNonce(),
    verifier: oauth.generateRandomCodeVerifier(),
  }
  sessionStorage.setItem('request', JSON.stringify(request))
  const url = new URL(server.authorization_endpoint)
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: client.client_id,
    redirect_uri: home,
    scope: 'openid profile courses:read',
    state: request.state,
    nonce: request.nonce,
    // RFC 7636 §4.2: a stolen code is useless without the verifier, which stays in this tab until `finish`.
    code_challenge: await oauth.calculatePKCECodeChallenge(request.verifier),
    code_challenge_method: 'S256',
  })
  location.assign(url)
}

/** Handles the redirect back: exchanges the code for tokens, RFC 6749 §4.1.3. */
async function finish(request) {
  const [client, redirectedTo] = [await registered(), new URL(location.href)]
  // The code must not stay in the browser history, RFC 9700 §4.2.4.
  history.replaceState(null, '', home)
  // Checks `state`, and `iss` against the issuer, RFC 9207 §2.4. Throws if the user denied the request.
  const parameters = oauth.validateAuthResponse(server, client, redirectedTo, request.state)
  const response = await oauth.authorizationCodeGrantRequest(
    server,
    client,
    oauth.None(),
    parameters,
    home,
    request.verifier,
    http,
  )
  tokens = await oauth.processAuthorizationCodeResponse(server, client, response, {
    expectedNonce: request.nonce,
    requireIdToken: true,
  })
  const { sub } = oauth.getValidatedIdTokenClaims(tokens)
  const asked = await oauth.userInfoRequest(server, client, tokens.access_token, http)
  const user = await oauth.processUserInfoResponse(server, client, sub, asked)
  signedIn = sub
  show(`Hello ${user.name ?? sub}.`)
}

/** RFC 6749 §6: gets new tokens for the refresh token, which then no longer works, RFC 9700 §2.2.2. */
async function refresh() {
  const client = await registered()
  const { refresh_token: token } = tokens
  const response = await oauth.refreshTokenGrantRequest(server, client, oauth.None(), token, http)
  const refreshed = await oauth.processRefreshTokenResponse(server, client, response)
  // OpenID Connect Core §12.2: a refreshed ID Token must be about the same user.
  const { sub = signedIn } = oauth.getValidatedIdTokenClaims(refreshed) ?? {}
  if (sub !== signedIn) throw new Error('the ID Token is about another user')
  tokens = { ...tokens, ...refreshed }
  show('Refreshed.')
}

async function courses() {
  const url = new URL(`${server.issuer}/api/courses`)
  const headers = new Headers({ accept: 'application/json' })
  const response = await oauth.protectedResourceRequest(tokens.access_token, 'GET', url, headers, null, http)
  document.querySelector('#response').textContent = await response.text()
}

/** Revokes the tokens, RFC 7009, and signs out at the server, RP-Initiated Logout §2, which redirects back. */
async function signOut() {
  const client = await registered()
  const { refresh_token: token, id_token: hint } = tokens
  tokens = undefined
  await oauth.processRevocationResponse(
    await oauth.revocationRequest(server, client, oauth.None(), token, http),
  )
  const url = new URL(server.end_session_endpoint)
  url.search = new URLSearchParams({ id_token_hint: hint, post_logout_redirect_uri: home })
  location.assign(url)
}

function show(text) {
  document.querySelector('#status').textContent = text
  for (const button of document.querySelectorAll('button'))
    button.hidden = (button.id === 'sign-in') === Boolean(tokens)
}

for (const [id, action] of Object.entries({ 'sign-in': signIn, courses, refresh, 'sign-out': signOut })) {
  document.querySelector(`#${id}`).onclick = () => action().catch((error) => show(String(error.message)))
}
const request = sessionStorage.getItem('request')
sessionStorage.removeItem('request')
if (request === null || location.search === '') show('Nobody is signed in.')
else
  await finish(JSON.parse(request)).catch(({ message, error = message, error_description: why = '' }) =>
    show(`Not signed in: ${error} ${why}`),
  )
