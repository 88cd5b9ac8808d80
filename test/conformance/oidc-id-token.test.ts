import { createHash } from 'node:crypto'
import { createRemoteJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import t from 'tap'
import { insert, removeUser } from '../../src/domain/decision.ts'
import { createUser } from '../../src/users/rules/user.ts'
import {
  authorizationUrl,
  claimsOf,
  exchange,
  obtainCode,
  obtainTokens,
  refresh,
  register,
  responseOf,
  signInAndApprove,
  type Tokens,
} from '../helpers/flow.ts'
import { alice, bob } from '../helpers/server.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { addClient, challengeOf, json, startFlow } from '../helpers/wire.ts'

const { server, client, agent, tokens } = await startFlow(t)
const keys = createRemoteJWKSet(new URL(`${server.issuer}/api/oauth/jwks`))
const profile = ['name', 'given_name', 'email', 'email_verified', 'preferred_username', 'picture']

t.test(
  '[oidc-core-3.1.3.3-id-token-returned] the token response has an ID Token when openid is granted',
  async (t) => {
    const code = await obtainCode(server, client, { agent })
    const response = await exchange(server, client, code)
    t.equal(response.headers.get('cache-control'), 'no-store')
    const { id_token: idToken, token_type: type } = (await response.json()) as Tokens
    t.equal(type.toLowerCase(), 'bearer')
    t.equal(idToken.split('.').length, 3)
  },
)

t.test(
  '[oidc-core-2-iss] [oidc-core-2-aud] [oidc-core-2-exp-iat] an ID Token names its issuer, its client and its times',
  async (t) => {
    const claims = decodeJwt((await tokens()).id_token)
    const metadata = await json(await fetch(`${server.issuer}/.well-known/openid-configuration`))
    t.equal(claims.iss, metadata['issuer'], '[oidc-core-2-iss]')
    t.equal(claims.aud, client.id, '[oidc-core-2-aud]')
    const { iat = 0, exp = 0 } = claims
    t.ok(Number.isInteger(iat) && Math.abs(server.now() - iat) <= 5, '[oidc-core-2-exp-iat] iat')
    t.equal(exp, iat + server.deps.config.lifetimes.idTokenSeconds, '[oidc-core-2-exp-iat] exp')
  },
)

t.test(
  '[oidc-core-5.4-claims-at-userinfo] an ID Token contains no claim of the profile scopes',
  async (t) => {
    const claims = decodeJwt((await tokens({ scope: 'openid profile email' })).id_token)
    t.strictSame(Object.keys(claims).sort(), [
      'acr',
      'amr',
      'at_hash',
      'aud',
      'exp',
      'iat',
      'iss',
      'sid',
      'sub',
    ])
    for (const name of profile) t.notOk(name in claims, name)
  },
)

t.test(
  '[oidc-core-2-acr-amr] [oidc-core-2-azp] an ID Token of a password sign-in has its amr, and no azp',
  async (t) => {
    const claims = decodeJwt((await tokens()).id_token)
    t.equal(claims['acr'], 'urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport')
    t.strictSame(claims['amr'], ['pwd'], '[oidc-core-2-acr-amr]')
    t.notOk('azp' in claims, '[oidc-core-2-azp]')
  },
)

t.test(
  '[oidc-core-2-signed] [oidc-core-10.1-published-key] [oidc-core-3.1.3.6-at-hash] [oidc-reg-2-id-token-alg] every supported algorithm is used, verifies with the published keys and hashes the access token',
  async (t) => {
    const half = (name: string, text: string) => {
      const digest = createHash(name).update(text).digest()
      return digest.subarray(0, digest.length / 2).toString('base64url')
    }
    const table: [string | undefined, string, string][] = [
      [undefined, 'RS256', 'sha256'],
      ['RS256', 'RS256', 'sha256'],
      ['ES256', 'ES256', 'sha256'],
      ['EdDSA', 'EdDSA', 'sha512'],
    ]
    const jwks = (await json(await fetch(`${server.issuer}/api/oauth/jwks`))) as {
      keys: Record<string, string>[]
    }
    for (const [chosen, alg, hash] of table) {
      const own = await register(server, chosen ? { id_token_signed_response_alg: chosen } : {})
      const { id_token: idToken, access_token: accessToken } = await tokens({}, own)
      const header = decodeProtectedHeader(idToken)
      t.strictSame(Object.keys(header).sort(), ['alg', 'kid', 'typ'], '[oidc-core-2-no-key-headers]')
      t.equal(header.alg, alg, chosen ? '[oidc-reg-2-id-token-alg]' : '[oidc-core-15.1-rs256] the default')
      const published = jwks.keys.filter(({ kid }) => kid === header.kid)
      t.match(published, [{ alg, use: 'sig' }], '[oidc-core-10.1-published-key]')
      t.equal(published.length, 1, '[oidc-core-10.1-published-key] once')
      const { payload } = await jwtVerify(idToken, keys, { issuer: server.issuer, audience: own.id })
      t.equal(payload.aud, own.id, '[oidc-core-2-signed] the signature verifies')
      t.equal(payload['at_hash'], half(hash, accessToken), `[oidc-core-3.1.3.6-at-hash] ${alg}`)
    }
    const metadata = await json(await fetch(`${server.issuer}/.well-known/openid-configuration`))
    t.strictSame(metadata['id_token_signing_alg_values_supported'], ['RS256', 'ES256', 'EdDSA'])
  },
)

t.test(
  '[oidc-core-10.1-no-symmetric-public] [oidc-reg-2-id-token-alg] no client gets HS256, none or an unknown algorithm',
  async (t) => {
    for (const alg of ['HS256', 'none', 'XYZ', 'PS256']) {
      for (const method of ['none', 'client_secret_basic']) {
        const response = await fetch(`${server.issuer}/api/oauth/register`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({
            redirect_uris: [client.redirectUri],
            token_endpoint_auth_method: method,
            id_token_signed_response_alg: alg,
          }),
        })
        t.equal(response.status, 400, alg)
        const body = await json(response)
        t.equal(body['error'], 'invalid_client_metadata', `[oidc-core-10.1-no-symmetric-public] ${alg}`)
        t.notOk('client_id' in body, '[oidc-reg-2-id-token-alg] nothing is registered')
      }
    }
  },
)

