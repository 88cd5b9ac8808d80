import { mock } from 'node:test'
import t from 'tap'
import { remove, removeUser, update } from '../../src/domain/decision.ts'
import { hashSecret } from '../../src/domain/secret.ts'
import {
  exchange,
  type Fields,
  obtainCode,
  obtainTokens,
  post,
  refresh,
  register,
  type TestClient,
} from '../helpers/flow.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { addClient, assertRejected, challengeOf, isAlive, json, startFlow } from '../helpers/wire.ts'

const { server, agent } = await startFlow(t)
const byPost = await register(server, { token_endpoint_auth_method: 'client_secret_post' })
const byBasic = await register(server, { token_endpoint_auth_method: 'client_secret_basic' })
const open = await register(server)
const code = (of: TestClient) => obtainCode(server, of, { agent })
const path = '/api/oauth/token'

/** An exchange with credentials of the test's choosing. */
function redeem(of: TestClient, redeemable: string, fields: Fields, authorization?: string) {
  const all = {
    grant_type: 'authorization_code',
    code: redeemable,
    redirect_uri: of.redirectUri,
    code_verifier: 'v'.repeat(43),
    ...fields,
  }
  return post(server, path, all, authorization === undefined ? {} : { authorization })
}

function basic(...parts: readonly (string | undefined)[]): string {
  return `Basic ${Buffer.from(parts.join(':')).toString('base64')}`
}

t.test(
  '[rfc6749-4.1.3-authenticate-when-included] [rfc6749-2.2-client-id-not-credential] [rfc6749-3.2.1-confidential-must-authenticate] [rfc6749-5.2-invalid-client-400-or-401] a secret in the form is required and checked, and a failure leaves the code valid',
  async (t) => {
    const redeemable = await code(byPost)
    const { id: client_id, secret: client_secret } = byPost
    for (const wrong of [undefined, '', 'wrong', `${client_secret}x`, byBasic.secret]) {
      const response = await redeem(byPost, redeemable, { client_id, client_secret: wrong })
      t.equal(response.headers.get('www-authenticate'), null, 'no challenge where no header was tried')
      const clause =
        wrong === undefined
          ? '[rfc6749-2.2-client-id-not-credential]'
          : '[rfc6749-4.1.3-authenticate-when-included]'
      await assertRejected(t, response, 'invalid_client', 400, `${clause} ${wrong?.slice(0, 5)}`)
    }
    const accepted = await json(await redeem(byPost, redeemable, { client_id, client_secret }))
    t.type(accepted['access_token'], 'string', '[service-4-token-secret-form-field] the code is left')

    const refresh_token = String(accepted['refresh_token'])
    const refreshing = { grant_type: 'refresh_token', refresh_token, client_id }
    const anonymous = await post(server, path, refreshing)
    await assertRejected(
      t,
      anonymous,
      'invalid_client',
      400,
      '[rfc6749-3.2.1-confidential-must-authenticate]',
    )
    const { status } = await post(server, path, { ...refreshing, client_secret })
    t.equal(status, 200, '[oauth21-2.4.1-secret-post-mandatory]')
  },
)

t.test(
  '[rfc6749-5.2-invalid-client-400-or-401] an unknown client gets the same error as a wrong secret',
  async (t) => {
    const unknown = { client_id: 'client_nobody' }
    const fields = { client_id: byPost.id, client_secret: 'wrong' }
    const responses = [
      await redeem(byPost, 'x', { ...unknown, client_secret: 'wrong' }),
      await redeem(byPost, 'x', unknown),
      await redeem(byPost, 'x', fields),
    ]
    const bodies = await Promise.all(responses.map(json))
    t.strictSame(bodies[0], bodies[1])
    t.strictSame(bodies[1], bodies[2])
    t.strictSame([...new Set(responses.map(({ status }) => status))], [400])
  },
)

