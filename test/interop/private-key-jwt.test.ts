import * as oauth from 'oauth4webapi'
import * as client from 'openid-client'
import t from 'tap'
import { makeClientKey } from '../helpers/assertions.ts'
import type { OperatorClientRequest } from '../helpers/client-request.ts'
import { signInAndApprove } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { addClient } from '../helpers/wire.ts'

const server = await startServer(t, { clock: 'machine' })
const issuer = new URL(server.issuer)

/** A client that signs with this key, and acts for itself unless the request says otherwise. */
async function add(alg: 'ES256' | 'PS256' | 'RS256' | 'EdDSA', request: Partial<OperatorClientRequest> = {}) {
  const key = makeClientKey(alg)
  const machine = { grantTypes: ['client_credentials'], redirectUris: [], scope: ['courses:read'] }
  const { id } = await addClient(server, {
    authenticationMethod: 'private_key_jwt',
    ...(Object.keys(request).length > 0 ? request : machine),
    description: {
      jwks: { keys: [key.jwk] },
      token_endpoint_auth_signing_alg: alg,
      request_object_signing_alg: alg,
    },
  })
  const algorithm = {
    ES256: { name: 'ECDSA', namedCurve: 'P-256' },
    PS256: { name: 'RSA-PSS', hash: 'SHA-256' },
    RS256: { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' },
    EdDSA: { name: 'Ed25519' },
  }[alg]
  return { id, key: { key: key.privateKey.toCryptoKey(algorithm, false, ['sign']), kid: alg } }
}

t.test('oauth4webapi authenticates by PrivateKeyJwt', async (t) => {
  const insecure = { [oauth.allowInsecureRequests]: true }
  const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, insecure))
  for (const alg of ['ES256', 'PS256', 'RS256', 'EdDSA'] as const) {
    const { id, key } = await add(alg)
    const of = { client_id: id }
    const response = await oauth.clientCredentialsGrantRequest(as, of, oauth.PrivateKeyJwt(key), {}, insecure)
    const tokens = await oauth.processClientCredentialsResponse(as, of, response)
    t.equal(tokens.scope, 'courses:read', alg)
  }
})

t.test('openid-client authenticates by PrivateKeyJwt, also to introspect and revoke', async (t) => {
  const { id, key } = await add('ES256')
  const execute = [client.allowInsecureRequests]
  const config = await client.discovery(issuer, id, undefined, client.PrivateKeyJwt(key), { execute })
  const tokens = await client.clientCredentialsGrant(config)
  t.match(await client.tokenIntrospection(config, tokens.access_token), { active: true, client_id: id })
  await client.tokenRevocation(config, tokens.access_token)
  t.match(await client.tokenIntrospection(config, tokens.access_token), { active: false })
})

t.test(
  'openid-client and oauth4webapi sign authorization requests, RFC 9101, also pushed ones',
  async (t) => {
    const agent = new UserAgent(server.issuer)
    const insecure = { [oauth.allowInsecureRequests]: true }
    const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, insecure))
    for (const alg of ['ES256', 'PS256', 'RS256', 'EdDSA'] as const) {
      const { id, key } = await add(alg, {
        grantTypes: ['authorization_code'],
        redirectUris: ['https://client.example/callback'],
      })
      const config = await client.discovery(issuer, id, undefined, client.PrivateKeyJwt(key), {
        execute: [client.allowInsecureRequests],
      })
      const verifier = client.randomPKCECodeVerifier()
      const parameters = {
        redirect_uri: 'https://client.example/callback',
        scope: 'openid',
        state: `state-${alg}`,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      }
      const signed = await client.buildAuthorizationUrlWithJAR(config, parameters, key)
      const pushed = await client.buildAuthorizationUrlWithPAR(config, signed.searchParams)
      t.notOk(signed.searchParams.has('scope') || pushed.searchParams.has('scope'), `${alg}: all is signed`)
      const request = await oauth.issueRequestObject(
        as,
        { client_id: id },
        { response_type: 'code', ...parameters },
        key,
      )
      const byHand = new URL(String(as.authorization_endpoint))
      byHand.search = String(new URLSearchParams({ client_id: id, request }))
      for (const url of [signed, pushed, byHand]) {
        const location = await signInAndApprove(agent, await agent.open(url.href))
        const checks = { pkceCodeVerifier: verifier, expectedState: parameters.state }
        const tokens = await client.authorizationCodeGrant(config, location, checks)
        t.type(tokens.id_token, 'string', alg)
      }
    }
  },
)
