/**
 * A single-page app: a public client without a server of its own. Tokens are in this variable and nowhere else, so a
 * reload signs out of the page, and a script that reads the storage finds none.
 */
import * as oauth from './oauth4webapi.js'

const issuer = new URL((await (await fetch('issuer')).json()).issuer)
// Plain http is for a development server; oauth4webapi refuses it otherwise.
const http = { [oauth.allowInsecureRequests]: issuer.protocol === 'http:' }
const home = `${location.origin}/`

/** The answer of the token endpoint, while somebody is signed in. */
let tokens
/** Who that is, by the ID Token. */
let signedIn

// RFC 8414 §3: knowing the issuer is enough.
const server = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, http))

/** A client id is no secret: it is kept, and each browser registers once, RFC 7591 §3. An https app has a fixed one. */
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

/** Sends the person to the server. What belongs to this one request waits in this tab for the way back. */
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
    // RFC 7636 §4.2: a stolen code is worth nothing without the verifier, which stays in this tab until `finish`.
    code_challenge: await oauth.calculatePKCECodeChallenge(request.verifier),
    code_challenge_method: 'S256',
  })
  location.assign(url)
}

/** The way back: the code becomes tokens, RFC 6749 §4.1.3. */
async function finish(request) {
  const [client, answer] = [await registered(), new URL(location.href)]
  // The code is used up in a moment; nobody should find it in the history, RFC 9700 §4.2.4.
  history.replaceState(null, '', home)
  // Checks `state`, and `iss` against the issuer, RFC 9207 §2.4. Throws when the person refused.
  const parameters = oauth.validateAuthResponse(server, client, answer, request.state)
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
  const person = await oauth.processUserInfoResponse(server, client, sub, asked)
  signedIn = sub
  show(`Hello ${person.name ?? sub}.`)
}

/** RFC 6749 §6: new tokens for the old refresh token, which is spent, RFC 9700 §2.2.2. */
async function refresh() {
  const client = await registered()
  const { refresh_token: token } = tokens
  const response = await oauth.refreshTokenGrantRequest(server, client, oauth.None(), token, http)
  const refreshed = await oauth.processRefreshTokenResponse(server, client, response)
  // OpenID Connect Core §12.2: whatever is told anew is told about the same person.
  const { sub = signedIn } = oauth.getValidatedIdTokenClaims(refreshed) ?? {}
  if (sub !== signedIn) throw new Error('the server answered about somebody else')
  tokens = { ...tokens, ...refreshed }
  show('Refreshed.')
}

async function courses() {
  const url = new URL(`${server.issuer}/api/courses`)
  const headers = new Headers({ accept: 'application/json' })
  const answer = await oauth.protectedResourceRequest(tokens.access_token, 'GET', url, headers, null, http)
  document.querySelector('#answer').textContent = await answer.text()
}

/** Here, RFC 7009; and at the server, RP-Initiated Logout §2, which sends the browser back. */
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
