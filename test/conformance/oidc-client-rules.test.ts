import t from 'tap'
import { omitUndefined } from '../../src/domain/omit-undefined.ts'
import { userNames } from '../../src/specs/oidc-client/rules/first-sign-in.ts'
import { canonicalUsername } from '../../src/users/rules/user.ts'
import { makeClientKey } from '../helpers/assertions.ts'
import { authorizationUrl } from '../helpers/flow.ts'
import { recordOf } from '../helpers/rejection.ts'
import { bob, startServer } from '../helpers/server.ts'
import {
  buttonOf,
  goAway,
  locationOf,
  pageOf,
  type StandInUpstream,
  startStandInUpstream,
  startWithUpstream,
  textOf,
  UserAgent,
  upstreamOf,
} from '../helpers/stand-in-upstream.ts'

const now = () => Math.floor(Date.now() / 1000)
const foreign = makeClientKey('RS256', 'first')

/** What an upstream says, and the rule that rejects it. */
const faults: readonly (readonly [what: string, says: StandInUpstream['says']])[] = [
  ['[oidc-core-3.1.3.7-rp-signature] a key that it does not publish', { signedBy: foreign }],
  ['[oidc-core-3.1.3.7-rp-signature] an ID Token of another type', { header: { typ: 'at+jwt' } }],
  ['[oidc-core-3.1.3.7-rp-signature] a key in the header', { header: { jwk: foreign.jwk } }],
  ['[oidc-core-3.1.3.7-rp-alg] another algorithm', { header: { alg: 'PS256' } }],
  ['[oidc-core-3.1.3.7-rp-alg] no algorithm', { header: { alg: 'none' } }],
  ['[oidc-core-3.1.3.7-rp-iss] another issuer', { claims: { iss: 'https://login.example' } }],
  ['[oidc-core-3.1.3.7-rp-aud] another audience', { claims: { aud: 'another' } }],
  [
    '[oidc-core-3.1.3.7-rp-aud] one audience more',
    { claims: { aud: ['lychgate', 'another'], azp: 'lychgate' } },
  ],
  ['[oidc-core-3.1.3.7-rp-aud] no audience', { claims: { aud: [] } }],
  ['[oidc-core-3.1.3.7-rp-azp] another authorized party', { claims: { azp: 'another' } }],
  ['[oidc-core-3.1.3.7-rp-exp] an expired ID Token', { claims: { exp: now() - 100 } }],
  ['[oidc-core-3.1.3.7-rp-iat] an old ID Token', { claims: { iat: now() - 4000 } }],
  ['[oidc-core-3.1.3.7-rp-iat] an ID Token of tomorrow', { claims: { iat: now() + 80_000 } }],
  ['[oidc-core-3.1.3.7-rp-iat] an ID Token for later', { claims: { nbf: now() + 4000 } }],
  ['[oidc-core-3.1.3.7-rp-nonce] another nonce', { claims: { nonce: 'another' } }],
  ['[oidc-core-3.1.3.7-rp-nonce] no nonce', { claims: { nonce: undefined } }],
  ['[oidc-core-3.1.3.8-rp-at-hash] another access token', { claims: { at_hash: 'AAAAAAAAAAAAAAAAAAAAAA' } }],
  ['[oidc-core-2-rp-sub] no user', { claims: { sub: undefined } }],
  ['[oidc-core-2-rp-sub] a user that is too long', { claims: { sub: 'a'.repeat(256) } }],
  ['[oidc-core-3.1.3.5-rp-token-response] no ID Token', { tokens: { id_token: undefined } }],
  ['[oidc-core-3.1.3.5-rp-token-response] a token of another type', { tokens: { token_type: 'DPoP' } }],
  [
    '[oidc-core-5.3.2-rp-sub] UserInfo of another user',
    { claims: { name: undefined }, userInfo: { sub: '2' } },
  ],
  [
    '[rfc9207-2.4-client-compares-iss] a response of another issuer',
    { response: { iss: 'https://login.example' } },
  ],
  ['[rfc9207-2.4-client-compares-iss] a response of no issuer', { response: { iss: undefined } }],
  ['[oidc-core-3.1.2.7-rp-response] a response without a code', { response: { code: undefined } }],
]

t.test('a response of an upstream that breaks a rule signs no one in', async (t) => {
  const { upstream, server, client } = await startWithUpstream(t, { firstSignIn: 'any' })
  for (const [what, says] of faults) {
    const rule = /^\[(.*)\]/.exec(what)?.[1]
    const here = new UserAgent(server.issuer)
    upstream.says = says
    const back = upstream.respondTo(await goAway(here, authorizationUrl(server, client)))
    const page = pageOf(await here.open(back))
    t.equal(page.status, 400, what)
    t.match(textOf(page), 'Signing in with Work does not work')
    t.equal((await recordOf(server, page)).rule, rule, what)
    t.equal(here.cookie('session'), undefined)
  }
  upstream.says = {}
  const here = new UserAgent(server.issuer)
  const page = pageOf(
    await here.open(upstream.respondTo(await goAway(here, authorizationUrl(server, client)))),
  )
  t.match(page.html, 'value="approve"', 'the same without a fault signs in')
})