t.test(
  '[rfc6749-2.3.1-basic-supported] [rfc6749-5.2-invalid-client-header-401] HTTP Basic works for a client with that method, and its failure is 401 with a Basic challenge',
  async (t) => {
    const redeemable = await code(byBasic)
    const wrong = [
      basic(byBasic.id, 'wrong'),
      basic(byBasic.id, ''),
      basic('client_nobody', byBasic.secret),
      basic(byPost.id, byPost.secret),
      basic(byBasic.id),
      basic('', byBasic.secret),
      basic(byBasic.id, `${byBasic.secret}%`),
      'Basic',
      'Basic !!!',
      `Basic ${byBasic.id}:${byBasic.secret}`,
      `Bearer ${byBasic.secret}`,
      'Digest x',
    ]
    for (const authorization of wrong) {
      const response = await redeem(byBasic, redeemable, {}, authorization)
      t.equal(challengeOf(response).scheme, 'Basic')
      const about = `[rfc6749-5.2-invalid-client-header-401] ${authorization}`
      await assertRejected(t, response, 'invalid_client', 401, about)
    }
    const fine = `bAsIc ${basic(byBasic.id, byBasic.secret).slice(6)}`
    const accepted = await redeem(byBasic, redeemable, { client_id: byBasic.id }, fine)
    t.equal(accepted.status, 200, '[rfc6749-2.3.1-basic-supported]')
    t.equal(accepted.headers.get('www-authenticate'), null)
  },
)

t.test(
  '[rfc6749-2.3.1-basic-form-decoding] [rfc6749-B-form-encoding] both halves of Basic, and a secret in the form, are form-decoded',
  async (t) => {
    const secret = 'a:b%c+d e&f=g é£€ %41'
    // A secret that this server would not generate, but that clients of another server have.
    for (const known of [
      await addClient(server),
      await addClient(server, { authenticationMethod: 'client_secret_post' }),
    ]) {
      const stored = await server.deps.store.find('client', known.id)
      if (stored === undefined) throw new Error('the client is stored')
      await server.deps.store.write(update('client', { ...stored, secretHash: hashSecret(secret) }))
      const redeemable = await code(known)
      const encoded = new URLSearchParams({ '': secret }).toString().slice(1)
      if (known.method === 'client_secret_basic') {
        await assertRejected(
          t,
          await redeem(known, redeemable, {}, basic(known.id, secret)),
          'invalid_client',
          401,
        )
        const percent = await redeem(
          known,
          redeemable,
          {},
          basic(encodeURIComponent(known.id), encodeURIComponent('wrong')),
        )
        t.equal(percent.status, 401)
        t.match(encoded, /\+.*%2B|%2B.*\+/, 'spaces travel as + and + as %2B')
        t.equal((await redeem(known, redeemable, {}, basic(known.id, encoded))).status, 200)
      } else {
        t.equal((await redeem(known, redeemable, { client_id: known.id, client_secret: secret })).status, 200)
      }
    }
  },
)

t.test(
  '[rfc6749-2.3.1-basic-form-decoding] Basic is split at the first colon, even if the secret contains one that is not encoded',
  async (t) => {
    const known = await addClient(server)
    const stored = await server.deps.store.find('client', known.id)
    if (stored === undefined) throw new Error('the client is stored')
    const secretHash = hashSecret('one:two:three')
    await server.deps.store.write(update('client', { ...stored, secretHash }))
    const redeemable = await code(known)
    for (const wrong of ['one', 'three', 'one:two', 'two:three']) {
      const response = await redeem(known, redeemable, {}, basic(known.id, wrong))
      await assertRejected(t, response, 'invalid_client', 401, wrong)
    }
    t.equal((await redeem(known, redeemable, {}, basic(known.id, 'one', 'two', 'three'))).status, 200)
  },
)

t.test(
  '[rfc6749-2.3-one-auth-method] two methods at once are rejected, and the code stays valid',
  async (t) => {
    const redeemable = await code(byBasic)
    const authorization = basic(byBasic.id, byBasic.secret)
    const both = { client_id: byBasic.id, client_secret: byBasic.secret }
    await assertRejected(t, await redeem(byBasic, redeemable, both, authorization), 'invalid_request')
    await assertRejected(
      t,
      await redeem(byBasic, redeemable, { client_id: open.id }, authorization),
      'invalid_request',
    )
    t.equal((await redeem(byBasic, redeemable, {}, authorization)).status, 200)
  },
)