t.test(
  '[service-5-scope-openid] [oidc-core-3.1.3.2-code-from-oidc] without openid there is no ID Token',
  async (t) => {
    const plain = await tokens({ scope: 'courses:read' })
    t.notOk('id_token' in plain, '[oidc-core-3.1.3.2-code-from-oidc]')
    const refreshed = await json(await refresh(server, client, plain.refresh_token))
    t.notOk('id_token' in refreshed)
    const withOpenid = await tokens({ scope: 'courses:read openid' })
    t.ok('id_token' in withOpenid, '[service-5-scope-openid] openid is what asks for it')
  },
)

t.test('[oidc-core-2-nonce] nonce is returned unmodified, and never invented', async (t) => {
  for (const nonce of ['a b%+é', '"\\<script>', 'n'.repeat(512)]) {
    t.equal(claimsOf((await tokens({ nonce })).id_token)['nonce'], nonce)
  }
  t.notOk('nonce' in claimsOf((await tokens()).id_token))
})

t.test(
  '[oidc-core-2-auth-time-when-required] [oidc-reg-2-require-auth-time] an ID Token has auth_time when the request or the client asks for it',
  async (t) => {
    const own = new UserAgent(server.issuer)
    const before = server.now()
    await obtainTokens(server, client, { agent: own })
    const after = server.now()
    server.advance(100)
    const demanding = await register(server, { require_auth_time: true })
    const essential = JSON.stringify({ id_token: { auth_time: { essential: true } } })
    const owed = [
      await obtainTokens(server, client, { agent: own, fields: { max_age: '1000' } }),
      await obtainTokens(server, client, { agent: own, fields: { claims: essential } }),
      await obtainTokens(server, demanding, { agent: own }),
    ]
    for (const { id_token: idToken } of owed) {
      const { auth_time: authTime, iat } = claimsOf(idToken)
      t.ok(Number.isInteger(authTime) && Number(authTime) <= Number(iat))
      t.ok(
        Number(authTime) >= before && Number(authTime) <= after,
        '[oidc-core-2-auth-time-when-required] the time of the sign-in, not of the consent',
      )
    }
    const [, , ofDemanding] = owed
    t.ok('auth_time' in claimsOf(ofDemanding?.id_token ?? ''), '[oidc-reg-2-require-auth-time]')
    t.notOk('auth_time' in claimsOf((await obtainTokens(server, client, { agent: own })).id_token))
  },
)

t.test(
  '[oidc-core-12.2-refresh-id-token] [oidc-core-12.2-refresh-nonce] a refresh gives an ID Token of the same sign-in without a nonce',
  async (t) => {
    const fields = { nonce: 'n-1', max_age: '100000' }
    const first = await tokens(fields)
    server.advance(3000)
    // A later sign-in of the same user in the same browser does not belong to this grant.
    const again = claimsOf((await tokens({ ...fields, prompt: 'login' })).id_token)
    t.ok(Number(again['auth_time']) >= Number(claimsOf(first.id_token)['auth_time']) + 3000)
    const second = (await (await refresh(server, client, first.refresh_token)).json()) as Tokens
    const [one, two] = [claimsOf(first.id_token), claimsOf(second.id_token)]
    for (const name of ['iss', 'sub', 'aud', 'auth_time', 'amr']) {
      t.ok(name in one, name)
      t.strictSame(two[name], one[name], `[oidc-core-12.2-refresh-id-token] ${name}`)
    }
    t.ok(Number(two['iat']) >= Number(one['iat']) + 3000)
    t.notOk('nonce' in two, '[oidc-core-12.2-refresh-nonce]')
    const digest = createHash('sha256').update(second.access_token).digest().subarray(0, 16)
    t.equal(two['at_hash'], digest.toString('base64url'))
    const { payload } = await jwtVerify(second.id_token, keys, { currentDate: new Date(server.now() * 1000) })
    t.equal(payload.sub, one['sub'])
  },
)

