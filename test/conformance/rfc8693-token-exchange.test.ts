/** RFC 8693: an API exchanges a token that it received for one of its own, and what that one is worth. */
import t from 'tap'
import { update } from '../../src/domain/decision.ts'
import { makeClientKey } from '../helpers/assertions.ts'
import type { OperatorClientRequest } from '../helpers/client-request.ts'
import { callApi, claimsOf, type Fields, obtainCode, post, postAs, type TestClient } from '../helpers/flow.ts'
import { postProven, signProof, thumbprintOf, tokenPath } from '../helpers/proofs.ts'
import { addClient, assertRejected, introspect, type Json, json, startFlow } from '../helpers/wire.ts'

const grantType = 'urn:ietf:params:oauth:grant-type:token-exchange'
const accessToken = 'urn:ietf:params:oauth:token-type:access_token'
const [orders, stock, ledger] = ['https://orders.example', 'https://stock.example', 'https://ledger.example']
const scopes = ['courses:read', 'courses:write', 'pages:read']
const {
  server,
  client: app,
  agent,
  tokens,
} = await startFlow(t, {
  resources: [
    { identifier: orders, name: 'Orders', scopes, tokenFormat: 'opaque' },
    {
      identifier: stock,
      name: 'Stock',
      scopes: ['courses:read', 'courses:write'],
      tokenFormat: 'opaque',
      accessTokenSeconds: 300,
    },
    { identifier: ledger, name: 'Ledger', scopes, tokenFormat: 'jwt' },
  ],
})
const addApi = (resource: string, request: Partial<OperatorClientRequest> = {}) =>
  addClient(server, { name: `API ${resource}`, resources: [resource], grantTypes: [grantType], ...request })
const ordersApi = await addApi(orders)
const stockApi = await addApi(stock)
const ledgerApi = await addApi(ledger)
const inactive = { active: false }

/** A token of the app for both APIs, as the first one received it. */
const received = async (fields: Fields = {}) => {
  const issued = await tokens({
    scope: 'openid courses:read courses:write',
    resource: [orders, stock],
    ...fields,
  })
  return { ...issued, token: issued.access_token }
}
const ask = (subject: string | undefined, fields: Fields = {}, client: TestClient = ordersApi) =>
  postAs(server, client, '/api/oauth/token', {
    grant_type: grantType,
    subject_token: subject,
    subject_token_type: accessToken,
    ...fields,
  })
async function exchanged(
  subject: string,
  fields: Fields = {},
  client: TestClient = ordersApi,
): Promise<Json & { readonly token: string }> {
  const response = await ask(subject, fields, client)
  const body = await json(response)
  if (response.status !== 200) throw new Error(`${response.status} ${JSON.stringify(body)}`)
  return { ...body, token: String(body['access_token']) }
}

t.test(
  '[rfc8693-2.1-request] [rfc8693-2.2.1-response] an API exchanges a token that it received for one for another API',
  async (t) => {
    const { token } = await received()
    const response = await ask(token, { resource: stock, requested_token_type: accessToken })
    t.equal(response.status, 200, '[rfc8693-2.1-request]')
    t.equal(response.headers.get('cache-control'), 'no-store', '[rfc8693-2.2.1-response]')
    const { access_token: issued, ...rest } = await json(response)
    t.strictSame(
      rest,
      {
        issued_token_type: accessToken,
        token_type: 'Bearer',
        expires_in: 300,
        scope: 'courses:read courses:write',
      },
      '[rfc8693-2.2.1-response] without a refresh token or an ID Token',
    )
    const user = await server.deps.store.find('userByLogin', 'alice')
    const described = await introspect(server, stockApi, String(issued))
    t.match(described, {
      active: true,
      sub: user?.id,
      client_id: ordersApi.id,
      aud: stock,
      scope: 'courses:read courses:write',
      act: { sub: ordersApi.id },
    })
    const before = await introspect(server, ordersApi, token)
    t.equal(described['acr'], before['acr'], 'the user signed in at the app')
    t.equal(described['auth_time'], before['auth_time'])
    t.notOk('act' in before, 'nobody acts for the user in the first token')
  },
)

