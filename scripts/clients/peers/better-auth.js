// better-auth with its plugin for OAuth, open registration, and the two pages that its manual leaves to the product.
// Argument: the port.
import { createServer } from 'node:http'
import { DatabaseSync } from 'node:sqlite'
import { text } from 'node:stream/consumers'
import { oauthProvider } from '@better-auth/oauth-provider'
import { betterAuth } from 'better-auth'
import { getMigrations } from 'better-auth/db/migration'
import { toNodeHandler } from 'better-auth/node'
import { jwt } from 'better-auth/plugins'

const port = Number(process.argv[2])
const issuer = `http://localhost:${port}`
const user = { name: 'Alice', email: 'alice@example.org', password: 'alice-in-dev' }
const auth = betterAuth({
  baseURL: issuer,
  secret: 'a-secret-of-a-test-only-0123456789abcdef',
  database: new DatabaseSync(':memory:'),
  disabledPaths: ['/token'],
  emailAndPassword: { enabled: true },
  rateLimit: { enabled: false },
  telemetry: { enabled: false },
  plugins: [
    jwt({ jwks: { keyPairConfig: { alg: 'RS256' } }, jwt: { issuer } }),
    oauthProvider({
      loginPage: '/sign-in',
      consentPage: '/consent',
      allowDynamicClientRegistration: true,
      allowUnauthenticatedClientRegistration: true,
    }),
  ],
})
const { runMigrations } = await getMigrations(auth.options)
await runMigrations()
await auth.api.signUpEmail({ body: user })

const pages = {
  '/sign-in': {
    form: '<input type="email" name="email"><input type="password" name="password"><button>Sign in</button>',
    endpoint: '/api/auth/sign-in/email',
    body: ({ email, password }) => ({ email, password }),
  },
  '/consent': {
    form: '<button name="accept" value="yes">Allow</button><button name="accept" value="no">Deny</button>',
    endpoint: '/api/auth/oauth2/consent',
    body: ({ accept }) => ({ accept: accept === 'yes' }),
  },
}
const headers = { 'content-type': 'text/html; charset=utf-8', 'x-frame-options': 'DENY' }
const handler = toNodeHandler(auth)

createServer(async (request, response) => {
  const { pathname, search } = new URL(request.url, issuer)
  const page = pages[pathname]
  if (page === undefined) return handler(request, response)
  if (request.method !== 'POST') {
    const action = `${pathname}${search}`.replaceAll('&', '&amp;').replaceAll('"', '&quot;')
    return response.writeHead(200, headers).end(`<form method="post" action="${action}">${page.form}</form>`)
  }
  const fields = Object.fromEntries(new URLSearchParams(await text(request)))
  const answer = await auth.handler(
    new Request(issuer + page.endpoint, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        cookie: request.headers.cookie ?? '',
        origin: request.headers.origin ?? '',
      },
      body: JSON.stringify({ ...page.body(fields), oauth_query: search.slice(1) }),
    }),
  )
  const { url } = await answer.json()
  const cookies = { 'set-cookie': answer.headers.getSetCookie() }
  if (typeof url === 'string') return response.writeHead(303, { ...cookies, location: url }).end()
  return response.writeHead(answer.status, { ...headers, ...cookies }).end('<p>That did not work.</p>')
}).listen(port, 'localhost')
