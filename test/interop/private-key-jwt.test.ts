import * as oauth from 'oauth4webapi'
import * as client from 'openid-client'
import t from 'tap'
import { makeClientKey } from '../helpers/assertions.ts'
import { startServer } from '../helpers/server.ts'
import { addClient } from '../helpers/wire.ts'

const server = await startServer(t)
const issuer = new URL(server.issuer)

/** A client that acts for itself and signs with this key. */
async function add(alg: 'ES256' | 'PS256' | 'RS256' | 'EdDSA') {
  const key = makeClientKey(alg)
  const { id } = await addClient(server, {
    authenticationMethod: 'private_key_jwt',
    grantTypes: ['client_credentials'],
    redirectUris: [],
    scope: ['courses:read'],
    description: { jwks: { keys: [key.jwk] }, token_endpoint_auth_signing_alg: alg },
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
