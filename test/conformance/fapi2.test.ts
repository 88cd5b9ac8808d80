/** FAPI 2.0 Security Profile (Final) §5.3.2 and §5.4, for clients that an operator chose and for a whole server. */
import { createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import t, { type Test } from 'tap'
import { readKeyFile } from '../../src/domain/key-set.ts'
import { type AssertionAlgorithm, makeClientKey, signJws, withAssertion } from '../helpers/assertions.ts'
import {
  claimsOf,
  type Fields,
  register,
  responseOf,
  signInAndApprove,
  type TestClient,
} from '../helpers/flow.ts'
import {
  addProfiled,
  ask,
  asking,
  assertionOf,
  browserAt,
  changeParty,
  codeOf,
  dpopKey,
  type Party,
  parPath,
  proofFor,
  push,
  redemption,
  refreshing,
  requestOf,
  tokensOf,
  urlOf,
  withKeys,
} from '../helpers/profiled-clients.ts'
import { postProven, thumbprintOf, tokenPath } from '../helpers/proofs.ts'
import { startServer, type TestServer } from '../helpers/server.ts'
import { newUser } from '../helpers/user.ts'
import { UserAgent } from '../helpers/user-agent.ts'
import { addClient, assertRejected, introspect, type Json, json } from '../helpers/wire.ts'

const library = 'https://library.example/api'
const options = {
  lifetimes: { codeSeconds: 300, refreshTokenIdleSeconds: 1000, refreshTokenAbsoluteSeconds: 2500 },
  resources: [
    { identifier: library, name: 'Library', scopes: ['courses:read'], tokenFormat: 'jwt' as const },
  ],
}
const server = await startServer(t, options)
/** Every client of it must conform. */
const strict = await startServer(t, { ...options, profile: 'fapi2' })
const agent = browserAt(server)
const openid = { scope: 'openid' }

const add = (alg: AssertionAlgorithm = 'ES256', members: Json = {}, of = server) =>
  addProfiled(of, alg, members)

const change = (by: Party, what: Parameters<typeof changeParty>[1]) => changeParty(by, what, [library])

const party = await add()

/** Asserts that a request is rejected, and that the log says by which rule. */
async function assertFails(
  t: Test,
  response: Response,
  error: string,
  rule: string,
  about: string,
  of = server,
): Promise<void> {
  await assertRejected(t, response, error, 400, about)
  t.match(
    of.log.findLast((text) => text.includes(`"${error}"`)),
    `"${rule}"`,
    `[${rule}] ${about}`,
  )
}

t.test(
  '[fapi2-5.3.2.1-sender-constrained] [fapi2-5.3.2.1-dpop] [fapi2-5.3.2.2-code-flow] every token is bound to a key',
  async (t) => {
    const tokens = await tokensOf(party)
    t.match(
      tokens,
      { token_type: 'DPoP', refresh_token: /./, id_token: /./, scope: 'openid courses:read' },
      '[fapi2-5.3.2.2-code-flow]',
    )
    const seen = await json(
      await ask(party, { token: String(tokens['access_token']) }, '/api/oauth/introspect'),
    )
    t.match(seen, { active: true, cnf: { jkt: thumbprintOf(dpopKey) } }, '[fapi2-5.3.2.1-dpop]')
    t.match(await json(await ask(party, asking)), { token_type: 'DPoP' }, 'client_credentials')
    const forms = [asking, refreshing(tokens), redemption(party, await codeOf(party))]
    for (const form of forms) {
      const rule = 'fapi2-5.3.2.1-sender-constrained'
      const response = await ask(party, form, tokenPath, [])
      await assertFails(t, response, 'invalid_dpop_proof', rule, String(form['grant_type']))
    }
    t.equal((await ask(party, refreshing(tokens))).status, 200, 'nothing was used up')
    const bearer = await fetch(`${server.issuer}/api/oauth/userinfo`, {
      headers: { authorization: `Bearer ${tokens['access_token']}` },
    })
    t.equal(bearer.status, 401, '[fapi2-5.3.2.1-sender-constrained] without a proof')
  },
)

t.test(
  '[fapi2-5.3.2.1-confidential-clients] [fapi2-5.3.2.1-client-authentication] clients authenticate by a key of their own',
  async (t) => {
    const post = (of: TestServer, client: TestClient, fields: Fields, path = tokenPath) =>
      postProven(of, client, path, fields, ...(path === tokenPath ? [proofFor(of, path)] : []))
    const everybody = await register(strict)
    const confidential = 'fapi2-5.3.2.1-confidential-clients'
    const keyed = 'fapi2-5.3.2.1-client-authentication'
    for (const path of [tokenPath, parPath, '/api/oauth/revoke'])
      await assertFails(
        t,
        await post(strict, everybody, asking, path),
        'invalid_client',
        confidential,
        path,
        strict,
      )
    const secret = await addClient(strict, { authenticationMethod: 'client_secret_post' })
    await assertFails(t, await post(strict, secret, asking), 'invalid_client', keyed, 'a secret', strict)
    await assertFails(t, await post(strict, secret, {}, parPath), 'invalid_client', keyed, 'a push', strict)
    const chosen = await addClient(server, {
      authenticationMethod: 'client_secret_post',
      description: { security_profile: 'fapi2' },
    })
    await assertFails(t, await post(server, chosen, asking), 'invalid_client', keyed, 'a chosen client')
    t.equal((await ask(await add('ES256', { security_profile: '' }, strict), asking)).status, 200, 'a key')
    const api = await addClient(strict, { resources: [library], authenticationMethod: 'client_secret_post' })
    t.strictSame(
      await introspect(strict, api, 'x'),
      { active: false },
      'an API may have a secret: it gets no tokens',
    )
    const introspection = await post(strict, secret, { token: 'x' }, '/api/oauth/introspect')
    t.equal(introspection.status, 401, 'introspection responds with 401')
    t.match(introspection.headers.get('www-authenticate'), /^Basic /)
  },
)

t.test('[fapi2-5.3.2.1-assertion-audience] aud is the issuer as a string', async (t) => {
  const lenient = await add('ES256', { legacy_audience: true })
  const { issuer } = server
  for (const aud of [[issuer], [issuer, 'x'], issuer + tokenPath, issuer + parPath, [issuer + tokenPath]]) {
    const response = await ask(lenient, {
      ...asking,
      ...withAssertion(assertionOf(lenient, { claims: { aud } })),
    })
    await assertFails(t, response, 'invalid_client', 'fapi2-5.3.2.1-assertion-audience', String(aud))
    const strictly = await ask(party, {
      ...asking,
      ...withAssertion(assertionOf(party, { claims: { aud } })),
    })
    await assertRejected(t, strictly, 'invalid_client', 400, `[fapi2-5.3.2.1-assertion-audience] ${aud}`)
  }
  t.equal((await ask(lenient, asking)).status, 200, 'the issuer')
})

t.test(
  '[fapi2-5.4.1-algorithms] [fapi2-5.4.1-none] JWTs of clients and of the server are signed with PS256, ES256 or EdDSA',
  async (t) => {
    const rule = 'fapi2-5.4.1-algorithms'
    for (const alg of ['PS256', 'ES256', 'EdDSA', 'Ed25519'] as const)
      t.equal((await ask(await add(alg), asking)).status, 200, alg)
    const old = await add('RS256')
    await assertFails(t, await ask(old, asking), 'invalid_client', rule, 'RS256')
    const none = withAssertion(assertionOf(party, { header: { alg: 'none' } }))
    await assertRejected(
      t,
      await ask(party, { ...asking, ...none }),
      'invalid_client',
      400,
      '[fapi2-5.4.1-none]',
    )
    const proof = proofFor(server, tokenPath, {}, makeClientKey('RS256'))
    await assertRejected(
      t,
      await ask(party, asking, tokenPath, [proof]),
      'invalid_dpop_proof',
      400,
      `[${rule}]`,
    )
    const both = makeClientKey('RS256', 'old')
    const signing = await add('ES256', {
      jwks: { keys: [party.key.jwk, both.jwk] },
      request_object_signing_alg: 'RS256',
    })
    const mixed = { ...signing, key: party.key }
    const claims = {
      ...requestOf(mixed),
      client_id: mixed.client.id,
      iss: mixed.client.id,
      aud: server.issuer,
    }
    const times = { iat: server.now(), nbf: server.now(), exp: server.now() + 60 }
    const request = signJws(both, { alg: 'RS256', kid: 'old' }, { ...claims, ...times })
    const object = await ask(mixed, { request }, parPath, [])
    await assertFails(t, object, 'invalid_request_object', rule, '[rfc9101-6.2-signature] a request object')

    const tokens = await tokensOf(party)
    const algorithm = (jws: unknown) =>
      JSON.parse(Buffer.from(String(jws).split('.')[0] ?? '', 'base64url').toString())
    t.match(algorithm(tokens['id_token']), { alg: 'ES256' }, 'ID Token')
    const narrow = { resource: library, scope: 'courses:read' }
    for (const fields of [{ ...asking, ...narrow }, refreshing(await tokensOf(party, narrow))]) {
      const { access_token: jwt } = await json(await ask(party, fields))
      t.match(algorithm(jwt), { alg: 'ES256', typ: 'at+jwt' }, `[${rule}] a JWT access token`)
      t.match(claimsOf(String(jwt)), { cnf: { jkt: thumbprintOf(dpopKey) } })
      t.ok(await verifiesByPublished(String(jwt)), 'by a published key')
    }
    const rsa = await add()
    await change(rsa, { idTokenSignedResponseAlg: 'RS256' })
    await assertFails(t, await push(rsa, openid), 'unauthorized_client', rule, 'an ID Token by RS256')
    t.equal((await push(rsa, { scope: 'courses:read' })).status, 201, 'no ID Token')
    const open = await add('ES256', { security_profile: '' })
    await change(open, { idTokenSignedResponseAlg: 'RS256' })
    const older = await tokensOf(open)
    t.match(algorithm(older['id_token']), { alg: 'RS256' }, 'before an operator chose the client')
    await change(open, { description: { security_profile: 'fapi2' } })
    const later = await json(await ask(open, refreshing(older)))
    t.match(later, { access_token: /./ }, 'it refreshes')
    t.notOk('id_token' in later, `[${rule}] no ID Token by RS256 at refresh`)
    const info = await add('ES256', { userinfo_signed_response_alg: 'RS256' })
    await assertFails(t, await push(info), 'unauthorized_client', rule, 'UserInfo by RS256')
  },
)

/** Whether a signature by ES256 is that of a key of this server. */
async function verifiesByPublished(jws: string): Promise<boolean> {
  const { keys } = (await json(await fetch(`${server.issuer}/api/oauth/jwks`))) as { keys: JsonKey[] }
  const { kid } = JSON.parse(Buffer.from(jws.split('.')[0] ?? '', 'base64url').toString())
  const jwk = keys.find((one) => one.kid === kid)
  if (jwk === undefined) return false
  const [header, claims, signature = ''] = jws.split('.')
  const key = { key: createPublicKey({ key: jwk, format: 'jwk' }), dsaEncoding: 'ieee-p1363' } as const
  return verify('sha256', Buffer.from(`${header}.${claims}`), key, Buffer.from(signature, 'base64url'))
}
type JsonKey = Parameters<typeof createPublicKey>[0] & { kid: string; [name: string]: unknown }

t.test(
  '[fapi2-5.3.2.2-require-par] [fapi2-5.3.2.2-support-par] [fapi2-5.3.2.2-par-authenticated] requests are pushed',
  async (t) => {
    const fields = { ...requestOf(party), redirect_uri: party.client.redirectUri }
    const direct = await new UserAgent(server.issuer).send(urlOf(party, fields))
    t.match(
      responseOf(direct),
      { error: 'invalid_request', state: 'a-state', iss: server.issuer },
      '[fapi2-5.3.2.2-require-par]',
    )
    t.match(
      server.log.findLast((line) => line.includes('"invalid_request"')),
      'fapi2-5.3.2.2-require-par',
    )
    const open = await add('ES256', { security_profile: '' })
    const before = await json(await push(open))
    await change(open, { description: { security_profile: 'fapi2' } })
    const late = await agent.send(urlOf(open, { request_uri: String(before['request_uri']) }))
    t.match(responseOf(late), { error: 'invalid_request' }, 'pushed before an operator chose the client')
    const anonymous = await postProven(server, party.client, parPath, requestOf(party))
    await assertRejected(t, anonymous, 'invalid_client', 400, '[fapi2-5.3.2.2-par-authenticated]')
    const response = await push(party)
    t.equal(response.status, 201, '[fapi2-5.3.2.2-support-par]')
    const { expires_in: seconds } = await json(response)
    t.ok(Number(seconds) > 0 && Number(seconds) < 600, '[fapi2-5.3.2.2-request-uri-lifetime]')
  },
)

t.test(
  '[fapi2-5.3.2.2-pkce-s256] [fapi2-5.3.2.2-redirect-uri-required] [fapi2-5.3.2.2-response-type] a push is complete',
  async (t) => {
    const lenient = await add()
    await change(lenient, { pkce: 'optional' })
    const without = { code_challenge: undefined, code_challenge_method: undefined }
    const pkceRule = 'fapi2-5.3.2.2-pkce-s256'
    await assertFails(t, await push(lenient, without), 'invalid_request', pkceRule, 'where PKCE is optional')
    await assertRejected(t, await push(party, without), 'invalid_request', 400, `[${pkceRule}]`)
    const plain = { code_challenge: 'v'.repeat(43), code_challenge_method: 'plain' }
    await assertRejected(t, await push(lenient, plain), 'invalid_request', 400, `[${pkceRule}] plain`)
    const uriRule = 'fapi2-5.3.2.2-redirect-uri-required'
    const nowhere = { redirect_uri: undefined, scope: 'courses:read' }
    await assertFails(t, await push(party, nowhere), 'invalid_request', uriRule, 'none')
    for (const type of ['token', 'id_token', 'code id_token'])
      await assertRejected(
        t,
        await push(party, { response_type: type }),
        'unsupported_response_type',
        400,
        type,
      )
    t.pass('[fapi2-5.3.2.2-response-type] by assertRejected')
  },
)

t.test(
  '[fapi2-5.3.2.2-iss] [fapi2-5.3.2.2-303] [fapi2-5.3.2.2-nonce] [fapi2-5.3.2.2-consent-informed] the browser',
  async (t) => {
    const careful = await add()
    await change(careful, { consent: 'always' })
    const { agent: browser } = newUser(server)
    const nonce = 'n'.repeat(64)
    const { request_uri: uri } = await json(await push(careful, { nonce }))
    const statuses: number[] = []
    const landing = await browser.open(urlOf(careful, { request_uri: String(uri) }))
    const send = browser.send.bind(browser)
    browser.send = async (...args: Parameters<typeof send>) => {
      const response = await send(...args)
      if (response.status >= 300) statuses.push(response.status)
      if (response.status === 200) pages.push(await response.clone().text())
      return response
    }
    const pages: string[] = []
    const location = await signInAndApprove(browser, landing)
    t.strictSame([...new Set(statuses)], [303], '[fapi2-5.3.2.2-303] each redirect is 303')
    t.notOk(statuses.includes(307), '[fapi2-5.3.2.2-not-307]')
    t.ok(statuses.length >= 2, 'after the password and after the consent')
    t.equal(location.searchParams.get('iss'), server.issuer, '[fapi2-5.3.2.2-iss]')
    t.ok(
      pages.some((page) => page.includes('Arranged client') && page.includes('client.example')),
      '[fapi2-5.3.2.2-consent-informed] who asks',
    )
    const tokens = await json(
      await ask(careful, redemption(careful, String(location.searchParams.get('code')))),
    )
    t.equal(claimsOf(String(tokens['id_token']))['nonce'], nonce, '[fapi2-5.3.2.2-nonce] 64 characters')
  },
)

t.test(
  '[fapi2-5.3.2.1-code-lifetime] a code is valid for 60 seconds, whatever the setting says',
  async (t) => {
    const [late, early] = [await codeOf(party), await codeOf(party)]
    server.advance(50)
    t.equal((await ask(party, redemption(party, early))).status, 200)
    server.advance(10)
    await assertRejected(t, await ask(party, redemption(party, late)), 'invalid_grant', 400)
    const open = await add('ES256', { security_profile: '' })
    const code = await codeOf(open)
    server.advance(60)
    t.equal((await ask(open, redemption(open, code))).status, 200, 'another client has that of the setting')
  },
)

t.test('[fapi2-5.3.2.1-dpop-code-binding] a push with a proof binds the code to its key', async (t) => {
  const code = await codeOf(party, {}, [proofFor(server, parPath)])
  const other = [proofFor(server, tokenPath, {}, makeClientKey('ES256'))]
  await assertRejected(t, await ask(party, redemption(party, code), tokenPath, other), 'invalid_grant')
  t.equal((await ask(party, redemption(party, code))).status, 200, 'by its key')
})

t.test('[fapi2-5.3.2.2-code-once] a code is redeemed once, and a second use ends the tokens', async (t) => {
  const code = await codeOf(party)
  const tokens = await json(await ask(party, redemption(party, code)))
  await assertRejected(t, await ask(party, redemption(party, code)), 'invalid_grant')
  await assertRejected(t, await ask(party, refreshing(tokens)), 'invalid_grant')
})

t.test(
  '[fapi2-5.3.2.1-no-rotation] a refresh token stays the same, and works until it is not used',
  async (t) => {
    const tokens = await tokensOf(party)
    for (const seconds of [0, 900, 900]) {
      server.advance(seconds)
      const next = await json(await ask(party, refreshing(tokens)))
      t.equal(next['refresh_token'], tokens['refresh_token'], `after ${seconds} s`)
      t.match(next, { token_type: 'DPoP', access_token: /./ })
    }
    const [one, two] = await Promise.all([ask(party, refreshing(tokens)), ask(party, refreshing(tokens))])
    t.strictSame([one.status, two.status], [200, 200], 'two at once')
    const token = { token: String(tokens['refresh_token']) }
    t.match(await json(await ask(party, token, '/api/oauth/introspect')), { active: true })
    server.advance(600)
    t.equal((await ask(party, refreshing(tokens))).status, 200)
    server.advance(150)
    await assertRejected(
      t,
      await ask(party, refreshing(tokens)),
      'invalid_grant',
      400,
      'past the absolute end',
    )
    const idle = await tokensOf(party)
    server.advance(1000)
    const seen = await ask(party, { token: String(idle['refresh_token']) }, '/api/oauth/introspect')
    t.strictSame(await json(seen), { active: false }, 'not used for too long')
    await assertRejected(t, await ask(party, refreshing(idle)), 'invalid_grant')
  },
)

t.test(
  '[fapi2-5.3.2.1-no-rotation] another client rotates, and an operator may change which it is',
  async (t) => {
    const open = await add('ES256', { security_profile: '' })
    const first = await tokensOf(open)
    const second = await json(await ask(open, refreshing(first)))
    t.not(second['refresh_token'], first['refresh_token'])
    await change(open, { description: { security_profile: 'fapi2' } })
    const third = await json(await ask(open, refreshing(second)))
    t.match(third, { refresh_token: /./ })
    const again = await json(await ask(open, refreshing(second)))
    t.equal(again['refresh_token'], third['refresh_token'], 'from then on it keeps its token')
    await change(open, { description: { security_profile: '' } })
    const fourth = await json(await ask(open, refreshing(third)))
    t.not(fourth['refresh_token'], third['refresh_token'], 'and rotates again')
    server.advance(60)
    await assertRejected(t, await ask(open, refreshing(second)), 'invalid_grant', 400, 'the used one')
    await assertRejected(t, await ask(open, refreshing(fourth)), 'invalid_grant', 400, 'revokes the grant')
  },
)

t.test(
  '[fapi2-5.3.2.1-clock-skew] JWTs are accepted 10 seconds ahead, and rejected 61 seconds ahead',
  async (t) => {
    for (const [ahead, status] of [
      [0, 200],
      [10, 200],
      [61, 400],
    ] as const) {
      for (const name of ['iat', 'nbf']) {
        const claims = { [name]: server.now() + ahead }
        const assertion = withAssertion(assertionOf(party, { claims }))
        t.equal((await ask(party, { ...asking, ...assertion })).status, status, `assertion, ${name} ${ahead}`)
      }
      const proof = proofFor(server, tokenPath, { claims: { iat: server.now() + ahead } })
      t.equal((await ask(party, asking, tokenPath, [proof])).status, status, `proof, iat ${ahead}`)
    }
  },
)

t.test('[fapi2-5.3.2.1-least-privilege] a token may do less than was granted', async (t) => {
  const tokens = await tokensOf(party)
  const narrow = await json(await ask(party, { ...refreshing(tokens), scope: 'courses:read' }))
  t.equal(narrow['scope'], 'courses:read')
})

t.test(
  '[fapi2-5.3.2.1-metadata] [fapi2-5.3.2.1-no-password-grant] [fapi2-5.3.2.1-no-open-redirector] the server as a whole',
  async (t) => {
    const documents = ['oauth-authorization-server', 'openid-configuration']
    for (const name of documents) {
      const metadata = await json(await fetch(`${strict.issuer}/.well-known/${name}`))
      t.match(
        metadata,
        { issuer: strict.issuer, pushed_authorization_request_endpoint: /./ },
        '[fapi2-5.3.2.1-metadata]',
      )
    }
    const narrow = await json(await fetch(`${strict.issuer}/.well-known/openid-configuration`))
    t.equal(narrow['require_pushed_authorization_requests'], true, '[fapi2-5.3.2.1-metadata]')
    t.strictSame(narrow['token_endpoint_auth_methods_supported'], ['private_key_jwt'])
    t.notMatch(JSON.stringify(narrow), 'RS256', '[fapi2-5.4.1-algorithms] no algorithm that is not accepted')
    const wide = await json(await fetch(`${server.issuer}/.well-known/openid-configuration`))
    t.match(JSON.stringify(wide), 'RS256', 'a server for other clients, too')
    const chosen = await add('ES256', { security_profile: '' }, strict)
    const password = { grant_type: 'password', username: 'alice', password: 'alice-in-tests' }
    await assertRejected(t, await ask(chosen, password), 'unsupported_grant_type')
    t.pass('[fapi2-5.3.2.1-no-password-grant]')
    const tokens = await tokensOf(chosen)
    t.match(tokens, { token_type: 'DPoP', id_token: /./ }, 'the whole flow')
    const kept = await json(await ask(chosen, refreshing(tokens)))
    t.equal(kept['refresh_token'], tokens['refresh_token'])
    const direct = await new UserAgent(strict.issuer).send(urlOf(chosen, requestOf(chosen)))
    t.match(responseOf(direct), { error: 'invalid_request' })
    const foreign = { ...requestOf(chosen), redirect_uri: 'https://elsewhere.example/' }
    const page = await new UserAgent(strict.issuer).send(urlOf(chosen, foreign))
    t.equal(page.status, 400, '[fapi2-5.3.2.1-no-open-redirector] a page, and no redirect')
    t.equal(page.headers.get('location'), null)
    const http = addClient(strict, { ...withKeys, redirectUris: ['http://client.example/callback'] })
    await t.rejects(http, { code: 'invalid_redirect_uri' }, '[fapi2-5.3.2.2-no-http-redirects]')
  },
)

t.test('[fapi2-5.3.2.1-dpop-nonce] the server may demand a nonce of a proof', async (t) => {
  const demanding = await startServer(t, { profile: 'fapi2', dpop: { nonce: 'token' } })
  const machine = await add('ES256', {}, demanding)
  const first = await ask(machine, asking)
  const nonce = first.headers.get('dpop-nonce')
  await assertRejected(t, first, 'use_dpop_nonce')
  const proof = proofFor(demanding, tokenPath, { claims: { nonce } })
  t.equal((await ask(machine, asking, tokenPath, [proof])).status, 200)
})

t.test('[fapi2-5.4.3-duplicate-kid] the other members choose between keys of one kid', async (t) => {
  const [ec, rsa] = [makeClientKey('ES256', 'one'), makeClientKey('PS256', 'one')]
  const keys = [ec.jwk, { ...rsa.jwk, alg: 'PS256' }]
  const { client } = await add('ES256', { jwks: { keys } })
  for (const key of [ec, rsa]) t.equal((await ask({ client, key, of: server }, asking)).status, 200, key.alg)
  const twice = [ec.jwk, makeClientKey('ES256', 'one').jwk]
  const unclear = await add('ES256', { jwks: { keys: twice } })
  await assertRejected(
    t,
    await ask({ ...unclear, key: ec }, asking),
    'invalid_client',
    400,
    'two of one algorithm',
  )
  const { kid: _, ...jwk } = ec.jwk
  const named = { ...ec, jwk }
  await assertRejected(
    t,
    await ask({ client, key: named, of: server }, asking),
    'invalid_client',
    400,
    'without kid',
  )
})

t.test(
  '[fapi2-5.4.1-rsa-length] [fapi2-5.4.1-ec-length] [fapi2-5.4.1-entropy] keys and credentials are long enough',
  async (t) => {
    const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey
    const ec = generateKeyPairSync('ec', { namedCurve: 'prime192v1' }).publicKey
    const coordinates = { crv: 'P-192', kty: 'EC', x: 'A'.repeat(32), y: 'A'.repeat(32) }
    for (const jwk of [rsa.export({ format: 'jwk' }), coordinates])
      await t.rejects(addClient(server, { ...withKeys, description: { jwks: { keys: [jwk] } } }), {
        code: 'invalid_client_metadata',
      })
    t.throws(
      () => readKeyFile(String(ec.export({ format: 'pem', type: 'spki' }))),
      '[fapi2-5.4.1-ec-length] as PEM',
    )
    const { keys } = await json(await fetch(`${server.issuer}/api/oauth/jwks`))
    for (const key of keys as Json[])
      if (key['kty'] === 'RSA')
        t.ok(Buffer.from(String(key['n']), 'base64url').length >= 256, '[fapi2-5.4.1-rsa-length]')
    const ids = (keys as Json[]).map(({ kid }) => kid)
    t.equal(new Set(ids).size, ids.length, '[fapi2-5.4.2-unique-kid]')
    const tokens = await tokensOf(party)
    for (const name of ['access_token', 'refresh_token']) {
      const bytes = Buffer.from(String(tokens[name]).replace(/^lyc_\w+?_/, ''), 'base64url')
      t.ok(bytes.length >= 16, `[fapi2-5.4.1-entropy] ${name}`)
    }
  },
)