t.test(
  '[rfc8693-2.1-grant-type] the metadata offers the grant type, and only an operator gives it to a client',
  async (t) => {
    const metadata = await json(await fetch(`${server.issuer}/.well-known/oauth-authorization-server`))
    t.ok([metadata['grant_types_supported']].flat().includes(grantType), '[rfc8693-2.1-grant-type]')
    const registered = await post(server, '/api/oauth/register', {})
    t.not(registered.status, 201)
    const { token } = await received()
    const other = await addClient(server, { resources: [orders] })
    await assertRejected(t, await ask(token, {}, other), 'unauthorized_client')
    await assertRejected(t, await ask(token, {}, app), 'unauthorized_client', 400, '[rfc8693-2.1-grant-type]')
  },
)

t.test(
  '[rfc8693-2.1-client-authentication] the client authenticates, and a public one exchanges nothing',
  async (t) => {
    const { token } = await received()
    const wrong = await ask(token, {}, { ...ordersApi, secret: 'wrong' })
    await assertRejected(t, wrong, 'invalid_client', 401, '[rfc8693-2.1-client-authentication]')
    await t.rejects(
      addClient(server, { authenticationMethod: 'none', grantTypes: ['authorization_code', grantType] }),
      {
        code: 'invalid_client_metadata',
      },
    )
    const exchanger = await addClient(server, { grantTypes: ['authorization_code', grantType] })
    const found = await server.deps.store.find('client', exchanger.id)
    if (found !== undefined)
      await server.deps.store.write(update('client', { ...found, authenticationMethod: 'none' }))
    const public_ = { id: exchanger.id, method: 'none', redirectUri: exchanger.redirectUri }
    await assertRejected(
      t,
      await ask(token, {}, public_),
      'unauthorized_client',
      400,
      '[rfc8693-2.1-client-authentication]',
    )
  },
)

for (const [id, what, fields] of [
  ['rfc8693-2.1-subject-token', 'no subject_token', { subject_token: undefined }],
  ['rfc8693-2.1-subject-token-type', 'no subject_token_type', { subject_token_type: undefined }],
  [
    'rfc8693-2.1-subject-token-type',
    'an ID Token',
    { subject_token_type: 'urn:ietf:params:oauth:token-type:id_token' },
  ],
  ['rfc8693-2.1-actor-token-type', 'an actor', { actor_token: 'x', actor_token_type: accessToken }],
  ['rfc8693-2.1-actor-token-type', 'an actor_token_type alone', { actor_token_type: accessToken }],
  [
    'rfc8693-2.1-requested-token-type',
    'an ID-JAG',
    { requested_token_type: 'urn:ietf:params:oauth:token-type:id-jag' },
  ],
  [
    'rfc8693-2.1-requested-token-type',
    'a refresh token',
    { requested_token_type: 'urn:ietf:params:oauth:token-type:refresh_token' },
  ],
  ['rfc8693-2.2.2-invalid-subject', 'a foreign token', { subject_token: 'eyJhbGciOiJub25lIn0.e30.' }],
] as const)
  t.test(`[${id}] a request with ${what} is invalid_request`, async (t) => {
    const { token } = await received()
    await assertRejected(t, await ask(token, fields), 'invalid_request', 400, `[${id}] ${what}`)
  })

