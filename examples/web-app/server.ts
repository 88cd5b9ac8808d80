/**
 * A web application with a server: a confidential client. Tokens stay on the server; the browser has a session cookie.
 * README.md describes how to start it.
 */
import { randomBytes } from 'node:crypto'
import cookie from '@fastify/cookie'
import formbody from '@fastify/formbody'
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify'
import { createRemoteJWKSet, type JWTPayload, jwtVerify } from 'jose'
import * as client from 'openid-client'

const {
  ISSUER: issuer = 'http://localhost:9400',
  ORIGIN: origin = 'http://127.0.0.1:9520',
  CLIENT_ID: clientId,
  CLIENT_SECRET: clientSecret,
} = process.env
if (!clientId || !clientSecret) {
  process.stderr.write('CLIENT_ID and CLIENT_SECRET are missing: README.md says where they come from\n')
  process.exit(1)
}

// RFC 6749 §2.3.1: the secret goes in the Authorization header, which `client add` allows by default.
const config = await client.discovery(
  new URL(issuer),
  clientId,
  undefined,
  client.ClientSecretBasic(clientSecret),
  // Plain http is for a development server; openid-client rejects it by default.
  { execute: issuer.startsWith('http://') ? [client.allowInsecureRequests] : [] },
)

/** A sign-in in progress, or a session. Kept in memory; a real application stores sessions and lets them expire. */
interface Session {
  readonly checks?: client.AuthorizationCodeGrantChecks
  readonly tokens?: client.TokenEndpointResponse
  readonly name?: string
  /** Of the session at the server, which names it when it ends. */
  readonly sid?: unknown
}
const sessions = new Map<string, Session>()

const isHttps = origin.startsWith('https://')
const cookieName = isHttps ? '__Host-session' : 'session'

/** Starts a session with a new id, so that an id planted before the sign-in is worthless (session fixation). */
function start(request: FastifyRequest, reply: FastifyReply, session: Session): void {
  end(request, reply)
  const id = randomBytes(32).toString('base64url')
  sessions.set(id, session)
  // `lax`: sent with the redirect back from the server, but not with a form of another site.
  reply.setCookie(cookieName, id, { path: '/', httpOnly: true, secure: isHttps, sameSite: 'lax' })
}

function end(request: FastifyRequest, reply: FastifyReply): void {
  sessions.delete(request.cookies[cookieName] ?? '')
  reply.clearCookie(cookieName, { path: '/', secure: isHttps })
}

const sessionOf = (request: FastifyRequest) => sessions.get(request.cookies[cookieName] ?? '')

const app = Fastify()
await app.register(cookie)
await app.register(formbody)

const escaped = (text = '') => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
const page = (reply: FastifyReply, body: string) =>
  reply
    .type('text/html')
    .header('cache-control', 'no-store')
    .header('content-security-policy', "default-src 'none'; frame-ancestors 'none'")
    .send(`<!doctype html><title>Course site</title><h1>Course site</h1>${body}`)

app.get('/', async (request, reply) => {
  const { name, tokens } = sessionOf(request) ?? {}
  if (!tokens) return page(reply, '<p><a href="/login">Sign in</a></p>')
  const form = '<form method="post" action="/logout"><button>Sign out</button></form>'
  return page(reply, `<p>Hello ${escaped(name)}. <a href="/courses">Your courses</a></p>${form}`)
})

app.get('/login', async (request, reply) => {
  // RFC 9700 §2.1.1: PKCE, although there is a secret. `nonce` binds the ID Token, OpenID Connect Core §3.1.2.1.
  const verifier = client.randomPKCECodeVerifier()
  const [expectedState, expectedNonce] = [client.randomState(), client.randomNonce()]
  start(request, reply, { checks: { pkceCodeVerifier: verifier, expectedState, expectedNonce } })
  const url = client.buildAuthorizationUrl(config, {
    redirect_uri: `${origin}/callback`,
    scope: 'openid profile courses:read',
    state: expectedState,
    nonce: expectedNonce,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
  })
  return reply.redirect(url.href)
})

