/** The modules of the OpenID Foundation's basic plan about the flow itself, UserInfo and the tokens. */
import t from 'tap'
import type { Suite } from '../helpers/openid-suite.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { assertRejected, isAlive } from '../helpers/wire.ts'

export function flowModules({ server, metadata, jwks, client, client2, postClient, ...suite }: Suite): void {
  t.test(
    '[oidc-core-3.1.3.3-id-token-returned] [oidc-core-2-iss] [oidc-core-2-aud] [oidc-core-2-signed] oidcc-server: the code flow without PKCE ends with an ID Token that verifies and has no profile claims',
    async (t) => {
      const first = await suite.signIn(t, { scope: 'openid' })
      t.strictSame(first.pages, ['/login', '/consent'])
      const second = await suite.signIn(t, { scope: 'openid' })
      t.not(first.members['code'], second.members['code'])
      t.equal(second.claims['sub'], first.claims['sub'])
      const kids = jwks.keys.map(({ kid }) => kid)
      t.equal(new Set(kids).size, kids.length)
      t.notOk(kids.includes(undefined))
      for (const key of jwks.keys)
        for (const name of ['d', 'p', 'q', 'dp', 'dq', 'qi', 'k']) t.notOk(name in key)
    },
  )

  t.test(
    'oidcc-server-client-secret-post: a client with this method sends its secret in the form',
    async (t) => {
      await suite.signIn(t, {}, undefined, postClient)
    },
  )

  t.test(
    '[rfc6749-3.1.1-response-type-missing] oidcc-response-type-missing: the client gets the error with its state',
    async (t) => {
      const { members, pages } = await suite.authorize(t, { response_type: undefined, state: 'a-state' })
      const { error_description: description, ...rest } = members
      t.strictSame(rest, { error: 'invalid_request', state: 'a-state', iss: server.issuer })
      t.match(description, /response_type/)
      t.strictSame(pages, [])
    },
  )

  t.test(
    '[service-4-userinfo-get] oidcc-userinfo-get: UserInfo accepts GET with a bearer header',
    async (t) => {
      const told = await suite.userInfo(t, await suite.signIn(t))
      t.strictSame(Object.keys(told), ['sub'])
    },
  )

  t.test(
    '[oidc-core-5.3-get-and-post] oidcc-userinfo-post-header: UserInfo accepts POST with a bearer header and no body',
    async (t) => {
      const login = await suite.signIn(t, { scope: 'openid profile email' })
      const headers = { authorization: `Bearer ${login.tokens.access_token}` }
      const told = await suite.userInfo(t, login, { method: 'POST', headers })
      t.strictSame(told, await suite.userInfo(t, login))
    },
  )

  t.test(
    '[oidc-core-5.3-post-body-token] oidcc-userinfo-post-body: UserInfo accepts access_token as a form field',
    async (t) => {
      const login = await suite.signIn(t, { scope: 'openid profile email' })
      const body = new URLSearchParams({ access_token: login.tokens.access_token })
      const told = await suite.userInfo(t, login, { method: 'POST', body })
      t.strictSame(told, await suite.userInfo(t, login))
    },
  )

  t.test(
    '[oidc-core-3.1.2.1-nonce-optional-code] oidcc-ensure-request-without-nonce-succeeds-for-code-flow: nonce and PKCE are optional',
    async (t) => {
      const { claims } = await suite.signIn(t, { nonce: undefined })
      t.notOk('nonce' in claims)
    },
  )

  t.test('oidcc-alternate-happy-flow: scopes and parameters come in any order', async (t) => {
    const inOrder = [...suite.requestOf({ scope: 'email openid' }, client)].reverse()
    const query = new URLSearchParams(inOrder)
    const agent = new UserAgent(server.issuer)
    const response = await suite.finish(t, agent, await agent.open(suite.urlOf(query)))
    const login = await suite.checkedSignIn(t, query, response)
    t.strictSame(Object.keys(await suite.userInfo(t, login)).sort(), ['email', 'email_verified', 'sub'])
  })

  t.test(
    '[rfc6749-4.1.2-code-single-use] oidcc-codereuse: a second use of a code is invalid_grant',
    async (t) => {
      const { members } = await suite.signIn(t)
      const again = await suite.redeem(members['code'])
      await assertRejected(t, again, 'invalid_grant')
    },
  )

  t.test(
    '[rfc6749-4.1.2-code-replay-revokes] oidcc-codereuse-30seconds: reusing a code after half a minute revokes what was issued from it',
    async (t) => {
      const { members, tokens } = await suite.signIn(t)
      t.equal(await isAlive(server, tokens.access_token), true)
      server.advance(30)
      t.equal(await isAlive(server, tokens.access_token), true)
      await assertRejected(t, await suite.redeem(members['code']), 'invalid_grant')
      t.equal(await isAlive(server, tokens.access_token), false)
      await assertRejected(t, await suite.refresh(tokens.refresh_token), 'invalid_grant')
    },
  )

  t.test(
    '[oidc-core-12.2-refresh-id-token] [oidc-core-12.2-refresh-nonce] [rfc6749-6-bound-to-client] oidcc-refresh-token: a refresh gives an ID Token of the same sign-in, only to its own client',
    async (t) => {
      t.ok((metadata['grant_types_supported'] as string[]).includes('refresh_token'))
      // With offline_access listed, the suite requests it, with prompt=consent.
      t.ok((metadata['scopes_supported'] as string[]).includes('offline_access'))
      const offline = { scope: 'openid offline_access', prompt: 'consent' }
      for (const asked of [{}, { max_age: '10000' }, offline]) {
        const login = await suite.signIn(t, asked)
        t.equal('auth_time' in login.claims, 'max_age' in asked)
        let token = login.tokens.refresh_token
        let issuedAt = Number(login.claims['iat'])
        for (const fields of [{}, { scope: 'openid' }]) {
          server.advance(20)
          const tokens = await suite.checkedTokens(t, await suite.refresh(token, fields))
          const claims = await suite.checkedIdToken(t, tokens)
          for (const name of ['iss', 'sub', 'aud', 'azp', 'auth_time', 'acr', 'amr'])
            t.strictSame(claims[name], login.claims[name], name)
          t.equal('auth_time' in claims, 'auth_time' in login.claims)
          t.ok(Number(claims['iat']) >= issuedAt + 20, 'issued again')
          t.notOk('nonce' in claims)
          await suite.userInfo(t, { ...login, tokens, claims })
          t.not(tokens.access_token, login.tokens.access_token)
          token = tokens.refresh_token
          issuedAt = Number(claims['iat'])
        }
        await assertRejected(t, await suite.refresh(token, {}, client2), 'invalid_grant')
        await suite.checkedTokens(t, await suite.refresh(token))
      }
    },
  )
}
