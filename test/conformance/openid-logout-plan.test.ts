/** The OpenID Foundation's RP-initiated logout certification plan, module by module. */
import { generateKeyPair, SignJWT } from 'jose'
import t from 'tap'
import { pageOf, title } from '../helpers/authorization.ts'
import { claimsOf } from '../helpers/flow.ts'
import { goodbye, type SignIn, startSuite } from '../helpers/openid-suite.ts'
import { UserAgent } from '../helpers/user-agent.ts'

const suite = await startSuite(t)
const { server, metadata, client } = suite
type Test = Parameters<typeof suite.signIn>[0]

/** A signed-in user, as at the beginning of every module. */
async function begin(t: Test): Promise<{ agent: UserAgent; login: SignIn }> {
  const agent = new UserAgent(server.issuer)
  const login = await suite.signIn(t, {}, agent)
  return { agent, login }
}

function logoutUrl(fields: Readonly<Record<string, string>>): string {
  return `${metadata['end_session_endpoint']}?${new URLSearchParams(fields)}`
}

/** Whether an authorization request with prompt=none finds a session. */
async function isSignedIn(t: Test, agent: UserAgent): Promise<boolean> {
  const { members, pages } = await suite.authorize(t, { prompt: 'none' }, agent)
  t.strictSame(pages, [])
  if ('code' in members) return true
  t.equal(members['error'], 'login_required')
  return false
}

/** What is not valid leads to a page of the server: at most the session ends, and no redirect follows. */
async function assertStays(t: Test, agent: UserAgent, fields: Readonly<Record<string, string>>) {
  const page = pageOf(await agent.open(logoutUrl(fields)))
  t.equal(page.status, 200, JSON.stringify(Object.keys(fields)))
  if (title(page) === 'You are signed out') return
  t.equal(title(page), 'Sign out of Lychgate?')
  t.equal(await isSignedIn(t, agent), true)
  const end = pageOf(await agent.submit(page, { decision: 'stay' }))
  t.equal(new URL(end.url).pathname, '/')
}

/** Without a hint the user is asked; only yes ends the session, and then a page confirms it. */
async function assertAsks(t: Test, fields: Readonly<Record<string, string>>) {
  const { agent } = await begin(t)
  const page = pageOf(await agent.open(logoutUrl(fields)))
  t.equal(page.status, 200)
  t.equal(title(page), 'Sign out of Lychgate?')
  t.equal(await isSignedIn(t, agent), true)
  const done = pageOf(await agent.submit(page, { decision: 'logout' }))
  t.equal(title(done), 'You are signed out')
  t.equal(await isSignedIn(t, agent), false)
}

t.test(
  'oidcc-rp-initiated-logout-discovery-endpoint-verification: end_session_endpoint is published',
  async (t) => {
    t.equal(metadata['end_session_endpoint'], `${server.issuer}/oauth/logout`)
    t.equal((await fetch(String(metadata['end_session_endpoint']))).status, 200)
  },
)

t.test(
  '[oidc-rpl-2-state-returned] [oidc-rpl-2-logout-on-yes] [oidc-rpl-2-locales-no-error] oidcc-rp-initiated-logout: a hint and a registered redirect end the session and return with the state, whatever the locale',
  async (t) => {
    for (const locale of [{}, { ui_locales: 'xx se "<>' }]) {
      const { agent, login } = await begin(t)
      const landing = await agent.open(
        logoutUrl({
          id_token_hint: login.tokens.id_token,
          post_logout_redirect_uri: goodbye,
          state: 'a-._~ state',
          ...locale,
        }),
      )
      t.match(landing, { at: 'redirect', status: 303 })
      t.equal(landing.at === 'redirect' && landing.location.href, `${goodbye}?state=a-._%7E+state`)
      t.equal(await isSignedIn(t, agent), false)
    }
  },
)

t.test(
  '[oidc-rpl-2-state-returned] oidcc-rp-initiated-logout-no-state: without state the redirect has none',
  async (t) => {
    const { agent, login } = await begin(t)
    const fields = { id_token_hint: login.tokens.id_token, post_logout_redirect_uri: goodbye }
    const landing = await agent.open(logoutUrl(fields))
    t.equal(landing.at === 'redirect' && landing.location.href, goodbye)
    t.equal(await isSignedIn(t, agent), false)
  },
)

