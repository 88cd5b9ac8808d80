/** A site of libraries by other authors: openid-client signs users in and out, jose verifies the logout tokens. */
import { createRemoteJWKSet, jwtVerify } from 'jose'
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  buildEndSessionUrl,
  calculatePKCECodeChallenge,
  discovery,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
  refreshTokenGrant,
} from 'openid-client'
import t from 'tap'
import { callback, integrate } from '../helpers/authorization.ts'
import { startLogoutReceiver } from '../helpers/logout-receiver.ts'
import { startServer } from '../helpers/server.ts'
import { newUser } from '../helpers/user.ts'

const goodbye = 'https://portal.example/goodbye'
const server = await startServer(t, { mode: 'dev' })

t.test(
  '[oidc-bcl-2.6-validation] a site that knows only the issuer ends its session when the user signs out',
  async (t) => {
    const receiver = await startLogoutReceiver(t)
    const { id, secret = '' } = await integrate(server, {
      consent: 'skip',
      postLogoutRedirectUris: [goodbye],
      authenticationMethod: 'client_secret_post',
      idTokenSignedResponseAlg: 'ES256',
      description: { backchannel_logout_uri: receiver.uri, refresh_tokens: 'session' },
    })
    const metadata = { client_secret: secret, id_token_signed_response_alg: 'ES256' }
    const config = await discovery(new URL(server.issuer), id, metadata, undefined, {
      execute: [allowInsecureRequests],
    })
    const { jwks_uri: keysUri = '', ...members } = config.serverMetadata()
    t.equal(members['backchannel_logout_supported'], true)
    const [verifier, state, nonce] = [randomPKCECodeVerifier(), randomState(), randomNonce()]
    const url = buildAuthorizationUrl(config, {
      redirect_uri: callback,
      scope: 'openid',
      code_challenge: await calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      ...{ state, nonce },
    })
    const user = newUser(server)
    const checks = { pkceCodeVerifier: verifier, expectedState: state, expectedNonce: nonce }
    const tokens = await authorizationCodeGrant(config, await user.approve(url), checks)
    const claims = tokens.claims()
    const [sub, sid] = [claims?.sub, claims?.['sid']]
    // The site's own sessions, by issuer and sid.
    const sessions = new Map([[`${server.issuer} ${sid}`, sub]])

    const end = { post_logout_redirect_uri: goodbye, id_token_hint: tokens.id_token ?? '' }
    const landing = await user.agent.open(String(buildEndSessionUrl(config, end)))
    t.match(landing, { at: 'redirect' })
    const { form } = await receiver.next()
    const keys = createRemoteJWKSet(new URL(keysUri))
    const { payload } = await jwtVerify(form.get('logout_token') ?? '', keys, {
      issuer: members.issuer,
      audience: id,
      typ: 'logout+jwt',
      algorithms: ['ES256'],
      maxTokenAge: 120,
      requiredClaims: ['exp', 'jti', 'events', 'sub', 'sid'],
    })
    t.equal(payload.sub, sub)
    t.ok(sessions.delete(`${payload.iss} ${payload['sid']}`), 'the site finds the session')
    await t.rejects(refreshTokenGrant(config, tokens.refresh_token ?? ''), /invalid_grant|response body/)
  },
)
