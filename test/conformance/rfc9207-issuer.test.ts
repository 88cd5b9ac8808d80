import t from 'tap'
import { ask, assertErrorPage, integrate, pageOf, sentAway, signedIn } from '../helpers/authorization.ts'
import { authorize, type Fields, register, responseOf } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { json } from '../helpers/wire.ts'

const server = await startServer(t)
const below = await startServer(t, { issuerPath: '/tenant' })
const https = await startServer(t, { issuer: 'https://id.example/t' })

const parties = []
for (const each of [server, below, https]) {
  // The listener of an https issuer is behind a proxy, at the path of the issuer.
  const reached = each === https ? { ...each, issuer: `${each.origin}/t` } : each
  const client = await register(reached)
  parties.push({ reached, client, user: await signedIn(reached, client), issuer: each.deps.config.issuer })
}

for (const { reached, client, user, issuer } of parties) {
  const { protocol, pathname } = new URL(issuer)
  t.test(
    `[rfc9207-2-iss-on-success] [rfc9207-2-iss-value] a code has iss, exactly the issuer of the metadata: ${protocol}//…${pathname}`,
    async (t) => {
      const page = pageOf(await ask(reached, client, {}, user))
      const response = sentAway(await user.submit(page, { decision: 'approve' }))
      t.match(response, { code: /./ })
      t.equal(response['iss'], issuer, '[rfc9207-2-iss-on-success]')
      t.equal(new URL(issuer).search + new URL(issuer).hash, '')
      t.notMatch(issuer, /[?#]/, '[rfc9207-2-iss-value] no query, no fragment')
      const metadata = await fetch(
        `${reached.origin}/.well-known/oauth-authorization-server${pathname.replace(/\/$/, '')}`,
        { headers: { 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' } },
      )
      const { issuer: published, authorization_response_iss_parameter_supported: flag } = await json(metadata)
      t.equal(published, response['iss'])
      t.equal(flag, true)
    },
  )

  t.test(
    `[rfc9207-2-iss-on-error] [rfc9207-2-iss-value] every error redirect has iss: ${protocol}//…${pathname}`,
    async (t) => {
      const rows: readonly (readonly [Fields, string])[] = [
        [{ scope: 'nonsense' }, 'invalid_scope'],
        [{ code_challenge: undefined }, 'invalid_request'],
        [{ response_type: 'token' }, 'unsupported_response_type'],
        [{ resource: 'https://other.example' }, 'invalid_target'],
        [{ prompt: 'none' }, 'login_required'],
        [{ request: 'x' }, 'invalid_request_object'],
      ]
      const assertTold = (response: Record<string, string>, error: string) => {
        const { error_description: _description, ...rest } = response
        t.strictSame(rest, { error, state: 'a-state', iss: issuer }, `[rfc9207-2-iss-on-error] ${error}`)
      }
      for (const [fields, error] of rows) {
        const response = await authorize(reached, client, fields)
        assertTold(responseOf(response), error)
        t.match(response.headers.get('location'), `iss=${encodeURIComponent(issuer)}`, 'form-encoded')
      }
      assertTold(responseOf(await authorize(reached, client, { prompt: 'none' }, user)), 'consent_required')
      const page = pageOf(await ask(reached, client, {}, user))
      assertTold(sentAway(await user.submit(page, { decision: 'deny' })), 'access_denied')
    },
  )
}

t.test('the issuer of a response does not follow the headers of a request', async (t) => {
  const client = await integrate(server)
  const forged = {
    host: 'evil.example',
    'x-forwarded-host': 'evil.example',
    'x-forwarded-proto': 'https',
    forwarded: 'host=evil.example',
  }
  const response = await server.app.inject({
    url: `/oauth/authorize?${new URLSearchParams({ client_id: client.id, redirect_uri: client.redirectUri })}`,
    headers: forged,
  })
  const location = new URL(String(response.headers.location))
  t.equal(location.searchParams.get('iss'), server.issuer)
  t.equal(location.searchParams.getAll('iss').length, 1)
})

t.test('an error page has no iss', async (t) => {
  const client = await register(server)
  const html = await assertErrorPage(
    t,
    await authorize(server, client, { client_id: 'nobody' }),
    'invalid_client',
  )
  t.notMatch(html, 'iss=')
})