t.test(
  '[rfc8693-2.2.2-invalid-subject] [rfc8693-2.1-validate-subject] only access tokens that the client was issued or received are exchanged',
  async (t) => {
    const { token, refresh_token: refreshToken, id_token: idToken } = await received({ resource: orders })
    const id = '[rfc8693-2.2.2-invalid-subject]'
    await assertRejected(
      t,
      await ask(token, {}, stockApi),
      'invalid_request',
      400,
      `${id} [rfc8693-2.1-validate-subject] for another API`,
    )
    await assertRejected(t, await ask(refreshToken), 'invalid_request', 400, `${id} a refresh token`)
    await assertRejected(t, await ask(idToken), 'invalid_request', 400, `${id} an ID Token`)
    await postAs(server, app, '/api/oauth/revoke', { token })
    await assertRejected(t, await ask(token), 'invalid_request', 400, `${id} a revoked one`)
    const machine = await addClient(server, { grantTypes: ['client_credentials'], scope: ['courses:read'] })
    const own = await postAs(server, machine, '/api/oauth/token', {
      grant_type: 'client_credentials',
      resource: orders,
    })
    const { access_token: machineToken } = await json(own)
    await assertRejected(t, await ask(String(machineToken)), 'invalid_request', 400, 'one without a user')
    const exchanger = await addClient(server, {
      grantTypes: ['authorization_code', 'refresh_token', grantType],
    })
    const { refresh_token: refresh } = await tokens({ scope: 'courses:read', resource: orders }, exchanger)
    await assertRejected(
      t,
      await ask(refresh, {}, exchanger),
      'invalid_request',
      400,
      `${id} its own refresh token`,
    )
    const late = await received()
    server.advance(server.deps.config.lifetimes.accessTokenSeconds)
    await assertRejected(t, await ask(late.token), 'invalid_request', 400, `${id} an expired one`)
  },
)

t.test('[rfc8693-2.1-scope-within] scope, targets and lifetime stay within the subject token', async (t) => {
  const { token } = await received()
  const narrow = await exchanged(token, { scope: 'courses:read', resource: stock })
  t.match(narrow, { scope: 'courses:read' }, '[rfc8693-2.1-scope-within]')
  t.match(await introspect(server, stockApi, narrow.token), { scope: 'courses:read', aud: stock })
  for (const scope of ['courses:read pages:read', 'pages:read', 'nonsense'])
    await assertRejected(
      t,
      await ask(token, { scope }),
      'invalid_scope',
      400,
      `[rfc8693-2.1-scope-within] ${scope}`,
    )
  const wide = await exchanged(token)
  t.match(
    await introspect(server, stockApi, wide.token),
    { aud: [orders, stock] },
    'no target: those of the token',
  )
  server.advance(250)
  t.equal((await exchanged(token))['expires_in'], 50, 'no longer than the subject token')
  server.advance(50)
  t.strictSame(await introspect(server, stockApi, wide.token), inactive)
})

t.test(
  '[rfc8693-2.1-audience] [rfc8693-2.2.2-invalid-target] audience names targets as resource does, and both may repeat',
  async (t) => {
    const { token } = await received()
    const audOf = async (fields: Fields) =>
      (await introspect(server, ordersApi, (await exchanged(token, fields)).token))['aud']
    t.equal(await audOf({ audience: stock }), stock, '[rfc8693-2.1-audience]')
    t.strictSame(await audOf({ audience: [orders, stock] }), [orders, stock], '[rfc8693-2.1-audience]')
    t.strictSame(
      await audOf({ audience: orders, resource: `${stock}/` }),
      [stock, orders],
      '[rfc8693-2.1-audience]',
    )
    for (const target of [ledger, server.issuer, 'https://elsewhere.example', 'stock'])
      for (const name of ['audience', 'resource'])
        await assertRejected(
          t,
          await ask(token, { [name]: target }),
          'invalid_target',
          400,
          `[rfc8693-2.2.2-invalid-target] ${name} ${target}`,
        )
    const narrowed = await received({ resource: orders })
    const grown = await ask(narrowed.token, { resource: stock })
    await assertRejected(
      t,
      grown,
      'invalid_target',
      400,
      '[rfc8693-2.2.2-invalid-target] a token for one API',
    )
  },
)

