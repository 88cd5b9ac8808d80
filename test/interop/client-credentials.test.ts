/** Client libraries of other authors that get a token for the client itself, RFC 6749 §4.4. */
import {
  ClientSecretBasic,
  clientCredentialsGrantRequest,
  discoveryRequest,
  allowInsecureRequests as insecure,
  introspectionRequest,
  processClientCredentialsResponse,
  processDiscoveryResponse,
  processIntrospectionResponse,
} from 'oauth4webapi'
import {
  allowInsecureRequests,
  ClientSecretPost,
  clientCredentialsGrant,
  discovery,
  fetchProtectedResource,
  tokenIntrospection,
  tokenRevocation,
} from 'openid-client'
import t from 'tap'
import { startServer } from '../helpers/server.ts'
import { addClient } from '../helpers/wire.ts'

const server = await startServer(t, { clock: 'machine' })
const addMachine = (authenticationMethod: string) =>
  addClient(server, {
    authenticationMethod,
    redirectUris: [],
    grantTypes: ['client_credentials'],
    scope: ['courses:read', 'courses:write'],
  })

t.test(
  '[rfc6749-4.4.3-access-token-response] openid-client gets, uses and revokes a token of its own',
  async (t) => {
    const { id, secret = '' } = await addMachine('client_secret_post')
    const config = await discovery(new URL(server.issuer), id, {}, ClientSecretPost(secret), {
      execute: [allowInsecureRequests],
    })
    const tokens = await clientCredentialsGrant(config, { scope: 'courses:read', resource: server.issuer })
    t.match(tokens, { token_type: 'bearer', scope: 'courses:read' })
    t.notOk('refresh_token' in tokens)
    const api = new URL(`${server.issuer}/api/courses`)
    const called = await fetchProtectedResource(config, tokens.access_token, api, 'GET')
    t.match(await called.json(), { caller: 'client', client_id: id, sub: id })
    t.match(await tokenIntrospection(config, tokens.access_token), { active: true, client_id: id, sub: id })
    await tokenRevocation(config, tokens.access_token)
    t.match(await tokenIntrospection(config, tokens.access_token), { active: false })
  },
)

t.test('[rfc6749-4.4.3-no-refresh-token] oauth4webapi gets and introspects a token of its own', async (t) => {
  const { id, secret = '' } = await addMachine('client_secret_basic')
  const issuer = new URL(server.issuer)
  const options = { [insecure]: true }
  const as = await processDiscoveryResponse(
    issuer,
    await discoveryRequest(issuer, { algorithm: 'oauth2', ...options }),
  )
  const client = { client_id: id }
  const response = await clientCredentialsGrantRequest(
    as,
    client,
    ClientSecretBasic(secret),
    new URLSearchParams(),
    options,
  )
  const tokens = await processClientCredentialsResponse(as, client, response)
  t.match(tokens, { scope: 'courses:read courses:write', expires_in: Number })
  t.equal(tokens.refresh_token, undefined)
  const introspection = await introspectionRequest(
    as,
    client,
    ClientSecretBasic(secret),
    tokens.access_token,
    options,
  )
  t.match(await processIntrospectionResponse(as, client, introspection), { active: true, sub: id })
})
