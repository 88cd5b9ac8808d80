/** The modules of the OpenID Foundation's basic plan about the session, its age, and re-authentication. */
import t from 'tap'
import type { Suite } from '../helpers/openid-suite.ts'
import { UserAgent } from '../helpers/user-agent.ts'

const authTime = JSON.stringify({ id_token: { auth_time: { essential: true } } })

export function sessionModules({ server, ...suite }: Suite): void {
  t.test(
    '[oidc-core-3.1.2.1-prompt-login] oidcc-prompt-login: the user signs in again, and auth_time is newer',
    async (t) => {
      const agent = new UserAgent(server.issuer)
      const first = await suite.signIn(t, { claims: authTime }, agent)
      server.advance(5)
      const second = await suite.signIn(t, { claims: authTime, prompt: 'login' }, agent)
      t.strictSame(second.pages, ['/login'], 'consent is remembered')
      t.equal(second.claims['sub'], first.claims['sub'])
      t.ok(Number(second.claims['auth_time']) >= Number(first.claims['auth_time']) + 5)
    },
  )

  t.test(
    '[oidc-core-3.1.2.6-login-required] [oidc-core-3.1.2.6-error-params-only] oidcc-prompt-none-not-logged-in: the client gets the error at once, without a page',
    async (t) => {
      const state = 'Aa0-._~9'.repeat(16)
      const { members, pages } = await suite.authorize(t, { prompt: 'none', state })
      const { error_description: description, ...rest } = members
      t.strictSame(rest, { error: 'login_required', state, iss: server.issuer })
      t.match(description, /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/)
      t.strictSame(pages, [])
    },
  )

  t.test(
    '[oidc-core-3.1.2.1-prompt-none] oidcc-prompt-none-logged-in: with a session and a remembered consent no page is shown',
    async (t) => {
      const agent = new UserAgent(server.issuer)
      const first = await suite.signIn(t, { claims: authTime }, agent)
      server.advance(5)
      const second = await suite.signIn(t, { claims: authTime, prompt: 'none' }, agent)
      t.strictSame(second.pages, [])
      t.equal(second.claims['sub'], first.claims['sub'])
      t.type(second.claims['auth_time'], 'number')
      t.equal(second.claims['auth_time'], first.claims['auth_time'])
    },
  )

  t.test(
    '[oidc-core-3.1.2.1-max-age] oidcc-max-age-1: an older sign-in is repeated, and auth_time is newer',
    async (t) => {
      const agent = new UserAgent(server.issuer)
      const signedInAt = server.now()
      await suite.signIn(t, {}, agent)
      server.advance(2)
      const asked = await suite.authorize(t, { max_age: '1', prompt: 'none' }, agent)
      t.equal(asked.members['error'], 'login_required')
      const second = await suite.signIn(t, { max_age: '1' }, agent)
      t.strictSame(second.pages, ['/login'])
      t.type(second.claims['auth_time'], 'number')
      t.ok(Number(second.claims['auth_time']) >= signedInAt + 2)
    },
  )

  t.test(
    '[oidc-core-3.1.2.1-max-age] [oidc-core-2-auth-time-when-required] oidcc-max-age-10000: a younger sign-in is accepted, with auth_time',
    async (t) => {
      const agent = new UserAgent(server.issuer)
      const first = await suite.signIn(t, { max_age: '15000' }, agent)
      server.advance(5)
      const second = await suite.signIn(t, { max_age: '10000' }, agent)
      t.strictSame(second.pages, [])
      t.type(first.claims['auth_time'], 'number')
      t.equal(second.claims['auth_time'], first.claims['auth_time'])
      t.equal(second.claims['sub'], first.claims['sub'])
    },
  )

  t.test(
    '[oidc-core-3.1.2.1-id-token-hint-match] oidcc-id-token-hint: with the hint of the signed-in user no page is shown',
    async (t) => {
      const agent = new UserAgent(server.issuer)
      const first = await suite.signIn(t, { claims: authTime }, agent)
      server.advance(5)
      const hinted = { prompt: 'none', id_token_hint: first.tokens.id_token, claims: authTime }
      const second = await suite.signIn(t, hinted, agent)
      t.strictSame(second.pages, [])
      t.equal(second.claims['sub'], first.claims['sub'])
      t.type(second.claims['auth_time'], 'number')
      t.equal(second.claims['auth_time'], first.claims['auth_time'])
    },
  )
}