t.test(
  '[oidc-rpl-3-registered-redirect] oidcc-rp-initiated-logout-bad-post-logout-redirect-uri: an unregistered redirect is not followed',
  async (t) => {
    const { agent, login } = await begin(t)
    for (const uri of [`${goodbye}random`, `${goodbye}/`, client.redirectUri, goodbye.toUpperCase()])
      await assertStays(t, agent, {
        id_token_hint: login.tokens.id_token,
        post_logout_redirect_uri: uri,
        state: 's',
      })
  },
)

t.test(
  '[oidc-rpl-3-registered-redirect] oidcc-rp-initiated-logout-query-added-to-post-logout-redirect-uri: an added query makes the redirect unregistered',
  async (t) => {
    const { agent, login } = await begin(t)
    for (const query of ['?foo=bar', '?'])
      await assertStays(t, agent, {
        id_token_hint: login.tokens.id_token,
        post_logout_redirect_uri: goodbye + query,
        state: 's',
      })
  },
)

t.test(
  '[oidc-rpl-2-hint-validated] [oidc-rpl-4-errors-stay] oidcc-rp-initiated-logout-modified-id-token-hint: a hint with altered claims or signature proves nothing',
  async (t) => {
    const { agent, login } = await begin(t)
    const [header = '', claims = '', signature = ''] = login.tokens.id_token.split('.')
    const changed = encode({ ...claimsOf(login.tokens.id_token), sub: 'somebody' })
    const first = signature.startsWith('A') ? 'B' : 'A'
    for (const hint of [
      [header, changed, signature],
      [header, claims, first + signature.slice(1)],
      [header, claims, ''],
      [header, claims],
    ])
      await assertStays(t, agent, {
        id_token_hint: hint.join('.'),
        post_logout_redirect_uri: goodbye,
        state: 's',
      })
  },
)

t.test(
  '[oidc-rpl-2-hint-validated] [oidc-rpl-4-errors-stay] oidcc-rp-initiated-logout-bad-id-token-hint: a hint of alg none, of a foreign key or of the client secret proves nothing',
  async (t) => {
    const { agent, login } = await begin(t)
    const claims = claimsOf(login.tokens.id_token)
    const [header = ''] = login.tokens.id_token.split('.')
    const { kid } = JSON.parse(Buffer.from(header, 'base64url').toString()) as { kid: string }
    const { privateKey } = await generateKeyPair('RS256')
    const hints = [
      `${encode({ alg: 'none' })}.${encode(claims)}.`,
      await new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid, typ: 'JWT' }).sign(privateKey),
      await new SignJWT(claims)
        .setProtectedHeader({ alg: 'HS256', kid, typ: 'JWT' })
        .sign(Buffer.from(client.secret ?? '')),
      'not a token',
      login.tokens.access_token,
    ]
    for (const hint of hints)
      await assertStays(t, agent, { id_token_hint: hint, post_logout_redirect_uri: goodbye, state: 's' })
  },
)

t.test(
  '[oidc-rpl-3-no-hint-no-redirect] oidcc-rp-initiated-logout-no-id-token-hint: a redirect without a hint is not followed before the user agrees',
  async (t) => {
    const { agent } = await begin(t)
    const fields = { post_logout_redirect_uri: goodbye, state: 's' }
    await assertStays(t, agent, fields)
    const asked = pageOf(await agent.open(logoutUrl({ ...fields, client_id: client.id })))
    t.equal(title(asked), 'Sign out of Lychgate?')
    const landing = await agent.submit(asked, { decision: 'logout' })
    t.equal(landing.at === 'redirect' && landing.location.href, `${goodbye}?state=s`, 'once the user agreed')
  },
)

t.test(
  '[oidc-rpl-2-ask-user-normally] oidcc-rp-initiated-logout-no-post-logout-redirect-uri: with only a hint the session ends with a page',
  async (t) => {
    const { agent, login } = await begin(t)
    const landing = await agent.open(logoutUrl({ id_token_hint: login.tokens.id_token, state: 's' }))
    const page = pageOf(landing)
    t.equal(page.status, 200)
    t.equal(title(page), 'You are signed out')
    t.equal(await isSignedIn(t, agent), false)
  },
)

t.test(
  '[oidc-rpl-2-ask-user] [oidc-rpl-2-logout-on-yes] oidcc-rp-initiated-logout-no-params: without parameters the user is asked',
  (t) => assertAsks(t, {}),
)

t.test(
  '[oidc-rpl-2-ask-user] [oidc-rpl-2-logout-on-yes] oidcc-rp-initiated-logout-only-state: with only a state the user is asked',
  (t) => assertAsks(t, { state: 'lost' }),
)

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}