t.test('[rfc6749-2.3.1-secret-not-in-uri] credentials in the query are not read', async (t) => {
  const redeemable = await code(byPost)
  const { id: client_id, secret: client_secret = '' } = byPost
  const query = new URLSearchParams({ client_id, client_secret })
  const fields = new URLSearchParams({
    grant_type: 'authorization_code',
    code: redeemable,
    redirect_uri: byPost.redirectUri,
    code_verifier: 'v'.repeat(43),
  })
  const url = `${server.issuer}${path}?${query}`
  await assertRejected(t, await fetch(url, { method: 'POST', body: fields }), 'invalid_request')
  fields.set('client_id', client_id)
  await assertRejected(t, await fetch(url, { method: 'POST', body: fields }), 'invalid_client')
  t.equal((await redeem(byPost, redeemable, { client_id, client_secret })).status, 200)
})

t.test(
  '[oidc-core-9-registered-method-enforced] [rfc6749-2.3-public-auth-not-trusted] only the registered method is accepted',
  async (t) => {
    const [postCode, basicCode, openCode] = [await code(byPost), await code(byBasic), await code(open)]
    const inForm = { client_id: byBasic.id, client_secret: byBasic.secret }
    await assertRejected(
      t,
      await redeem(byPost, postCode, {}, basic(byPost.id, byPost.secret)),
      'invalid_client',
      401,
    )
    const otherMethod = await redeem(byBasic, basicCode, inForm)
    await assertRejected(
      t,
      otherMethod,
      'invalid_client',
      400,
      '[oidc-core-9-registered-method-enforced] the right secret',
    )
    const invented = { client_id: open.id, client_secret: 'anything' }
    const trusting = await redeem(open, openCode, invented)
    await assertRejected(t, trusting, 'invalid_client', 400, '[rfc6749-2.3-public-auth-not-trusted]')
    await assertRejected(t, await redeem(open, openCode, {}, basic(open.id, '')), 'invalid_client', 401)
    t.equal((await exchange(server, byPost, postCode)).status, 200)
    t.equal((await exchange(server, byBasic, basicCode)).status, 200)
    t.equal((await exchange(server, open, openCode)).status, 200)
  },
)

t.test(
  '[oidc-core-9-registered-method-enforced] a client added without a method sends its secret either way; a registered method is enforced',
  async (t) => {
    const either = await addClient(server, { authenticationMethod: undefined })
    const { id: client_id, secret: client_secret } = either
    const header = { authorization: basic(client_id, client_secret) }
    const redeemed = await json(await redeem(either, await code(either), {}, header.authorization))
    t.type(redeemed['refresh_token'], 'string')
    const refreshing = { grant_type: 'refresh_token', refresh_token: String(redeemed['refresh_token']) }
    for (const wrong of [{ client_id }, { client_id, client_secret: 'wrong' }])
      await assertRejected(t, await post(server, path, { ...refreshing, ...wrong }), 'invalid_client')
    const renewed = await json(await post(server, path, { ...refreshing, client_id, client_secret }))
    const token = String(renewed['access_token'])
    t.equal((await post(server, '/api/oauth/introspect', { token, client_id, client_secret })).status, 200)
    t.equal((await post(server, '/api/oauth/introspect', { token }, header)).status, 200)
    t.equal((await post(server, '/api/oauth/revoke', { token }, header)).status, 200)

    const fixed = await addClient(server, { authenticationMethod: 'client_secret_post' })
    const stays = await code(fixed)
    const byHeader = await redeem(fixed, stays, {}, basic(fixed.id, fixed.secret))
    await assertRejected(t, byHeader, 'invalid_client', 401)
    t.equal((await exchange(server, fixed, stays)).status, 200)
  },
)

