import { generateKeyPair, SignJWT } from 'jose'
import t from 'tap'
import {
  ask,
  assertErrorRedirect,
  integrate,
  pageOf,
  place,
  sentAway,
  signedIn,
} from '../helpers/authorization.ts'
import { authorize, claimsOf, exchange, obtainTokens, register } from '../helpers/flow.ts'
import { alice, bob, startServer } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'

const api = { identifier: 'https://api.example', name: 'API', scopes: ['courses:read'] }
const server = await startServer(t, { resources: [{ ...api, tokenFormat: 'jwt' }] })
const client = await register(server)
const firstParty = await integrate(server, { consent: 'skip' })
const [asAlice, asBob] = [await signedIn(server, client), await signedIn(server, client, bob)]
const { id_token: hint } = await obtainTokens(server, client, { agent: asAlice })
const sub = String(claimsOf(hint)['sub'])
const silent = { prompt: 'none' }

t.test(
  '[oidc-core-3.1.2.1-id-token-hint-match] the response is about the user of the hint or is login_required',
  async (t) => {
    const same = sentAway(await ask(server, firstParty, { ...silent, id_token_hint: hint }, asAlice))
    const tokens = (await (await exchange(server, firstParty, same['code'] ?? '')).json()) as {
      id_token: string
    }
    t.equal(claimsOf(tokens.id_token)['sub'], sub)
    for (const agent of [asBob, undefined]) {
      const response = await authorize(server, firstParty, { ...silent, id_token_hint: hint }, agent)
      assertErrorRedirect(t, server, response, 'login_required', { to: firstParty.redirectUri })
    }
  },
)

t.test(
  '[oidc-core-3.1.2.1-id-token-hint-match] [oidc-core-3.1.2.2-specific-sub] another signed-in user is asked to let the user of the hint sign in',
  async (t) => {
    const request = { id_token_hint: hint }
    const agent = await signedIn(server, client, bob)
    const wrong = await agent.submit(pageOf(await ask(server, firstParty, request, agent)), bob)
    const { error, state, iss, code } = sentAway(wrong)
    t.same(
      { error, state, iss, code },
      { error: 'login_required', state: 'a-state', iss: server.issuer, code: undefined },
    )
    const landing = await ask(server, firstParty, request, agent)
    t.equal(place(landing), '/login')
    t.notMatch(pageOf(landing).html, 'Confirm that it is you')
    t.match(sentAway(await agent.submit(pageOf(landing), alice)), { code: /./ })
  },
)

t.test('[oidc-core-3.1.2.2-hint-issuer] a hint that this server did not sign is rejected', async (t) => {
  const [header = '', claims = '', signature = ''] = hint.split('.')
  const { kid } = JSON.parse(Buffer.from(header, 'base64url').toString()) as { kid: string }
  const { privateKey } = await generateKeyPair('RS256')
  const foreign = await new SignJWT(claimsOf(hint))
    .setProtectedHeader({ alg: 'RS256', kid, typ: 'JWT' })
    .sign(privateKey)
  const forBob = Buffer.from(JSON.stringify({ ...claimsOf(hint), sub: 'bob' })).toString('base64url')
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const hmac = await new SignJWT(claimsOf(hint))
    .setProtectedHeader({ alg: 'HS256', kid })
    .sign(Buffer.from('k'.repeat(32)))
  const { access_token: accessToken } = await obtainTokens(server, client, { agent: asAlice })
  const fields = { resource: api.identifier, scope: 'courses:read' }
  const { access_token: signedAccessToken } = await obtainTokens(server, client, { agent: asAlice, fields })
  t.match(claimsOf(signedAccessToken), { iss: server.issuer, sub }, 'signed by us, and no ID Token')
  const wrong = {
    foreign,
    hmac,
    tampered: [header, forBob, signature].join('.'),
    unsigned: [encode({ alg: 'none' }), claims, ''].join('.'),
    cut: hint.slice(0, -1),
    accessToken,
    signedAccessToken,
    garbage: 'a.b.c',
  }
  for (const [message, text] of Object.entries(wrong)) {
    for (const fields of [{ id_token_hint: text }, { ...silent, id_token_hint: text }]) {
      const response = await authorize(server, firstParty, fields, asAlice)
      assertErrorRedirect(t, server, response, 'invalid_request', { to: firstParty.redirectUri, message })
    }
  }
})

t.test(
  '[oidc-core-3.1.2.2-specific-sub] only the user whose sub the claims parameter requests gets a response',
  async (t) => {
    for (const place of ['id_token', 'userinfo']) {
      const claims = JSON.stringify({ [place]: { sub: { value: sub } } })
      t.match(sentAway(await ask(server, firstParty, { ...silent, claims }, asAlice)), { code: /./ })
      const response = await authorize(server, firstParty, { ...silent, claims }, asBob)
      assertErrorRedirect(t, server, response, 'login_required', { to: firstParty.redirectUri })
    }
    const two = { id_token_hint: hint, claims: '{"id_token":{"sub":{"value":"somebody"}}}' }
    assertErrorRedirect(t, server, await authorize(server, firstParty, two, asAlice), 'login_required', {
      to: firstParty.redirectUri,
    })
  },
)

t.test(
  '[oidc-core-3.1.2.1-login-hint] login_hint is filled in as text, and an unknown one changes nothing',
  async (t) => {
    const typed = async (loginHint: string) => {
      const page = pageOf(await ask(server, client, { login_hint: loginHint }))
      t.notMatch(page.html, /<script>|<b>|onfocus=[^&]*>/)
      return page.forms[0]?.fields.find(({ name }) => name === 'username')?.value
    }
    t.equal(await typed('bob@example.test'), 'bob@example.test')
    for (const hostile of ['"><script>alert(1)</script>', "' onfocus='alert(1)", '<b>é&amp;</b>'])
      t.equal(await typed(hostile), hostile)
    t.equal((await typed('x'.repeat(4000)))?.length, 256)
    t.equal(await typed('nobody@nowhere.example'), 'nobody@nowhere.example')
    const agent = new UserAgent(server.issuer)
    const page = pageOf(await ask(server, firstParty, { login_hint: 'nobody@nowhere.example' }, agent))
    t.match(sentAway(await agent.submit(page, alice)), { code: /./ })
  },
)

t.test('[oidc-core-3.1.2.2-expired-hint-ok] an expired ID Token is accepted as a hint', async (t) => {
  server.advance(4000)
  t.ok(Number(claimsOf(hint)['exp']) < server.now())
  const fields = { ...silent, id_token_hint: hint }
  t.match(sentAway(await ask(server, firstParty, fields, asAlice)), { code: /./ })
  t.match(sentAway(await ask(server, firstParty, fields, asBob)), { error: 'login_required' })
})
