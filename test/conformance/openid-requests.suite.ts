/** The modules of the OpenID Foundation's basic plan about the parameters of a request. */
import t from 'tap'
import { assertErrorPage } from '../helpers/authorization.ts'
import { type Fields, pkce } from '../helpers/flow.ts'
import type { Suite } from '../helpers/openid-suite.ts'
import { UserAgent } from '../helpers/user-agent.ts'

export function requestModules({ server, metadata, client, ...suite }: Suite): void {
  const accepted: readonly (readonly [string, Fields])[] = [
    ['[oidc-core-3.1.2.1-display-accepted] oidcc-display-page', { display: 'page' }],
    ['[oidc-core-3.1.2.1-display-accepted] oidcc-display-popup', { display: 'popup' }],
    [
      '[rfc6749-3.1-ignore-unknown] oidcc-ensure-request-with-unknown-parameter-succeeds',
      { extra: 'foobar' },
    ],
    ['[oidc-core-3.1.2.1-ui-locales] oidcc-ui-locales', { ui_locales: 'se' }],
    ['[oidc-core-5.2-claims-locales] oidcc-claims-locales', { claims_locales: 'se' }],
  ]
  for (const [module, fields] of accepted) {
    t.test(`${module}: the parameter changes nothing`, async (t) => {
      const { pages, claims } = await suite.signIn(t, fields)
      t.notOk(pages.some((path) => !['/login', '/consent'].includes(path)))
      t.strictSame(Object.keys(claims), Object.keys((await suite.signIn(t)).claims))
    })
  }

  t.test('[oidc-core-3.1.2.1-login-hint] oidcc-login-hint: the hint is accepted and filled in', async (t) => {
    const query = suite.requestOf({ login_hint: 'bob@example.com' }, client)
    const agent = new UserAgent(server.issuer)
    const landing = await agent.open(suite.urlOf(query))
    if (landing.at === 'redirect') throw new Error(`sent away to ${landing.location}`)
    const typed = landing.page.forms[0]?.fields.find(({ name }) => name === 'username')
    t.equal(typed?.value, 'bob@example.com')
    await suite.checkedSignIn(t, query, await suite.finish(t, agent, landing))
  })

  t.test(
    '[oidc-core-3.1.2.1-acr-values] [oidc-core-2-acr-amr] oidcc-ensure-request-with-acr-values-succeeds: acr is the requested class that the sign-in satisfies',
    async (t) => {
      const offered = metadata['acr_values_supported'] as string[]
      t.ok(offered.length > 0)
      const { claims } = await suite.signIn(t, { acr_values: offered.join(' ') })
      t.ok(offered.includes(String(claims['acr'])))
      t.strictSame(claims['amr'], ['pwd'])
      const other = await suite.signIn(t, { acr_values: '1 2' })
      t.equal(
        other.claims['acr'],
        claims['acr'],
        'a class that cannot be satisfied is ignored, and acr does not claim it',
      )
    },
  )

  t.test(
    '[oidc-core-5.5-claims-unsupported-ok] [oidc-core-5.5-claims-merge] oidcc-claims-essential: an essential claim is returned by UserInfo, and not in the ID Token',
    async (t) => {
      const claims = JSON.stringify({ userinfo: { name: { essential: true } } })
      const login = await suite.signIn(t, { claims })
      t.match(await suite.userInfo(t, login), { name: 'Alice Ångström' })
      t.notOk('name' in login.claims)
    },
  )

  t.test(
    '[rfc6749-3.1.2.3-simple-string-match] oidcc-ensure-registered-redirect-uri: an unregistered redirect URI shows an error page',
    async (t) => {
      const query = suite.requestOf({ redirect_uri: `${client.redirectUri}/other` }, client)
      const response = await new UserAgent(server.issuer).send(suite.urlOf(query))
      t.notMatch(await assertErrorPage(t, response, 'invalid_request'), 'suite.example')
    },
  )

  t.test(
    '[oidc-core-3.1.2.1-get-and-post] oidcc-ensure-post-request-succeeds: the request is accepted as a form too',
    async (t) => {
      const query = suite.requestOf({}, client)
      const agent = new UserAgent(server.issuer)
      const endpoint = String(metadata['authorization_endpoint'])
      const landing = await agent.open(endpoint, { method: 'POST', body: query })
      await suite.checkedSignIn(t, query, await suite.finish(t, agent, landing))
      // This one comes with the session cookie, so it is not redirected first.
      const silent = suite.requestOf({}, client)
      const response = await suite.finish(
        t,
        agent,
        await agent.open(endpoint, { method: 'POST', body: silent }),
      )
      t.strictSame(response.pages, [])
      await suite.checkedSignIn(t, silent, response)
    },
  )

  t.test(
    '[rfc9101-10.5-require-signed] oidcc-unsigned-request-object-supported-correctly-or-rejected-as-unsupported: skipped, as none is not listed; a request object is never ignored',
    async (t) => {
      const inside = {
        ...Object.fromEntries(suite.requestOf({}, client)),
        iss: client.id,
        aud: server.issuer,
      }
      // The suite has response_mode only inside the request object, so the error uses the default mode.
      const outside = { state: undefined, response_mode: undefined }
      const { members, pages } = await suite.authorize(t, { request: unsigned(inside), ...outside })
      const { error_description: description, ...rest } = members
      t.strictSame(rest, { error: 'invalid_request_object', iss: server.issuer })
      t.match(description, 'not signed')
      t.strictSame(pages, [])
      // The suite skips the module by this list.
      t.notMatch(metadata['request_object_signing_alg_values_supported'], /none/)
    },
  )

  t.test(
    '[rfc9101-10.5-require-signed] oidcc-ensure-request-object-with-redirect-uri: skipped, too; an unsigned request object supplies no redirect URI',
    async (t) => {
      const inside = {
        ...Object.fromEntries(suite.requestOf({}, client)),
        iss: client.id,
        aud: server.issuer,
      }
      const query = suite.requestOf(
        { redirect_uri: `${client.redirectUri}/other`, request: unsigned(inside) },
        client,
      )
      const response = await new UserAgent(server.issuer).send(suite.urlOf(query))
      await assertErrorPage(t, response, 'invalid_request_object')
    },
  )

  t.test(
    '[rfc7636-4.6-verify-s256] oidcc-ensure-request-with-valid-pkce-succeeds: a client with optional PKCE may use it, and then it is verified',
    async (t) => {
      const { verifier, challenge } = pkce()
      const query = suite.requestOf({ code_challenge: challenge, code_challenge_method: 'S256' }, client)
      const agent = new UserAgent(server.issuer)
      const response = await suite.finish(t, agent, await agent.open(suite.urlOf(query)))
      const wrong = await suite.redeem(response.members['code'], { code_verifier: 'w'.repeat(43) })
      t.match(await wrong.json(), { error: 'invalid_grant' })
      await suite.checkedSignIn(t, query, response, client, { code_verifier: verifier })
    },
  )
}

/** A request object of `alg` none. */
function unsigned(claims: Readonly<Record<string, string>>): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${encode({ alg: 'none' })}.${encode(claims)}.`
}
