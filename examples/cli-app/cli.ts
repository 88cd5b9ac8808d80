/**
 * A command line app for people with a browser: `login`, `whoami`, `logout`. It knows the issuer and nothing else, and
 * registers itself. README.md says how to start it.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import * as client from 'openid-client'
import { forgetLogin, keepLogin, type Login, readLogin } from './login-file.ts'

const { ISSUER: issuer = 'http://localhost:9400' } = process.env
// Plain http is for a development server; openid-client refuses it otherwise.
const options: client.DiscoveryRequestOptions = {
  execute: issuer.startsWith('http://') ? [client.allowInsecureRequests] : [],
}
const now = () => Math.floor(Date.now() / 1000)

async function login(): Promise<string> {
  const config = await registered()
  // RFC 8252 §7.3: a free port of the loopback interface, by its address and not its name.
  const listener = createServer().listen(0, '127.0.0.1')
  await once(listener, 'listening')
  // `as`: a listener on a TCP port has such an address.
  const { port } = listener.address() as AddressInfo
  // RFC 7636 §4.1: a new verifier for every request. `state` and `nonce` tie the answer and the ID Token to it, too.
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
  // RFC 8252 §8.12: the person's own browser, where they see whose page it is; never a window of this program.
  process.stdout.write(`Open this in a browser on this computer, and sign in:\n${request}\n`)
  try {
    const answer = await callback(listener, port)
    // Compares `state`, and `iss` with the issuer the request went to, RFC 9207 §2.4; then redeems the code. It throws
    // when the person refused, RFC 6749 §4.1.2.1.
    const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce }
    const tokens = await client.authorizationCodeGrant(config, answer, checks)
    const { sub = '' } = tokens.claims() ?? {}
    keepLogin(withTokens({ issuer, clientId: config.clientMetadata().client_id, sub }, tokens))
    return `Signed in as ${sub}.`
  } finally {
    listener.closeAllConnections()
    listener.close()
  }
}

/** The address the browser comes back to; anything else it asks for on the way is not for us. */
async function callback(listener: ReturnType<typeof createServer>, port: number): Promise<URL> {
  const signal = AbortSignal.timeout(10 * 60_000)
  for (;;) {
    const [request, response] = await once(listener, 'request', { signal })
    const url = new URL(request.url, `http://127.0.0.1:${port}`)
    const isAnswer = url.pathname === '/callback'
    response.writeHead(isAnswer ? 200 : 404).end(isAnswer ? 'Go back to the terminal.' : '')
    if (isAnswer) return url
  }
}

/** Registers once, RFC 7591 §3; without a port, so that any port will do later, RFC 8252 §7.3. */
async function registered(): Promise<client.Configuration> {
  const login = readLogin(issuer)
  if (login) return configured(login)
  const metadata = {
    client_name: 'Courses CLI',
    redirect_uris: ['http://127.0.0.1/callback'],
    // A secret in a program that everybody has is none, RFC 8252 §8.5.
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
  if (!login?.tokens?.refresh_token) throw new Error('nobody is signed in')
  const config = await configured(login)
  if (now() >= (login.expiresAt ?? 0)) {
    // RFC 6749 §6. The old refresh token is spent, RFC 9700 §2.2.2: the new one is on the disk before anything else.
    const refreshed = await client.refreshTokenGrant(config, login.tokens.refresh_token)
    // OpenID Connect Core §12.2: whatever is told anew is told about the same person.
    if ((refreshed.claims()?.sub ?? login.sub) !== login.sub)
      throw new Error('the server answered about somebody else')
    login = withTokens(login, refreshed)
    keepLogin(login)
  }
  const token = login.tokens?.access_token ?? ''
  const courses = await client.fetchProtectedResource(config, token, new URL(`${issuer}/api/courses`), 'GET')
  // OpenID Connect Core §5.3.2: it compares `sub`, and takes nothing about anybody else.
  const person = await client.fetchUserInfo(config, token, login.sub ?? '')
  return `${person.name}, ${person.sub}\n${await courses.text()}`
}

async function logout(): Promise<string> {
  const login = readLogin(issuer)
  forgetLogin()
  if (!login?.tokens?.refresh_token) return 'Nobody was signed in.'
  const config = await configured(login)
  // RFC 7009 §2.1: with the refresh token go all access tokens of this approval.
  await client.tokenRevocation(config, login.tokens.refresh_token)
  keepLogin({ issuer, clientId: login.clientId })
  // The browser is the person's: whether they sign out there as well is theirs to say, RP-Initiated Logout §2.
  const hint = { id_token_hint: login.tokens.id_token ?? '' }
  return `Signed out. To sign out of the browser, too:\n${client.buildEndSessionUrl(config, hint)}`
}

function withTokens(login: Login, tokens: client.TokenEndpointResponse): Login {
  // What a refresh does not repeat, such as an ID Token, stays.
  return { ...login, tokens: { ...login.tokens, ...tokens }, expiresAt: now() + (tokens.expires_in ?? 0) }
}

const commands: Record<string, () => Promise<string>> = { login, whoami, logout }
const command = commands[process.argv[2] ?? '']
try {
  if (!command) throw new Error('usage: cli.ts login | whoami | logout')
  process.stdout.write(`${await command()}\n`)
} catch (error) {
  // openid-client keeps the reason below its message, and what the server said beside it.
  const { message, cause, error: code, error_description: why } = error as client.ResponseBodyError
  const reason = cause instanceof Error ? cause.message : undefined
  process.stderr.write(`${[message, reason, code, why].filter(Boolean).join(': ')}\n`)
  process.exitCode = 1
}
