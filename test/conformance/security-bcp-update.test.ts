/**
 * Updates to the security practices of OAuth 2.0 (draft-ietf-oauth-security-topics-update-03): what they ask of this
 * server where users sign in with another one, of which it is a client.
 */
import t from 'tap'
import { parseJws } from '../../src/domain/jws.ts'
import { authorizationUrl } from '../helpers/flow.ts'
import { recordOf } from '../helpers/rejection.ts'
import { alice, bob, startServer } from '../helpers/server.ts'
import {
  goAway,
  locationOf,
  pageOf,
  startStandInUpstream,
  startWithUpstream,
  UserAgent,
  upstreamOf,
} from '../helpers/stand-in-upstream.ts'

t.test(
  '[bcpupdate-2.1.2.1-rp-sole-audience] an assertion is for the issuer of the upstream, whatever its metadata call the token endpoint',
  async (t) => {
    const setup = await startWithUpstream(t, {
      clientAuthentication: 'private_key_jwt',
      firstSignIn: 'any',
    })
    const { upstream, server, client } = setup
    // As an attacker would have it who wants an assertion for another server.
    upstream.says = { metadata: { token_endpoint: `${upstream.issuer}/token?https://honest.example` } }
    const here = new UserAgent(server.issuer)
    await here.open(upstream.respondTo(await goAway(here, authorizationUrl(server, client))))
    const [request] = upstream.sent
    const assertion = parseJws(request?.form.get('client_assertion') ?? '')
    t.equal(assertion?.claims['aud'], upstream.issuer)
  },
)

t.test('each connection has a redirect URI, and takes its own responses there alone', async (t) => {
  const [honest, attacker] = [await startStandInUpstream(t), await startStandInUpstream(t)]
  const upstreams = [
    upstreamOf(t, honest.issuer),
    upstreamOf(t, attacker.issuer, { id: 'other', name: 'Other' }),
  ]
  const server = await startServer(t, { mode: 'dev', upstreams })
  const here = new UserAgent(server.issuer)
  const begin = async (id: string) => {
    const { html, url } = pageOf(await here.open(`${server.issuer}/account`))
    const [, href = ''] = new RegExp(`href="([^"]*/login/upstream/${id}[^"]*)"`).exec(html) ?? []
    return locationOf(await here.open(new URL(href.replaceAll('&amp;', '&'), url).href))
  }
  const [own, other] = [await begin('work'), await begin('other')]
  const uris = [own, other].map((away) => away.searchParams.get('redirect_uri'))
  t.strictSame(
    uris,
    ['work', 'other'].map((id) => `${server.issuer}/login/upstream/${id}/callback`),
    '[bcpupdate-2.2.2-rp-distinct-redirect]',
  )
  // The code of the honest one, as the browser would bring it to the callback of the other, with the state of that.
  const state = other.searchParams.get('state') ?? ''
  const code = new URL(honest.respondTo(own)).searchParams.get('code') ?? ''
  for (const [at, values] of [
    ['work', { code, state }],
    ['other', { code, state: own.searchParams.get('state') ?? '' }],
  ] as const) {
    const response = await here.send(
      `${server.issuer}/login/upstream/${at}/callback?${new URLSearchParams(values)}`,
    )
    t.equal(response.status, 400, `[bcpupdate-2.2.2-rp-mismatch-aborts] at ${at}`)
    t.strictSame([honest.sent, attacker.sent], [[], []], 'the code is sent to neither')
  }
})

t.test(
  '[bcpupdate-2.3.2-rp-same-user] a connection is made for the user who began it, in the browser that did',
  async (t) => {
    const { upstream, server } = await startWithUpstream(t)
    const account = async (agent: UserAgent, { username, password }: typeof bob) => {
      const login = pageOf(await agent.open(`${server.issuer}/account/upstreams`))
      return pageOf(await agent.submit(login, { username, password }))
    }
    const [attacker, victim] = [new UserAgent(server.issuer), new UserAgent(server.issuer)]
    const page = await account(attacker, bob)
    await account(victim, alice)
    const back = upstream.respondTo(
      locationOf(await attacker.submit(page, { link: 'work' }, page.forms.at(-1))),
    )
    const elsewhere = pageOf(await victim.open(back))
    t.equal((await recordOf(server, elsewhere)).rule, 'rfc6749-10.12-client-state')
    attacker.deleteCookie('session')
    await account(attacker, alice)
    const changed = pageOf(await attacker.open(back))
    t.equal((await recordOf(server, changed)).rule, 'lychgate-upstream-link')
    t.equal(upstream.sent.length, 0, 'the code is not used')
  },
)