const unusable = [
  ['[oidc-disc-4.3-rp-issuer-exact] the metadata of another issuer', { issuer: 'https://login.example' }],
  [
    '[oidc-disc-3-rp-endpoints] an endpoint that is a script',
    { authorization_endpoint: 'javascript:alert(1)' },
  ],
  ['[oidc-disc-3-rp-endpoints] a token endpoint over http', { token_endpoint: 'http://login.example/token' }],
  [
    '[oidc-disc-3-rp-endpoints] UserInfo over http at another form of 127.0.0.1',
    { userinfo_endpoint: 'http://[::ffff:7f00:1]/userinfo' },
  ],
] as const
for (const [what, metadata] of unusable)
  t.test(`${what} is not used`, async (t) => {
    const { upstream, server, client } = await startWithUpstream(t)
    upstream.says = { metadata }
    const here = new UserAgent(server.issuer)
    const login = pageOf(await here.open(authorizationUrl(server, client)))
    const page = pageOf(await here.open(buttonOf(login)))
    t.equal((await recordOf(server, page)).rule, /^\[(.*)\]/.exec(what)?.[1])
    t.match(page.html, 'name="password"', 'the user can still sign in here')
  })

t.test('[oidc-core-3.1.2.6-rp-error] an error of the upstream leads back to the sign-in page', async (t) => {
  const { upstream, server, client } = await startWithUpstream(t)
  upstream.says = { response: { code: undefined, error: 'access_denied', error_description: '<b>no</b>' } }
  const here = new UserAgent(server.issuer)
  const page = pageOf(
    await here.open(upstream.respondTo(await goAway(here, authorizationUrl(server, client)))),
  )
  t.match(textOf(page), 'You were not signed in with Work')
  t.notMatch(page.html, '<b>no')
  t.equal((await recordOf(server, page)).rule, 'oidc-core-3.1.2.6-rp-error')
})

t.test(
  '[rfc6749-10.12-client-state] a response counts once, in the browser that began, and before it expires',
  async (t) => {
    const { upstream, server, client } = await startWithUpstream(t, { firstSignIn: 'any' })
    const rejected = async (browser: UserAgent, url: string) => {
      const page = pageOf(await browser.open(url))
      t.equal(page.status, 400)
      t.equal((await recordOf(server, page)).rule, 'rfc6749-10.12-client-state')
      t.equal(upstream.sent.length, sent, 'its code is not sent to the upstream')
    }
    let sent = 0
    const [here, attacker] = [new UserAgent(server.issuer), new UserAgent(server.issuer)]
    const back = upstream.respondTo(await goAway(here, authorizationUrl(server, client)))
    await attacker.open(authorizationUrl(server, client))
    await rejected(attacker, back)
    const other = upstream.respondTo(await goAway(attacker, authorizationUrl(server, client)))
    await rejected(here, other)
    await rejected(here, back.replace(/state=[^&]+/, 'state=x'))
    await rejected(here, back.replace(/state=[^&]+&?/, ''))
    const session = here.cookie('session')
    await here.open(
      upstream.respondTo(
        new URL(upstream.asked[0] ? `${upstream.issuer}/authorize?${upstream.asked[0]}` : ''),
      ),
    )
    t.not(here.cookie('session'), session)
    sent = upstream.sent.length
    t.equal(sent, 1)
    await rejected(here, back)
    const late = new UserAgent(server.issuer)
    const expired = upstream.respondTo(await goAway(late, authorizationUrl(server, client)))
    server.advance(server.deps.config.lifetimes.interactionSeconds + 1)
    await rejected(late, expired)
  },
)

t.test(
  '[rfc9700-4.4.2.2-distinct-redirect] a response is taken at the redirect URI of its upstream alone',
  async (t) => {
    const [honest, mixed] = [await startStandInUpstream(t), await startStandInUpstream(t)]
    const configured = [
      upstreamOf(t, honest.issuer),
      upstreamOf(t, mixed.issuer, { id: 'other', name: 'Other' }),
    ]
    const server = await startServer(t, { mode: 'dev', upstreams: configured })
    const here = new UserAgent(server.issuer)
    const back = honest.respondTo(await goAway(here, `${server.issuer}/account`))
    const page = pageOf(await here.open(back.replace('/work/', '/other/')))
    t.equal((await recordOf(server, page)).rule, 'rfc9700-4.4.2.2-distinct-redirect')
    t.strictSame([honest.sent, mixed.sent], [[], []], 'the code is sent to no one')
  },
)