t.test(
  '[rfc8693-4.1-act] [rfc8693-4.1-act-chain] [rfc8693-4.2-scope] [rfc8693-4.3-client-id] a JWT names who acts, and those who acted before',
  async (t) => {
    const { token } = await received({ resource: ledger, scope: 'courses:read' })
    const first = await exchanged(token, { scope: 'courses:read' }, ledgerApi)
    t.match(
      claimsOf(first.token),
      { act: { sub: ledgerApi.id }, client_id: ledgerApi.id, aud: ledger },
      '[rfc8693-4.1-act]',
    )
    t.equal(claimsOf(first.token)['scope'], 'courses:read', '[rfc8693-4.2-scope]')
    t.equal(claimsOf(first.token)['client_id'], ledgerApi.id, '[rfc8693-4.3-client-id]')
    t.equal(
      claimsOf(first.token)['sub'],
      claimsOf(token)['sub'],
      '[rfc8693-4.1-act] the user stays the subject',
    )
    const second = await exchanged(
      (await exchanged((await received()).token)).token,
      { resource: stock },
      stockApi,
    )
    const chain = { sub: stockApi.id, act: { sub: ordersApi.id } }
    t.strictSame((await introspect(server, stockApi, second.token))['act'], chain, '[rfc8693-4.1-act-chain]')
    let token_ = first.token
    for (let actors = 2; actors <= 8; actors += 1) token_ = (await exchanged(token_, {}, ledgerApi)).token
    await assertRejected(t, await ask(token_, {}, ledgerApi), 'invalid_request', 400, 'a chain is bounded')
  },
)

t.test('what ends the subject token ends what was exchanged for it, also along a chain', async (t) => {
  const chain = async () => {
    const subject = await received()
    const first = await exchanged(subject.token)
    return { subject, first, second: await exchanged(first.token, { resource: stock }, stockApi) }
  }
  const isActive = async (token: string) => (await introspect(server, stockApi, token))['active']
  const grantOf = (token: string) => server.deps.keys.open(token, 'access')
  const one = await chain()
  t.equal(await isActive(one.second.token), true)
  await postAs(server, app, '/api/oauth/revoke', { token: one.subject.refresh_token })
  t.strictSame(
    [await isActive(one.first.token), await isActive(one.second.token)],
    [false, false],
    'its grant',
  )
  const two = await chain()
  await postAs(server, app, '/api/oauth/revoke', { token: two.subject.token })
  t.strictSame(
    [await isActive(two.first.token), await isActive(two.second.token)],
    [false, false],
    'the token alone',
  )
  const three = await chain()
  await postAs(server, ordersApi, '/api/oauth/revoke', { token: three.first.token })
  t.equal(await isActive(three.second.token), false, 'one in the middle')
  t.equal(await isActive(three.subject.token), true, 'and nothing before it')
  const four = await chain()
  const { store } = server.deps
  const user = await store.find('userByLogin', 'alice')
  if (user === undefined) throw new Error('alice is missing')
  await store.write(update('user', { ...user, lockedAt: server.now() }))
  t.equal(await isActive(four.second.token), false, 'a locked user')
  await store.write(update('user', user))
  t.equal(await isActive(four.second.token), true)
  const found = await store.find('client', ordersApi.id)
  if (found === undefined) throw new Error('the API is missing')
  await store.write(update('client', { ...found, grantTypes: [] }))
  t.equal(await isActive(four.second.token), false, 'a client that may exchange no longer')
  await store.write(update('client', found))
  const handle = await grantOf(four.subject.token)
  await store.transact('grant', handle?.grantId ?? '', () => ({
    result: undefined,
    writes: [{ op: 'revokeGrant', grantId: handle?.grantId ?? '', at: server.now(), rule: 'x' }],
  }))
  await assertRejected(t, await ask(four.first.token), 'invalid_request', 400, 'nothing more is exchanged')
})

