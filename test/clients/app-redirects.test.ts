/** Redirect URIs that open an app of the device (RFC 8252 §7.1), for clients that an operator adds. */
import t from 'tap'
import {
  ask,
  assertErrorRedirect,
  bodyOf,
  integrate,
  pageOf,
  place,
  sentAway,
  signedIn,
  title,
} from '../helpers/authorization.ts'
import { authorize, exchange, register } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'

const server = await startServer(t)
const app = 'app.immich:///oauth-callback'
const web = 'https://photos.example/auth/login'
const photos = { redirectUris: [app, web], postLogoutRedirectUris: ['app.immich:/bye'] }
const client = await integrate(server, photos)
const user = await signedIn(server, await register(server))
const consentPage = async (fields = {}) => pageOf(await ask(server, client, fields, user))

t.test('each form of RFC 8252 §7.1 is added, and other schemes are rejected with the reason', async (t) => {
  for (const uri of [
    'com.example.app:/oauth2redirect',
    'com.example.app://host/path',
    'com.example.app://host',
  ])
    t.ok(await integrate(server, { redirectUris: [uri], authenticationMethod: 'none' }), uri)
  const rejected: Readonly<Record<string, RegExp>> = {
    'javascript:alert(1)': /scheme javascript is not/,
    'JavaScript:/alert(1)': /scheme javascript is not/,
    'data:text/html,x': /scheme data is not/,
    'file:///etc/passwd': /scheme file is not/,
    'blob:/x': /scheme blob is not/,
    'about:/x': /scheme about is not/,
    'vbscript:/x': /scheme vbscript is not/,
    'intent://scan/x': /scheme intent is not/,
    'ms-settings:/x': /scheme ms-settings is not/,
    'http+unix:/x': /scheme http\+unix is not/,
    'http://192.168.1.20:2283/auth/login': /docs\/home-network\.md/,
    'myapp:/cb': /without a dot.+any-redirect-scheme/,
    'com.example.app:/cb#x': /without a fragment/,
    'com.example.app:cb': /of an app such as/,
    'com.example.app:/\u0000': /of an app such as/,
    'com.example.app:/ cb': /of an app such as/,
    'com.example.app:/*': /must not have a \*/,
    'com.example.app:/cb?code=1': /reserved authorization response parameter/,
    'com.example.app://user@host/cb': /of an app such as/,
    'COM.example.app:/cb': /of an app such as/,
    'com.example.app://': /of an app such as/,
  }
  for (const [uri, why] of Object.entries(rejected))
    await t.rejects(integrate(server, { redirectUris: [web, uri] }), {
      code: 'invalid_redirect_uri',
      message: why,
    })
})

t.test('a scheme without a dot needs the flag that names the risk', async (t) => {
  const short = { redirectUris: ['audiobookshelf://oauth'] }
  const added = await integrate(server, { ...short, description: { any_redirect_scheme: true } })
  t.match(await server.deps.store.find('client', added.id), { extra: { any_redirect_scheme: true } })
  for (const uri of ['javascript:/x', 'file:///x', 'search-ms:/x', 'http:/x', 'https:///x'])
    await t.rejects(
      integrate(server, { redirectUris: [uri], description: { any_redirect_scheme: true } }),
      { code: 'invalid_redirect_uri' },
      uri,
    )
})

t.test(
  '[rfc8252-8.6-no-automatic-approval] consent for an app is asked every time, that for the web is remembered',
  async (t) => {
    const allowed = await user.submit(await consentPage({ redirect_uri: web }), { decision: 'approve' })
    t.match(sentAway(allowed), { code: /./ })
    t.match(sentAway(await ask(server, client, { redirect_uri: web }, user)), { code: /./ })
    t.equal(place(await ask(server, client, {}, user)), '/consent')
    const silent = await authorize(server, client, { prompt: 'none' }, user)
    assertErrorRedirect(t, server, silent, 'consent_required', { to: app })
    const skipping = await integrate(server, { ...photos, consent: 'skip' })
    t.equal(place(await ask(server, skipping, {}, user)), '/consent', 'and where the operator skips it')
  },
)

t.test(
  '[rfc8252-8.1-native-pkce-required] an app needs PKCE where it is optional for the client',
  async (t) => {
    const lax = await integrate(server, { ...photos, pkce: 'optional' })
    const without = { code_challenge: undefined, code_challenge_method: undefined }
    t.equal(place(await ask(server, lax, { ...without, redirect_uri: web }, user)), '/consent')
    assertErrorRedirect(t, server, await authorize(server, lax, without, user), 'invalid_request', {
      to: app,
    })
  },
)

t.test('the page says what opens, a second Allow is a page, and there is one code', async (t) => {
  const page = await consentPage()
  t.match(page.html, /Allow opens the app <bdi[^>]*>app\.immich<\/bdi> on this device/)
  t.match(page.html, 'If no app opens, it is not installed here')
  const grants = async () =>
    (await server.deps.store.grantsFrom({ clientId: client.id, limit: 100 })).grants.length
  const before = await grants()
  const allow = () =>
    user.send(`${server.issuer}/consent`, { method: 'POST', body: bodyOf(page, { decision: 'approve' }) })
  const first = await allow()
  t.equal(first.status, 303)
  const location = first.headers.get('location') ?? ''
  t.ok(location.startsWith(`${app}?code=`), location)
  const again = await allow()
  t.equal(again.status, 400)
  t.equal(again.headers.get('location'), null)
  t.match(await again.text(), 'If you pressed Allow and no app opened')
  t.equal(await grants(), before + 1)
  const code = new URL(location).searchParams.get('code') ?? ''
  t.equal((await exchange(server, client, code)).status, 200)
})

t.test('nothing of a registered URI may differ, and no form is posted to an app', async (t) => {
  for (const uri of [
    'app.immich:/oauth-callback',
    `${app}/`,
    'app.immich2:///oauth-callback',
    `${app}?x=1`,
  ]) {
    const page = pageOf(await ask(server, client, { redirect_uri: uri }, user))
    t.equal(page.status, 400, uri)
  }
  const posted = pageOf(await ask(server, client, { response_mode: 'form_post' }, user))
  t.equal(posted.status, 400)
  t.match(posted.html, 'a browser cannot post a form to an app')
})

t.test('sign-out leads back to an app', async (t) => {
  const other = await signedIn(server, client)
  const query = new URLSearchParams({ client_id: client.id, post_logout_redirect_uri: 'app.immich:/bye' })
  const page = pageOf(await other.open(`${server.issuer}/oauth/logout?${query}`))
  t.match(title(page), 'Sign out')
  const landing = await other.submit(page, {})
  t.equal(landing.at === 'redirect' && landing.location.href, 'app.immich:/bye')
})

t.test('an app that registers itself has none of them', async (t) => {
  await t.rejects(register(server, { redirect_uris: [app] }), /400/)
})