t.test(
  '[oidc-core-2-null-claims-omitted] [oidc-core-5.5.1-essential-no-error] a claim the user does not have is omitted from the ID Token, essential or not',
  async (t) => {
    const essential = { essential: true }
    const asked = {
      name: essential,
      nickname: essential,
      website: null,
      phone_number: essential,
      address: null,
    }
    const fields = { claims: JSON.stringify({ id_token: asked }) }
    const issued = claimsOf((await obtainTokens(server, client, { user: bob, fields })).id_token)
    t.equal(issued['name'], 'Bob')
    for (const name of ['nickname', 'website', 'phone_number', 'address']) t.notOk(name in issued, name)
    t.notOk(Object.values(issued).some((value) => value === null || value === ''))
  },
)

t.test(
  '[oidc-core-2-sub] [oidc-core-8-subject-types] a sub belongs to one user, at every client, and is never reused',
  async (t) => {
    const one = claimsOf((await tokens()).id_token)['sub']
    t.type(one, 'string')
    t.match(one, /^[\x21-\x7e]{1,255}$/)
    const elsewhere = await addClient(server)
    const atElsewhere = claimsOf((await tokens({}, elsewhere)).id_token)['sub']
    t.equal(atElsewhere, one, '[oidc-core-8-subject-types] another client sees the same')
    const metadata = await json(await fetch(`${server.issuer}/.well-known/openid-configuration`))
    t.strictSame(metadata['subject_types_supported'], ['public'])
    const theirs = await obtainTokens(server, client, { user: bob })
    const two = claimsOf(theirs.id_token)['sub']
    t.not(two, one)
    const { store, clock } = server.deps
    const user = await store.find('userByLogin', 'bob')
    if (user === undefined) throw new Error('bob is there')
    await store.write(removeUser(user.id, 0))
    const again = createUser(
      { username: 'bob', passwordHash: user.passwordHash ?? '' },
      server.deps.random(16),
      clock(),
    )
    await store.write(insert('user', again))
    const reborn = await obtainTokens(server, client, { user: bob })
    t.not(claimsOf(reborn.id_token)['sub'], two, '[oidc-core-2-sub] a deleted sub is not used again')
  },
)

t.test(
  '[oidc-core-3.1.2.2-specific-sub] a request for one user never issues tokens of another',
  async (t) => {
    const aliceSub = claimsOf((await tokens()).id_token)['sub']
    const theirs = new UserAgent(server.issuer)
    await obtainTokens(server, client, { agent: theirs, user: bob })
    const claims = JSON.stringify({ id_token: { sub: { value: aliceSub } } })
    const silent = await theirs.send(authorizationUrl(server, client, { claims, prompt: 'none' }))
    t.match(responseOf(silent), { error: 'login_required' })
    t.notOk('code' in responseOf(silent))
    const landing = await theirs.open(authorizationUrl(server, client, { claims }))
    const end = await signInAndApprove(theirs, landing, { user: bob })
    t.equal(end.searchParams.get('error'), 'login_required')
    t.equal(end.searchParams.get('code'), null)
    const right = await theirs.open(authorizationUrl(server, client, { claims }))
    const code = (await signInAndApprove(theirs, right, { user: alice })).searchParams.get('code')
    const body = (await (await exchange(server, client, String(code))).json()) as Tokens
    t.equal(claimsOf(body.id_token)['sub'], aliceSub)
  },
)

t.test(
  '[oidc-core-5.5-claims-merge] the claims parameter adds only what it names to the ID Token',
  async (t) => {
    const claims = JSON.stringify({
      id_token: { name: null, email: { essential: true }, unknown: null, iss: { value: 'x' } },
      userinfo: { nickname: null },
    })
    const issued = claimsOf((await tokens({ claims })).id_token)
    t.match(issued, { name: 'Alice Ångström', email: 'alice@example.test', iss: server.issuer })
    for (const name of ['nickname', 'unknown', 'given_name']) t.notOk(name in issued, name)
  },
)

t.test('an ID Token is rejected as access token', async (t) => {
  const { id_token: idToken } = await tokens()
  const headers = { authorization: `Bearer ${idToken}` }
  const response = await fetch(`${server.issuer}/api/oauth/userinfo`, { headers })
  t.equal(response.status, 401)
  t.equal(challengeOf(response).params['error'], 'invalid_token')
})