t.test(
  '[oidc-core-3.1.2.1-rp-request] the request has a state, a nonce and PKCE of its own, and the code its verifier',
  async (t) => {
    const { upstream, server, client } = await startWithUpstream(t, { firstSignIn: 'any' })
    const here = new UserAgent(server.issuer)
    for (const _ of [1, 2])
      await goAway(here, authorizationUrl(server, client)).then((away) => upstream.respondTo(away))
    const [first, second] = upstream.asked
    for (const name of ['state', 'nonce', 'code_challenge']) {
      t.match(first?.get(name), /^[\w.-]{43,}$/)
      t.not(first?.get(name), second?.get(name), name)
    }
    t.strictSame(
      ['response_type', 'client_id', 'scope', 'code_challenge_method'].map((name) => first?.get(name)),
      ['code', 'lychgate', 'openid profile email', 'S256'],
    )
    await here.open(upstream.respondTo(new URL(`${upstream.issuer}/authorize?${second}`)))
    const [{ form, authorization } = { form: new URLSearchParams(), authorization: '' }] = upstream.sent
    t.equal(form.get('redirect_uri'), `${server.issuer}/login/upstream/work/callback`)
    const { hash } = await import('node:crypto')
    t.equal(hash('sha256', form.get('code_verifier') ?? '', 'base64url'), second?.get('code_challenge'))
    t.equal(authorization, `Basic ${Buffer.from('lychgate:a+secret+of+a+test').toString('base64')}`)
  },
)

t.test(
  '[oidc-core-3.1.3.7-rp-auth-time] where a recent sign-in is required, the upstream has to say when it was',
  async (t) => {
    const { upstream, server, client } = await startWithUpstream(t, { firstSignIn: 'any' })
    const url = authorizationUrl(server, client, { max_age: '600' })
    for (const [claims, isAccepted] of [
      [{}, false],
      [{ auth_time: now() - 5000 }, false],
      [{ auth_time: now() - 100 }, true],
    ] as const) {
      const here = new UserAgent(server.issuer)
      const away = await goAway(here, url)
      t.equal(away.searchParams.get('max_age'), '600')
      upstream.says = { claims }
      const page = pageOf(await here.open(upstream.respondTo(away)))
      t.equal(page.html.includes('value="approve"'), isAccepted, JSON.stringify(claims))
      if (!isAccepted) t.equal((await recordOf(server, page)).rule, 'oidc-core-3.1.3.7-rp-auth-time')
    }
    upstream.says = {}
    const again = await goAway(
      new UserAgent(server.issuer),
      authorizationUrl(server, client, { prompt: 'login' }),
    )
    t.strictSame([again.searchParams.get('max_age'), again.searchParams.get('prompt')], ['0', 'login'])
  },
)

t.test('a server of several upstreams does not start with one that is configured twice', async (t) => {
  const { issuer } = await startStandInUpstream(t)
  const twice = [upstreamOf(t, issuer), upstreamOf(t, issuer)]
  await t.rejects(startServer(t, { mode: 'dev', upstreams: twice }), /another upstream has this id/)
})

t.test('an account elsewhere is linked by its user, in the session that began it', async (t) => {
  const { upstream, server } = await startWithUpstream(t)
  const [here, other] = [new UserAgent(server.issuer), new UserAgent(server.issuer)]
  const open = async (agent: UserAgent) =>
    pageOf(await agent.submit(pageOf(await agent.open(`${server.issuer}/account/upstreams`)), bob))
  const page = await open(here)
  const back = upstream.respondTo(locationOf(await here.submit(page, { link: 'work' }, page.forms.at(-1))))
  await open(other)
  const crossed = pageOf(await other.open(back))
  t.equal((await recordOf(server, crossed)).rule, 'rfc6749-10.12-client-state')
  here.deleteCookie('session')
  const ended = pageOf(await here.open(back))
  t.equal((await recordOf(server, ended)).rule, 'lychgate-upstream-link')
  t.match(textOf(ended), 'Work was not linked')
})

t.test('a user name has the upstream in front, and nothing that no name here has', async (t) => {
  for (const [username, email, expected] of [
    ['Ada', undefined, 'work-ada'],
    ['ada.lovelace_1', undefined, 'work-ada.lovelace_1'],
    ['ada@example.com', undefined, 'work-ada'],
    [undefined, 'ada+news@example.com', 'work-ada-news'],
    ['\uff21da\u200b Lovelace', undefined, 'work-ada-lovelace'],
    ['  ..--', undefined, 'work-fresh'],
    ['', 'ada@example.com', 'work-fresh'],
    [undefined, undefined, 'work-fresh'],
    ['a'.repeat(500), undefined, `work-${'a'.repeat(40)}`],
  ] as const) {
    const names = userNames(omitUndefined({ username, email }), { id: 'work' }, 'fresh')
    t.equal(names[0], expected, `${username} ${email}`)
    t.equal(names.at(-1), 'work-fresh')
    t.ok(names.every((name) => canonicalUsername(name) === name))
  }
  t.strictSame(userNames({ username: 'ada' }, { id: 'work' }, 'fresh').slice(0, 3), [
    'work-ada',
    'work-ada-2',
    'work-ada-3',
  ])
})
