/**
 * Stands in for GitHub Actions and a Kubernetes cluster on this computer, to try out clients without a secret. As there, a
 * workload gets a token about itself: from a URL (GitHub), or in a file (Kubernetes).
 */
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose'

const {
  ORIGIN: origin = 'http://127.0.0.1:9500',
  AUDIENCE = 'http://localhost:9400',
  GITHUB_SUBJECT = 'repo:example/courses:ref:refs/heads/main',
  KUBERNETES_SUBJECT = 'system:serviceaccount:courses:import',
  TOKEN_FILE = 'token',
} = process.env

const [actions, cluster] = [`${origin}/actions`, `${origin}/cluster`]
const { privateKey, publicKey } = await generateKeyPair('RS256')
const jwk = { ...(await exportJWK(publicKey)), kid: 'stand-in', alg: 'RS256', use: 'sig' }

function sign(claims: JWTPayload, lifetime: string): Promise<string> {
  const header = { alg: 'RS256', kid: jwk.kid, typ: 'JWT' }
  return new SignJWT(claims)
    .setProtectedHeader(header)
    .setIssuedAt()
    .setExpirationTime(lifetime)
    .sign(privateKey)
}

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? '/', origin)
  const issuer = [actions, cluster].find((one) => pathname.startsWith(new URL(one).pathname))
  const respond = (status: number, body: unknown) => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  }
  // OpenID Connect Discovery §4: where the keys of an issuer are.
  if (issuer !== undefined && pathname.endsWith('/.well-known/openid-configuration'))
    return respond(200, { issuer, jwks_uri: `${issuer}/keys` })
  if (issuer !== undefined && pathname.endsWith('/keys')) return respond(200, { keys: [jwk] })
  // What a step of a workflow calls: ACTIONS_ID_TOKEN_REQUEST_URL.
  if (pathname !== '/actions/token') return respond(404, {})
  if (request.headers.authorization !== 'bearer a-runner') return respond(401, {})
  const aud = searchParams.get('audience') ?? 'https://github.com/example'
  const claims = { iss: actions, sub: GITHUB_SUBJECT, aud, jti: crypto.randomUUID() }
  respond(200, { value: await sign(claims, '5m') })
})

// What the kubelet does: it writes the token into the file, and replaces it before it expires.
const projected = { iss: cluster, sub: KUBERNETES_SUBJECT, aud: [AUDIENCE], jti: crypto.randomUUID() }
writeFileSync(TOKEN_FILE, await sign(projected, '1h'), { mode: 0o600 })
const { hostname, port } = new URL(origin)
server.listen(Number(port), hostname, () => console.log(`The platform is ready at ${origin}`))
