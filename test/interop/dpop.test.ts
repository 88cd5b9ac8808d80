/** Clients of another author with DPoP, RFC 9449: with nonces demanded everywhere, and without. */
import * as oauth from 'oauth4webapi'
import * as client from 'openid-client'
import t from 'tap'
import { redirectUri, register } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { newUser } from '../helpers/user.ts'

const insecure = { [oauth.allowInsecureRequests]: true }
const servers = await Promise.all(
  (['off', 'always'] as const).map(async (nonce) => ({
    nonce,
    server: await startServer(t, { clock: 'machine', dpop: { nonce } }),
  })),
)

/** Repeats a request once if the server demands a nonce, as the documentation of the library shows. */
async function withNonce<T>(request: () => Promise<T>): Promise<T> {
  try {
    return await request()
  } catch (error) {
    if (!oauth.isDPoPNonceError(error)) throw error
    return request()
  }
}

for (const { nonce, server } of servers) {
  const issuer = new URL(server.issuer)
  const courses = new URL(`${server.issuer}/api/courses`)

  t.test(`oauth4webapi pushes, redeems, calls and refreshes with DPoP, nonce ${nonce}`, async (t) => {
    const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, insecure))
    const { id } = await register(server, { dpop_bound_access_tokens: true })
    const own: oauth.Client = { client_id: id }
    const DPoP = oauth.DPoP(own, await oauth.generateKeyPair('ES256'))
    const options = { ...insecure, DPoP }
    const verifier = oauth.generateRandomCodeVerifier()
    const parameters = {
      response_type: 'code',
      redirect_uri: redirectUri,
      scope: 'openid courses:read',
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    }
    const pushed = await withNonce(async () =>
      oauth.processPushedAuthorizationResponse(
        as,
        own,
        await oauth.pushedAuthorizationRequest(as, own, oauth.None(), parameters, options),
      ),
    )
    const url = new URL(as.authorization_endpoint ?? '')
    url.search = String(new URLSearchParams({ client_id: id, request_uri: pushed.request_uri }))
    const callback = oauth.validateAuthResponse(as, own, await newUser(server).approve(url))
    const tokens = await withNonce(async () =>
      oauth.processAuthorizationCodeResponse(
        as,
        own,
        await oauth.authorizationCodeGrantRequest(
          as,
          own,
          oauth.None(),
          callback,
          redirectUri,
          verifier,
          options,
        ),
      ),
    )
    t.equal(tokens.token_type, 'dpop')
    const call = () =>
      oauth.protectedResourceRequest(tokens.access_token, 'GET', courses, undefined, undefined, options)
    t.equal((await withNonce(call)).status, 200)
    const info = await withNonce(async () =>
      oauth.processUserInfoResponse(
        as,
        own,
        oauth.skipSubjectCheck,
        await oauth.userInfoRequest(as, own, tokens.access_token, options),
      ),
    )
    t.match(info, { sub: /./ })
    const refreshed = await withNonce(async () =>
      oauth.processRefreshTokenResponse(
        as,
        own,
        await oauth.refreshTokenGrantRequest(as, own, oauth.None(), tokens.refresh_token ?? '', options),
      ),
    )
    t.equal(refreshed.token_type, 'dpop')
    const stranger = { ...insecure, DPoP: oauth.DPoP(own, await oauth.generateKeyPair('ES256')) }
    const stolen = withNonce(async () =>
      oauth.processRefreshTokenResponse(
        as,
        own,
        await oauth.refreshTokenGrantRequest(as, own, oauth.None(), refreshed.refresh_token ?? '', stranger),
      ),
    )
    await t.rejects(stolen, { name: 'ResponseBodyError', error: 'invalid_grant' }, 'useless without the key')
    const bearer = oauth.protectedResourceRequest(
      refreshed.access_token,
      'GET',
      courses,
      undefined,
      undefined,
      insecure,
    )
    await t.rejects(
      bearer,
      { name: 'WWWAuthenticateChallengeError', status: 401 },
      'and so is the access token',
    )
  })

  t.test(`openid-client does the same, and repeats by itself, nonce ${nonce}`, async (t) => {
    const { id } = await register(server)
    const execute = [client.allowInsecureRequests]
    const config = await client.discovery(issuer, id, undefined, client.None(), { execute })
    for (const alg of ['ES256', 'PS256', 'EdDSA']) {
      const DPoP = client.getDPoPHandle(
        config,
        await client.randomDPoPKeyPair(alg === 'EdDSA' ? 'Ed25519' : alg),
      )
      const pkceCodeVerifier = client.randomPKCECodeVerifier()
      const parameters = {
        redirect_uri: redirectUri,
        scope: 'openid courses:read',
        code_challenge: await client.calculatePKCECodeChallenge(pkceCodeVerifier),
        code_challenge_method: 'S256',
        dpop_jkt: await DPoP.calculateThumbprint(),
      }
      const url =
        alg === 'ES256'
          ? client.buildAuthorizationUrl(config, parameters)
          : await client.buildAuthorizationUrlWithPAR(config, parameters, { DPoP })
      const callback = await newUser(server).approve(url)
      const tokens = await client.authorizationCodeGrant(config, callback, { pkceCodeVerifier }, undefined, {
        DPoP,
      })
      t.equal(tokens.token_type, 'dpop', alg)
      const sub = tokens.claims()?.sub ?? ''
      const response = await client.fetchProtectedResource(
        config,
        tokens.access_token,
        courses,
        'GET',
        undefined,
        undefined,
        { DPoP },
      )
      t.equal(response.status, 200)
      t.match(await client.fetchUserInfo(config, tokens.access_token, sub, { DPoP }), { sub })
      const refreshed = await client.refreshTokenGrant(config, tokens.refresh_token ?? '', undefined, {
        DPoP,
      })
      t.equal(refreshed.token_type, 'dpop')
      const stolen = client.refreshTokenGrant(config, refreshed.refresh_token ?? '')
      await t.rejects(stolen, { name: 'ResponseBodyError', error: 'invalid_grant' })
    }
  })
}
