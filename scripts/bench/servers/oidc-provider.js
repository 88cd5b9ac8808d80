// oidc-provider set up for the same work. Arguments: port, and a file for the durable adapter; none: in memory.
import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import Provider from 'oidc-provider'
import { memoryAdapter } from './memory-adapter.js'
import { durableAdapter } from './sqlite-adapter.js'

const [port, file] = process.argv.slice(2)
const jwk = (type, options, more) => ({
  ...generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' }),
  use: 'sig',
  ...more,
})
const web = {
  redirect_uris: ['https://app.example/callback'],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: 'none',
}
const provider = new Provider(`http://localhost:${port}`, {
  adapter: file ? durableAdapter(file) : memoryAdapter(),
  clients: [
    { client_id: 'app', ...web },
    { client_id: 'app-es256', ...web, id_token_signed_response_alg: 'ES256' },
    {
      client_id: 'api',
      client_secret: 'a-secret-of-the-api-that-is-long-enough',
      token_endpoint_auth_method: 'client_secret_basic',
      redirect_uris: [],
      response_types: [],
      grant_types: [],
    },
  ],
  jwks: {
    keys: [
      jwk('rsa', { modulusLength: 2048 }, { alg: 'RS256', kid: 'rs' }),
      jwk('ec', { namedCurve: 'P-256' }, { alg: 'ES256', kid: 'es' }),
    ],
  },
  cookies: { keys: ['one key for signing cookies'] },
  scopes: ['openid', 'courses:read'],
  pkce: { required: () => true },
  issueRefreshToken: async (_ctx, client) => client.grantTypeAllowed('refresh_token'),
  rotateRefreshToken: true,
  findAccount: async (_ctx, id) => ({ accountId: id, claims: async () => ({ sub: id, name: 'Bench' }) }),
  features: {
    devInteractions: { enabled: false },
    introspection: { enabled: true, allowedPolicy: async () => true },
    revocation: { enabled: true },
    registration: { enabled: true },
  },
  interactions: { url: (_ctx, { uid }) => `/interaction/${uid}` },
})

// The person signs in and agrees at once: only what comes after it is measured.
async function interact(request, response) {
  const { params, prompt } = await provider.interactionDetails(request, response)
  const grant = new provider.Grant({ accountId: 'person', clientId: params.client_id })
  grant.addOIDCScope('openid courses:read')
  const consent = { grantId: await grant.save() }
  const result = prompt.name === 'login' ? { login: { accountId: 'person' }, consent } : { consent }
  await provider.interactionFinished(request, response, result)
}

const answer = provider.callback()
// As long as the others: a connection that waits for its turn in a round is not closed.
const keepAlive = { keepAliveTimeout: 65_000 }
createServer(keepAlive, (request, response) => {
  if (request.url === '/readyz') response.end('ready')
  else if (request.url.startsWith('/interaction/')) void interact(request, response)
  else answer(request, response)
}).listen({ host: 'localhost', port: Number(port) })
