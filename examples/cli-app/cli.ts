/**
 * A command line app: `login`, `whoami`, `logout`. It knows only the issuer, registers itself, and signs the user in
 * through the browser. README.md describes how to start it.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as client from 'openid-client'
import { forgetLogin, keepLogin, type Login, readLogin } from './login-file.ts'

const { ISSUER: issuer = 'http://localhost:9400' } = process.env
// Plain http is for a development server; openid-client rejects it by default.
const options: client.DiscoveryRequestOptions = {
  execute: issuer.startsWith('http://') ? [client.allowInsecureRequests] : [],
}
const now = () => Math.floor(Date.now() / 1000)

async function login(): Promise<string> {
  const config = await registered()
  // RFC 8252 §7.3: a free port of the loopback interface, by its address instead of its name.
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  // `as`: a listener on a TCP port has such an address.
  const { port } = listener.address() as AddressInfo
  // RFC 7636 §4.1: a new verifier for every request. `state` and `nonce` bind the response and the ID Token to it.
  const verifier = client.randomPKCECodeVerifier()
  const [state, nonce] = [client.randomState(), client.randomNonce()]
  const request = client.buildAuthorizationUrl(config, {
    redirect_uri: `http://127.0.0.1:${port}/callback`,
    scope: 'openid profile courses:read',
    state,
    nonce,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  })
  // RFC 8252 §8.12: the user's own browser, which shows the host of the page; never a window of this program.
  process.stdout.write(`Open this in a browser on this computer, and sign in:\n${request}\n`)
  try {
    const redirectedTo = await callback(listener, port)
    // Compares `state`, and `iss` with the issuer of the request, RFC 9207 §2.4, then exchanges the code. Throws if the
    // user denied the request, RFC 6749 §4.1.2.1.
    const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce }
    const tokens = await client.authorizationCodeGrant(config, redirectedTo, checks)
    const { sub = '' } = tokens.claims() ?? {}
    keepLogin(withTokens({ issuer, clientId: config.clientMetadata().client_id, sub }, tokens))
    return `Signed in as ${sub}.`
  } finally {
    listener.closeAllConnections()
    listener.close()
  }
}

/** Waits for the redirect. Other requests of the browser, such as that for an icon, get 404. */
async function callback(listener: ReturnType<typeof createServer>, port: number): Promise<URL> {
  const signal = AbortSignal.timeout(10 * 60_000)
  for (;;) {
    const [request, response] = await once(listener, 'request', { signal })
    const url = new URL(request.url, `http://127.0.0.1:${port}`)
    const isCallback = url.pathname === '/callback'
    response.writeHead(isCallback ? 200 : 404).end(isCallback ? 'Go back to the terminal.' : '')
    if (isCallback) return url
  }
}

/** Registers once, RFC 7591 §3, without a port, so that any port works later, RFC 8252 §7.3. */
async function registered(): Promise<client.Configuration> {
  const login = readLogin(issuer)
  if (login) return configured(login)
  const metadata = {
    client_name: 'Courses CLI',
    redirect_uris: ['http://127.0.0.1/callback'],
    // A secret in a program that is distributed to users is not secret, RFC 8252 §8.5.
    token_endpoint_auth_method: 'none',
  }
  const config = await client.dynamicClientRegistration(new URL(issuer), metadata, client.None(), options)
  keepLogin({ issuer, clientId: config.clientMetadata().client_id })
  return config
}

function configured({ clientId }: Login): Promise<client.Configuration> {
  return client.discovery(new URL(issuer), clientId, undefined, client.None(), options)
}

async function whoami(): Promise<string> {
  let login = readLogin(issuer)
  if (!login?.tokens?.refresh_token) throw new Error('no user is signed in')
  const config = await configured(login)
  if (now() >= (login.expiresAt ?? 0)) {
    // RFC 6749 §6. The old refresh token no longer works, RFC 9700 §2.2.2, so the new one is stored first.
    const refreshed = await client.refreshTokenGrant(config, login.tokens.refresh_token)
    // OpenID Connect Core §12.2: a refreshed ID Token must be about the same user.
    if ((refreshed.claims()?.sub ?? login.sub) !== login.sub)
      throw new Error('the ID Token is about another user')
    login = withTokens(login, refreshed)
    keepLogin(login)
  }
  const token = login.tokens?.access_token ?? ''
  const courses = await client.fetchProtectedResource(config, token, new URL(`${issuer}/api/courses`), 'GET')
  // OpenID Connect Core §5.3.2: compares `sub`, and throws if the response is about another user.
  const user = await client.fetchUserInfo(config, token, login.sub ?? '')
  return `${user.name}, ${user.sub}\n${await courses.text()}`
}

async function logout(): Promise<string> {
  const login = readLogin(issuer)
  forgetLogin()
  if (!login?.tokens?.refresh_token) return 'No user was signed in.'
  const config = await configured(login)
  // RFC 7009 §2.1: this also revokes every access token of the grant.
  await client.tokenRevocation(config, login.tokens.refresh_token)
  keepLogin({ issuer, clientId: login.clientId })
  // The user decides whether to sign out of the browser too, RP-Initiated Logout §2.
  const hint = { id_token_hint: login.tokens.id_token ?? '' }
  return `Signed out. To sign out of the browser, too:\n${client.buildEndSessionUrl(config, hint)}`
}

function withTokens(login: Login, tokens: client.TokenEndpointResponse): Login {
  // Keeps what the refresh response omits, such as an ID Token.
  return { ...login, tokens: { ...login.tokens, ...tokens }, expiresAt: now() + (tokens.expires_in ?? 0) }
}

const commands: Record<string, () => Promise<string>> = { login, whoami, logout }
const command = commands[process.argv[2] ?? '']
try {
  if (!command) throw new Error('usage: cli.ts login | whoami | logout')
  process.stdout.write(`${await command()}\n`)
} catch (error) {
  // openid-client has the reason in `cause`, and the error of the server in its own members.
  const { message, cause, error: code, error_description: why } = error as client.ResponseBodyError
  const reason = cause instanceof Error ? cause.message : undefined
  process.stderr.write(`${[message, reason, code, why].filter(Boolean).join(': ')}\n`)
  process.exitCode = 1
}