t.test(
  '[rfc8252-8.5-shared-secret-not-proof] a native client that an operator adds as public has no secret, needs PKCE and needs consent every time',
  async (t) => {
    const native = await addClient(server, {
      authenticationMethod: 'none',
      redirectUris: ['http://127.0.0.1/callback'],
      consent: undefined,
    })
    t.notOk('secret' in native)
    await obtainTokens(server, native, { agent })
    const silent = await agent.open(
      `${server.issuer}/oauth/authorize?${new URLSearchParams({
        response_type: 'code',
        client_id: native.id,
        redirect_uri: native.redirectUri,
        scope: 'openid',
      })}`,
    )
    if (silent.at !== 'redirect') throw new Error('a redirect was expected')
    t.equal(silent.location.searchParams.get('error'), 'invalid_request', 'PKCE is needed')
    t.match(silent.location.searchParams.get('error_description'), 'code_challenge')
    const again = await agent.open(
      `${server.issuer}/oauth/authorize?${new URLSearchParams({
        response_type: 'code',
        client_id: native.id,
        redirect_uri: native.redirectUri,
        scope: 'openid',
        code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM',
        code_challenge_method: 'S256',
      })}`,
    )
    if (again.at !== 'page') throw new Error('a page was expected')
    t.equal(new URL(again.page.url).pathname, '/consent', 'the user is asked again')
  },
)

t.test('deleting a client or a user ends all of their tokens at once', async (t) => {
  const gone = await register(server)
  const { access_token: access, refresh_token: token } = await obtainTokens(server, gone, { agent })
  t.ok(await isAlive(server, access))
  await server.deps.store.write(remove('client', gone.id))
  t.notOk(await isAlive(server, access))
  await assertRejected(t, await refresh(server, gone, token), 'invalid_client')

  const bob = { username: 'bob', password: 'bob-in-tests' }
  const theirs = { agent: new UserAgent(server.issuer), user: bob }
  const tokens = await obtainTokens(server, open, theirs)
  const user = await server.deps.store.find('userByLogin', 'bob')
  await server.deps.store.write(removeUser(user?.id ?? '', 0))
  t.notOk(await isAlive(server, tokens.access_token))
  await assertRejected(t, await refresh(server, open, tokens.refresh_token), 'invalid_grant')
})

t.test(
  '[rfc6749-2.3.1-brute-force] [rfc7009-5-abuse-countermeasures] guessing secrets and tokens is rate-limited, and the right ones work later',
  async (t) => {
    const few = { registration: 30, token: 5, signIn: 60 }
    const limited = await startFlow(t, { rateLimits: 'on', requestsPerMinute: few })
    const guessed = await register(limited.server, { token_endpoint_auth_method: 'client_secret_post' })
    const tokens = await obtainTokens(limited.server, guessed, { agent: limited.agent })
    mock.timers.enable({ apis: ['Date'], now: Date.now() })
    t.teardown(() => mock.timers.reset())
    for (const endpoint of [path, '/api/oauth/revoke', '/api/oauth/introspect']) {
      // In the next minute, so that the requests of the flow above do not count.
      mock.timers.tick(61_000)
      const guess = () =>
        post(limited.server, endpoint, { client_id: guessed.id, client_secret: 'guess', token: 'x' })
      const statuses = new Set<number>()
      for (let guesses = 0; guesses < few.token; guesses += 1) statuses.add((await guess()).status)
      t.strictSame(
        [...statuses],
        [endpoint.endsWith('introspect') ? 401 : 400],
        `${endpoint} rejects guesses`,
      )
      const slowed = await guess()
      const wait = Number(slowed.headers.get('retry-after'))
      t.ok(wait > 0 && wait <= 60, `${endpoint}: Retry-After`)
      const clause = endpoint === path ? '[rfc6749-2.3.1-brute-force]' : '[rfc7009-5-abuse-countermeasures]'
      await assertRejected(t, slowed, 'temporarily_unavailable', 429, `${clause} ${endpoint}`)
    }
    mock.timers.tick(61_000)
    t.equal((await refresh(limited.server, guessed, tokens.refresh_token)).status, 200)
  },
)