app.get('/callback', async (request, reply) => {
  const { checks } = sessionOf(request) ?? {}
  if (!checks) return reply.redirect('/')
  end(request, reply)
  const redirectedTo = new URL(request.url, origin)
  // The user denied the request, RFC 6749 §4.1.2.1.
  if (redirectedTo.searchParams.get('error') === 'access_denied') return reply.redirect('/')
  // Checks `state`, `iss` (RFC 9207 §2.4) and the ID Token (OpenID Connect Core §3.1.3.7).
  const tokens = await client.authorizationCodeGrant(config, redirectedTo, checks)
  const user = await client.fetchUserInfo(config, tokens.access_token, tokens.claims()?.sub ?? '')
  start(request, reply, { tokens, name: user.name ?? user.sub, sid: tokens.claims()?.['sid'] })
  return reply.redirect('/')
})

app.get('/courses', async (request, reply) => {
  const { tokens } = sessionOf(request) ?? {}
  if (!tokens) return reply.redirect('/login')
  const url = new URL(`${issuer}/api/courses`)
  try {
    const response = await client.fetchProtectedResource(config, tokens.access_token, url, 'GET')
    return page(reply, `<pre>${escaped(await response.text())}</pre>`)
  } catch (error) {
    // RFC 6750 §3.1: expired or revoked. If the user still has a session and a consent at the server, no page appears.
    if (error instanceof client.WWWAuthenticateChallengeError) return reply.redirect('/login')
    throw error
  }
})

app.post('/logout', async (request, reply) => {
  const { tokens } = sessionOf(request) ?? {}
  end(request, reply)
  if (!tokens) return reply.redirect('/')
  // RFC 7009: revokes the tokens of this application …
  if (tokens.refresh_token) await client.tokenRevocation(config, tokens.refresh_token)
  // … and RP-Initiated Logout §2: ends the session at the server, which redirects back here.
  const url = client.buildEndSessionUrl(config, {
    id_token_hint: tokens.id_token ?? '',
    post_logout_redirect_uri: `${origin}/`,
  })
  return reply.redirect(url.href, 303)
})

const logoutEvent = 'http://schemas.openid.net/event/backchannel-logout'
const keys = createRemoteJWKSet(new URL(config.serverMetadata().jwks_uri ?? ''))

/** Throws unless it is a logout token, OpenID Connect Back-Channel Logout §2.6. Seeing one twice does no harm here. */
async function readLogoutToken(token: string): Promise<JWTPayload> {
  const { payload } = await jwtVerify(token, keys, {
    issuer: config.serverMetadata().issuer,
    audience: clientId ?? '',
    typ: 'logout+jwt',
    algorithms: ['RS256'],
    requiredClaims: ['iat', 'exp', 'jti', 'sid'],
  })
  const { events, nonce } = payload as { events?: object; nonce?: string }
  if (events === undefined || !(logoutEvent in events) || nonce !== undefined)
    throw new Error('not a logout token')
  return payload
}

// The session at the server has ended, wherever that happened: so do the sessions here that came from it.
app.post<{ Body: { logout_token?: string } }>('/backchannel-logout', async (request, reply) => {
  reply.header('cache-control', 'no-store')
  const token = await readLogoutToken(String(request.body?.logout_token)).catch(() => undefined)
  if (!token) return reply.code(400).send({ error: 'invalid_request' })
  for (const [id, { sid }] of sessions) if (sid === token['sid']) sessions.delete(id)
  return reply.code(200).send()
})

const { hostname, port } = new URL(origin)
process.once('SIGTERM', () => void app.close())
await app.listen({ host: hostname, port: Number(port) })
process.stdout.write(`Course site is ready at ${origin}\n`)
