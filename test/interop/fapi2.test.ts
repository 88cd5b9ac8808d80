/**
 * Clients of other authors on a server of the FAPI 2.0 profile: private_key_jwt, pushed requests, DPoP with nonces, signed
 * requests, and refresh tokens that stay.
 */
import * as oauth from 'oauth4webapi'
import * as client from 'openid-client'
import t from 'tap'
import { addProfiled } from '../helpers/profiled-clients.ts'
import { startServer } from '../helpers/server.ts'
import { newUser } from '../helpers/user.ts'

const insecure = { [oauth.allowInsecureRequests]: true }
const server = await startServer(t, { clock: 'machine', profile: 'fapi2', dpop: { nonce: 'always' } })
const issuer = new URL(server.issuer)
const courses = new URL(`${server.issuer}/api/courses`)
const narrow = { scope: 'courses:read' }

/** A client of the profile, and its private key as the libraries want it. */
async function newClient(alg: 'ES256' | 'PS256') {
  const { client: added, key } = await addProfiled(server, alg)
  const jwk = key.privateKey.export({ format: 'jwk' })
  const kind = alg === 'ES256' ? { name: 'ECDSA', namedCurve: 'P-256' } : { name: 'RSA-PSS', hash: 'SHA-256' }
  const own = await crypto.subtle.importKey('jwk', jwk, kind, false, ['sign'])
  return { id: added.id, redirectUri: added.redirectUri, key: { key: own, kid: String(key.jwk['kid']) } }
}

for (const alg of ['ES256', 'PS256'] as const) {
  t.test(`openid-client goes through the profile, ${alg}`, async (t) => {
    const { id, redirectUri, key } = await newClient(alg)
    for (const signed of [false, true]) {
      const execute = [client.allowInsecureRequests]
      const config = await client.discovery(issuer, id, undefined, client.PrivateKeyJwt(key), { execute })
      const DPoP = client.getDPoPHandle(config, await client.randomDPoPKeyPair('ES256'))
      const pkceCodeVerifier = client.randomPKCECodeVerifier()
      const parameters = {
        redirect_uri: redirectUri,
        scope: 'openid courses:read',
        nonce: 'a-nonce',
        state: 'a-state',
        code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
        code_challenge_method: 'S256',
      }
      const jar = async () => {
        const url = await client.buildAuthorizationUrlWithJAR(config, parameters, key)
        return Object.fromEntries(url.searchParams)
      }
      const url = await client.buildAuthorizationUrlWithPAR(config, signed ? await jar() : parameters, {
        DPoP,
      })
      const callback = await newUser(server).approve(url)
      const checks = { pkceCodeVerifier, expectedNonce: 'a-nonce', expectedState: 'a-state' }
      const tokens = await client.authorizationCodeGrant(config, callback, checks, undefined, { DPoP })
      t.equal(tokens.token_type, 'dpop', signed ? 'a signed request' : 'a request')
      const sub = tokens.claims()?.sub ?? ''
      t.match(await client.fetchUserInfo(config, tokens.access_token, sub, { DPoP }), { sub })
      const call = (token: string) =>
        client.fetchProtectedResource(config, token, courses, 'GET', undefined, undefined, { DPoP })
      t.equal((await call(tokens.access_token)).status, 200)
      const kept = tokens.refresh_token ?? ''
      for (let turn = 0; turn < 2; turn++) {
        const next = await client.refreshTokenGrant(config, kept, undefined, { DPoP })
        t.ok(next.refresh_token === undefined || next.refresh_token === kept, 'it is not rotated')
        t.equal((await call(next.access_token)).status, 200)
      }
      const machine = await client.clientCredentialsGrant(config, narrow, { DPoP })
      t.equal((await call(machine.access_token)).status, 200, 'client_credentials')
      const unproven = client.clientCredentialsGrant(config, narrow)
      await t.rejects(unproven, { name: 'ResponseBodyError', error: 'invalid_dpop_proof' }, 'no proof')
    }
  })

  t.test(`oauth4webapi goes through the profile, ${alg}`, async (t) => {
    const { id, redirectUri, key } = await newClient(alg)
    const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, insecure))
    t.equal(as.require_pushed_authorization_requests, true)
    const own: oauth.Client = { client_id: id }
    const auth = oauth.PrivateKeyJwt(key)
    const DPoP = oauth.DPoP(own, await oauth.generateKeyPair('ES256'))
    const options = { ...insecure, DPoP }
    let demanded = 0
    /** Repeats a request once if the server demands a nonce, as the documentation of the library shows. */
    const withNonce = async <T>(request: () => Promise<T>): Promise<T> => {
      try {
        return await request()
      } catch (error) {
        if (!oauth.isDPoPNonceError(error)) throw error
        demanded++
        return request()
      }
    }
    const verifier = oauth.generateRandomCodeVerifier()
    const parameters = new URLSearchParams({
      response_type: 'code',
      redirect_uri: redirectUri,
      scope: 'openid courses:read',
      nonce: 'a-nonce',
      state: 'a-state',
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    })
    const request = await oauth.issueRequestObject(as, own, parameters, key)
    for (const sent of [parameters, new URLSearchParams({ client_id: id, request })]) {
      const pushed = await withNonce(async () =>
        oauth.processPushedAuthorizationResponse(
          as,
          own,
          await oauth.pushedAuthorizationRequest(as, own, auth, sent, options),
        ),
      )
      const url = new URL(as.authorization_endpoint ?? '')
      url.search = String(new URLSearchParams({ client_id: id, request_uri: pushed.request_uri }))
      const callback = oauth.validateAuthResponse(as, own, await newUser(server).approve(url), 'a-state')
      const tokens = await withNonce(async () =>
        oauth.processAuthorizationCodeResponse(
          as,
          own,
          await oauth.authorizationCodeGrantRequest(as, own, auth, callback, redirectUri, verifier, options),
          { expectedNonce: 'a-nonce', requireIdToken: true },
        ),
      )
      t.equal(tokens.token_type, 'dpop', sent === parameters ? 'a request' : 'a signed request')
      const call = () =>
        oauth.protectedResourceRequest(tokens.access_token, 'GET', courses, undefined, undefined, options)
      t.equal((await withNonce(call)).status, 200)
      const refresh = async () =>
        oauth.processRefreshTokenResponse(
          as,
          own,
          await oauth.refreshTokenGrantRequest(as, own, auth, tokens.refresh_token ?? '', options),
        )
      for (let turn = 0; turn < 2; turn++) {
        const { refresh_token: next = tokens.refresh_token } = await withNonce(refresh)
        t.equal(next, tokens.refresh_token, 'it is not rotated')
      }
    }
    const machine = async () =>
      oauth.processClientCredentialsResponse(
        as,
        own,
        await oauth.clientCredentialsGrantRequest(as, own, auth, narrow, options),
      )
    t.match(await withNonce(machine), { token_type: 'dpop', access_token: /./ })
    t.ok(demanded > 0, 'the server demanded nonces')
  })
}
