/** An `id_token_hint` that a form of another site sent is in no URL: a reference to what it proved is, once. */
import t from 'tap'
import { makeClientKey } from '../helpers/assertions.ts'
import { ask, integrate, pageOf, sentAway, signedIn, title } from '../helpers/authorization.ts'
import { authorizationUrl, exchange, type Fields, register } from '../helpers/flow.ts'
import { signRequest } from '../helpers/request-objects.ts'
import { alice, bob, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { addClient } from '../helpers/wire.ts'

const goodbye = 'https://portal.example/goodbye'
const server = await startServer(t, { mode: 'dev' })
const client = await register(server)
const portal = await integrate(server, { consent: 'skip', postLogoutRedirectUris: [goodbye] })
const hintOf = async (user = alice) => {
  const { code = '' } = sentAway(await ask(server, portal, {}, await signedIn(server, client, user)))
  return ((await (await exchange(server, portal, code)).json()) as { id_token: string }).id_token
}
const [hint, bobsHint] = [await hintOf(), await hintOf(bob)]

/** Where a form of another site is redirected to: no cookie comes with it. */
async function post(path: string, body: URLSearchParams): Promise<URL> {
  const sent = await fetch(server.issuer + path, { method: 'POST', body, redirect: 'manual' })
  t.equal(sent.status, 303)
  t.strictSame(sent.headers.getSetCookie(), [])
  return new URL(sent.headers.get('location') ?? '', server.issuer)
}

const signOut = (fields: Record<string, string>) => post('/oauth/logout', new URLSearchParams(fields))
const authorize = (fields: Fields) =>
  post('/oauth/authorize', new URL(authorizationUrl(server, portal, fields)).searchParams)

t.test(
  '[oidc-rpl-2-get-and-post] [oidc-rpl-2-hint-validated] a sign-out by a form of another site redirects with a reference, which counts once',
  async (t) => {
    const url = await signOut({ id_token_hint: hint, post_logout_redirect_uri: goodbye, state: 's' })
    t.notMatch(url.href, /eyJ|id_token_hint/)
    t.match(url.searchParams.get('held_request'), /^lyc_held_[\w-]{43}$/)
    const agent = await signedIn(server, client)
    const landing = await agent.open(url.href)
    t.equal(landing.at === 'redirect' && landing.location.href, `${goodbye}?state=s`)
    const other = await signedIn(server, client)
    t.equal(
      title(pageOf(await other.open(url.href))),
      'Sign out of Lychgate?',
      'a second time the user is asked',
    )
    t.notMatch(server.log.join('\n'), /eyJ|lyc_held_\w{9}/)
  },
)

t.test(
  '[oidc-rpl-2-ask-user] [oidc-rpl-3-no-hint-no-redirect] with the reference to a hint about another user the question leads to the client',
  async (t) => {
    const url = await signOut({ id_token_hint: bobsHint, post_logout_redirect_uri: goodbye })
    const agent = await signedIn(server, client)
    const page = pageOf(await agent.open(url.href))
    t.equal(title(page), 'Sign out of Lychgate?')
    t.notMatch(page.html, 'eyJ')
    t.match(await agent.submit(page, { decision: 'stay' }), { at: 'page' })
    const landing = await agent.submit(page, { decision: 'logout' })
    t.equal(landing.at === 'redirect' && landing.location.href, goodbye)
  },
)

t.test(
  '[oidc-rpl-2-hint-validated] a hint that is not valid is in no URL, and its request is recorded',
  async (t) => {
    const forged = `${hint.slice(0, -4)}AAAA`
    const url = await signOut({ id_token_hint: forged, post_logout_redirect_uri: goodbye })
    t.equal(url.search, `?${new URLSearchParams({ post_logout_redirect_uri: goodbye })}`)
    t.match(server.log.at(-1), 'oidc-rpl-2-hint-validated')
    t.notMatch(server.log.join('\n'), forged.slice(10))
    const agent = await signedIn(server, client)
    t.equal(title(pageOf(await agent.open(url.href))), 'Sign out of Lychgate?')
  },
)

t.test(
  '[oidc-core-3.1.2.1-get-and-post] [oidc-core-3.1.2.1-id-token-hint-match] an authorization request by a form of another site redirects with a reference, which counts once and in time',
  async (t) => {
    const fields = { id_token_hint: hint, prompt: 'none', state: 'x y' }
    const [url, late] = [await authorize(fields), await authorize(fields)]
    t.strictSame([...url.searchParams.keys()], ['held_request'])
    const [asAlice, asBob] = [await signedIn(server, client), await signedIn(server, client, bob)]
    t.match(sentAway(await asAlice.open(url.href)), { code: /./, state: 'x y', iss: server.issuer })
    const again = pageOf(await asAlice.open(url.href))
    t.match(again, { status: 400, html: /continued already/ })
    t.match(server.log.at(-1), 'lychgate-held-request-once')
    const ofBob = await authorize(fields)
    t.match(sentAway(await asBob.open(ofBob.href)), { error: 'login_required', state: 'x y' })
    const made = late.searchParams.get('held_request') ?? ''
    const guessed = new URL(late.href)
    guessed.searchParams.set('held_request', `${made.slice(0, -1)}${made.endsWith('A') ? 'B' : 'A'}`)
    t.equal(pageOf(await asAlice.open(guessed.href)).status, 400)
    server.advance(601)
    t.equal(pageOf(await asAlice.open(late.href)).status, 400)
  },
)

t.test('[rfc9101-4-parameters] a hint in a request object is in no URL either', async (t) => {
  const key = makeClientKey('ES256')
  const description = { jwks: { keys: [key.jwk] }, require_signed_request_object: true }
  const signing = await addClient(server, { authenticationMethod: 'client_secret_post', description })
  const request = signRequest(key, signing, server, { claims: { id_token_hint: hint, prompt: 'none' } })
  const body = new URLSearchParams({ client_id: signing.id, request })
  const url = await post('/oauth/authorize', body)
  t.strictSame([...url.searchParams.keys()], ['held_request'])
  const agent = await signedIn(server, client, bob)
  t.match(sentAway(await agent.open(url.href)), { error: 'login_required' })
})

t.test('a parameter of that name which is no reference is ignored', async (t) => {
  const agent = new UserAgent(server.issuer)
  t.match(await ask(server, client, { held_request: 'anything' }, agent), {
    at: 'page',
    page: { status: 200 },
  })
})