t.test('of an exchange and a revocation at the same time nothing is left', async (t) => {
  for (let turn = 0; turn < 10; turn += 1) {
    const { token, refresh_token: refreshToken } = await received()
    const [response] = await Promise.all([
      ask(token, { resource: stock }),
      postAs(server, app, '/api/oauth/revoke', { token: refreshToken }),
    ])
    const { access_token: issued } = await json(response)
    if (response.status === 200) t.strictSame(await introspect(server, stockApi, String(issued)), inactive)
    else t.equal(response.status, 400)
  }
})

t.test(
  '[rfc8693-4.4-may-act] a token whose claims name the client that may exchange it is exchanged by no other',
  async (t) => {
    const owner = await addClient(server, {
      redirectUris: ['https://client.example/callback'],
      description: { exchanged_by: ordersApi.id },
    })
    const issued = await tokens({ scope: 'courses:read', resource: [orders, stock] }, owner)
    const mayAct = { sub: ordersApi.id }
    t.strictSame(
      (await introspect(server, stockApi, issued.access_token))['may_act'],
      mayAct,
      '[rfc8693-4.4-may-act]',
    )
    t.equal((await ask(issued.access_token)).status, 200, '[rfc8693-4.4-may-act] the client that it names')
    await assertRejected(
      t,
      await ask(issued.access_token, {}, stockApi),
      'invalid_request',
      400,
      '[rfc8693-4.4-may-act]',
    )
    const signed = await tokens({ scope: 'courses:read', resource: ledger }, owner)
    t.strictSame(claimsOf(signed.access_token)['may_act'], mayAct)
    const found = await server.deps.store.find('client', owner.id)
    if (found === undefined) throw new Error('the client is missing')
    const { extra: _, ...freed } = found
    await server.deps.store.write(update('client', freed))
    const still = await ask(signed.access_token, {}, ledgerApi)
    await assertRejected(t, still, 'invalid_request', 400, 'a JWT that says it')
  },
)

t.test(
  'an app may exchange its own token, and the account page says through which app an API has one',
  async (t) => {
    const own = await addClient(server, {
      name: 'Planner',
      redirectUris: ['https://client.example/callback'],
      grantTypes: ['authorization_code', 'refresh_token', grantType],
    })
    const issued = await tokens({ scope: 'courses:read', resource: [orders, stock] }, own)
    const narrow = await exchanged(issued.access_token, { resource: stock }, own)
    t.match(await introspect(server, stockApi, narrow.token), {
      active: true,
      client_id: own.id,
      act: { sub: own.id },
    })
    t.equal((await callApi(server, '/api/courses', narrow.token)).status, 401, 'it is for the other API')
  },
)

t.test(
  'a bound token is exchanged with a proof only, for one that is bound to the key of the proof',
  async (t) => {
    const [key, other] = [makeClientKey(), makeClientKey()]
    const proof = (of = key) => signProof(of, { url: server.issuer + tokenPath, now: server.now() })
    const api = await addApi(orders, { authenticationMethod: 'client_secret_post' })
    const owner = await addClient(server, { authenticationMethod: 'client_secret_post' })
    const code = await obtainCode(server, owner, {
      agent,
      fields: { scope: 'courses:read', resource: [orders, stock] },
    })
    const redeem = {
      grant_type: 'authorization_code',
      code,
      code_verifier: 'v'.repeat(43),
      redirect_uri: owner.redirectUri,
    }
    const { access_token: bound } = await json(await postProven(server, owner, tokenPath, redeem, proof()))
    const fields = { grant_type: grantType, subject_token: String(bound), subject_token_type: accessToken }
    await assertRejected(t, await postProven(server, api, tokenPath, fields), 'invalid_request')
    const response = await postProven(server, api, tokenPath, { ...fields, resource: stock }, proof(other))
    const { access_token: issued, token_type: type } = await json(response)
    t.equal(type, 'DPoP')
    t.match(await introspect(server, stockApi, String(issued)), { cnf: { jkt: thumbprintOf(other) } })
  },
)
