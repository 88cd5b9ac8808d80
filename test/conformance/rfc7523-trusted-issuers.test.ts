/** Tokens of another issuer in place of a key, RFC 7521 §3 and RFC 7523 §3: workloads in GitHub Actions and Kubernetes. */
import { createHmac } from 'node:crypto'
import t, { type Test } from 'tap'
import { remove } from '../../src/domain/decision.ts'
import { declared } from '../../src/features.ts'
import { RecordExists } from '../../src/storage/store.ts'
import { type AssertionChange, makeClientKey, signAssertion, withAssertion } from '../helpers/assertions.ts'
import { changeOperatorClient } from '../helpers/client-request.ts'
import { type Fields, post } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { startStandInIssuer } from '../helpers/stand-in-issuer.ts'
import { addClient, assertRejected, json } from '../helpers/wire.ts'

const server = await startServer(t, { mode: 'dev', nodes: 1 })
const platform = await startStandInIssuer(t)
const tokenPath = '/api/oauth/token'
const branch = 'repo:example/courses:ref:refs/heads/main'
const account = 'system:serviceaccount:courses:import'

/** A client that trusts these subjects of the stand-in issuer. */
function add(
  trusted: readonly Readonly<Record<string, unknown>>[],
  members: Readonly<Record<string, unknown>> = {},
) {
  const entries = trusted.map((entry) => ({ issuer: platform.issuer, ...entry }))
  return addClient(server, {
    authenticationMethod: 'private_key_jwt',
    grantTypes: ['client_credentials'],
    redirectUris: [],
    scope: ['courses:read'],
    description: { ...(entries.length > 0 && { trusted_issuers: entries }), ...members },
  })
}

const client = await add([{ subject: branch }])
const cluster = await add([{ subject: account, reusable: true }])

function tokenOf(change: AssertionChange = {}, sub = branch, by = platform.key): string {
  return platform.sign({ sub, aud: server.issuer, now: server.now() }, change, by)
}

function ask(token = tokenOf(), fields: Fields = {}, path = tokenPath): Promise<Response> {
  const asking = path === tokenPath ? { grant_type: 'client_credentials' } : {}
  return post(server, path, { ...asking, ...withAssertion(token), ...fields })
}

/** Asserts that a token is rejected, and that the log says by which rule and with which words. */
async function assertFails(t: Test, response: Response, rule: string, about: string, words = '') {
  await assertRejected(t, response, 'invalid_client', 400, about)
  const line = server.log.findLast((text) => text.includes('invalid_client')) ?? ''
  t.match(line, `"${rule}"`, `${about}: ${rule}`)
  t.ok(line.includes(words), `${about}: ${words} in ${line}`)
}

t.test('a trusted subject is the client, named by the request or found by the token', async (t) => {
  for (const fields of [{}, { client_id: client.id }]) {
    const response = await ask(tokenOf(), fields)
    t.equal(response.status, 200, JSON.stringify(fields))
    const token = String((await json(response))['access_token'])
    const introspected = await ask(tokenOf(), { token }, '/api/oauth/introspect')
    t.match(await json(introspected), { active: true, client_id: client.id, sub: client.id })
    t.equal((await ask(tokenOf(), { token }, '/api/oauth/revoke')).status, 200)
  }
  t.strictSame(
    platform.state.requests,
    ['/.well-known/openid-configuration', '/keys'],
    'metadata and keys are fetched once',
  )
})

t.test(
  '[rfc7523-3-iss-sub] [rfc7523-3-client-id-agrees] only this issuer and this subject count, compared exactly',
  async (t) => {
    const rule = 'rfc7523-3-iss-sub'
    for (const sub of [
      `${branch}s`,
      branch.slice(0, -1),
      branch.toUpperCase(),
      `${branch} `,
      'repo:example/courses:pull_request',
      '',
      '*',
    ]) {
      await assertFails(t, await ask(tokenOf({}, sub)), rule, `[${rule}] ${sub}`, 'an unknown subject')
      const named = await ask(tokenOf({}, sub), { client_id: client.id })
      await assertFails(t, named, rule, `[${rule}] ${sub} and client_id`, `${platform.issuer} ${branch}`)
    }
    for (const iss of [
      `${platform.issuer}/`,
      platform.issuer.replace('http:', 'https:'),
      'https://token.actions.githubusercontent.com',
    ]) {
      await assertFails(t, await ask(tokenOf({ claims: { iss } })), rule, `[${rule}] ${iss}`)
      const named = await ask(tokenOf({ claims: { iss } }), { client_id: client.id })
      await assertFails(t, named, rule, `[${rule}] ${iss} and client_id`)
    }
    await assertFails(t, await ask(tokenOf({ claims: { sub: [branch] } })), rule, 'sub is a list')
    await assertFails(t, await ask(tokenOf({ claims: { sub: undefined } })), rule, 'no sub')
    const other = await ask(tokenOf(), { client_id: cluster.id })
    await assertFails(t, other, rule, '[rfc7523-3-client-id-agrees] client_id of another client')
    t.equal(platform.state.requests.length, 2, 'nothing is fetched for an issuer that is not trusted')
  },
)

t.test('[rfc7523-3-aud] the audience is this server alone, or what the operator named', async (t) => {
  const rule = 'rfc7523-3-aud'
  const { issuer } = server
  t.equal((await ask(tokenOf({ claims: { aud: [issuer] } }))).status, 200, 'a list of one')
  for (const aud of [
    'https://github.com/example',
    `${issuer}/`,
    issuer + tokenPath,
    [issuer, 'https://other.example'],
    [],
    [[issuer]],
    undefined,
  ]) {
    const named = await ask(tokenOf({ claims: { aud } }), { client_id: client.id })
    await assertFails(t, named, rule, JSON.stringify(aud) ?? 'none', issuer)
    await assertFails(
      t,
      await ask(tokenOf({ claims: { aud } })),
      'rfc7523-3-iss-sub',
      'without client_id no client is found',
    )
  }
  const audience = 'lychgate for the import'
  const other = await add([{ subject: branch, audience }])
  const response = await ask(tokenOf({ claims: { aud: audience } }))
  const token = String((await json(response))['access_token'])
  const introspected = await ask(tokenOf({ claims: { aud: audience } }), { token }, '/api/oauth/introspect')
  t.match(await json(introspected), { client_id: other.id }, 'an audience tells two clients apart')
  const crossed = await ask(tokenOf(), { client_id: other.id })
  await assertFails(t, crossed, rule, 'the default does not count for a client with another', audience)
  await t.rejects(add([{ subject: branch, audience }]), RecordExists, 'two clients for one token')
})

t.test(
  '[rfc7523-3-exp] [rfc7523-3-nbf-iat] a token lives an hour at most, a reusable one a day',
  async (t) => {
    const now = server.now()
    for (const claims of [{ exp: now + 3600 }, { exp: now - 8 }, { nbf: now + 9 }, { iat: undefined }])
      t.equal((await ask(tokenOf({ claims }))).status, 200, JSON.stringify(claims))
    t.equal((await ask(tokenOf({ claims: { exp: now + 86_400 } }, account))).status, 200, 'reusable')
    const wrong: readonly (readonly [string, NonNullable<AssertionChange['claims']>, string?])[] = [
      ['rfc7523-3-exp', { exp: undefined }],
      ['rfc7523-3-exp', { exp: now - 11 }],
      ['rfc7523-3-exp', { exp: now + 3700 }],
      ['rfc7523-3-exp', { exp: now + 86_500 }, account],
      ['rfc7523-3-exp', { exp: undefined }, account],
      ['rfc7523-3-nbf-iat', { nbf: now + 61 }],
      ['rfc7523-3-nbf-iat', { iat: now + 61 }],
      ['rfc7523-3-nbf-iat', { iat: 'now' }, account],
    ]
    for (const [rule, claims, sub] of wrong)
      await assertFails(t, await ask(tokenOf({ claims }, sub)), rule, `[${rule}] ${JSON.stringify(claims)}`)
  },
)

t.test('[rfc7523-3-jti-replay] a token is used once, unless the operator marked it reusable', async (t) => {
  const rule = 'rfc7523-3-jti-replay'
  const token = tokenOf()
  t.equal((await ask(token)).status, 200)
  await assertFails(t, await ask(token), rule, 'again', 'was used before')
  await assertFails(t, await ask(token, { client_id: client.id }), rule, 'again, with client_id')
  for (const jti of [undefined, '', 7, 'j'.repeat(257)])
    await assertFails(t, await ask(tokenOf({ claims: { jti } })), rule, String(jti).slice(0, 9))
  const projected = tokenOf({}, account)
  for (const use of ['first', 'second'])
    t.equal((await ask(projected)).status, 200, `${use} use of a projected token`)
  t.equal((await ask(tokenOf({ claims: { jti: undefined } }, account))).status, 200, 'without jti')
  const both = await add([{ subject: 'both' }], { jwks: { keys: [makeClientKey().jwk] } })
  const shared = tokenOf({}, 'both')
  t.equal((await ask(shared, { client_id: both.id })).status, 200)
})

t.test(
  '[rfc7523-3-alg-registered] [rfc7523-3-valid-jwt] the header chooses neither key nor rules',
  async (t) => {
    for (const alg of ['none', 'HS256', 'PS256', 'RS384', undefined])
      await assertFails(
        t,
        await ask(tokenOf({ header: { alg } })),
        'rfc7523-3-alg-registered',
        `[rfc7523-3-alg-registered] ${alg}`,
      )
    const [, claims] = tokenOf().split('.')
    const header = Buffer.from(JSON.stringify({ alg: 'HS256', kid: 'first' })).toString('base64url')
    const mac = createHmac('sha256', JSON.stringify(platform.key.jwk)).update(`${header}.${claims}`)
    const confused = `${header}.${claims}.${mac.digest('base64url')}`
    await assertFails(t, await ask(confused), 'rfc7523-3-alg-registered', 'HMAC with the public key')
    for (const changed of [
      { crit: ['exp'] },
      { jwk: makeClientKey().jwk },
      { jku: `${platform.issuer}/keys` },
      { x5u: 'https://a.example' },
      { typ: 'at+jwt' },
      { typ: 'logout+jwt' },
    ])
      await assertFails(
        t,
        await ask(tokenOf({ header: changed })),
        'rfc7523-3-valid-jwt',
        `[rfc7523-3-valid-jwt] ${JSON.stringify(changed).slice(0, 30)}`,
      )
    for (const typ of ['JWT', 'JOSE', undefined])
      t.equal((await ask(tokenOf({ header: { typ, x5t: 'a thumbprint' } }))).status, 200, String(typ))
    const { issuer } = platform
    const text = `{"iss":"${issuer}","sub":"other","sub":"${branch}","aud":"${server.issuer}","exp":${server.now() + 60},"jti":"t"}`
    await assertFails(t, await ask(tokenOf({ text })), 'rfc7523-2.2-parameters', 'a repeated member')
  },
)

t.test('[rfc7523-3-signature] only keys of the trusted issuer count, and new ones are found', async (t) => {
  const rule = 'rfc7523-3-signature'
  const stranger = makeClientKey('RS256', 'first')
  await assertFails(t, await ask(tokenOf({}, branch, stranger)), rule, 'the key of another', 'signature')
  const ownKey = makeClientKey('RS256', 'own')
  const both = await add([{ subject: 'both keys' }], { jwks: { keys: [ownKey.jwk] } })
  const own = { id: both.id, issuer: server.issuer, now: server.now() }
  t.equal((await ask(signAssertion(ownKey, own))).status, 200, 'its own key signs its own assertions')
  const crossed = await ask(tokenOf({}, 'both keys', ownKey))
  await assertFails(t, crossed, rule, 'and no tokens of the issuer')
  const reversed = await ask(signAssertion(platform.key, own))
  await assertFails(t, reversed, rule, 'nor the other way round')
  const next = makeClientKey('ES256', 'next')
  platform.state.keys = [next.jwk]
  server.advance(61)
  t.equal((await ask(tokenOf({}, branch, next))).status, 200, 'a new key')
  await assertFails(t, await ask(), rule, 'a key that was taken out')
  platform.state.keys = [platform.key.jwk]
  server.advance(61)
  t.equal((await ask()).status, 200)
})

t.test('the metadata must be that of the issuer, character by character', async (t) => {
  const wrong = [
    [{ issuer: `${platform.issuer}/`, jwks_uri: `${platform.issuer}/keys` }, /another issuer/],
    [{ jwks_uri: `${platform.issuer}/keys` }, /another issuer/],
    [{ issuer: platform.issuer }, /no jwks_uri/],
    [{ issuer: platform.issuer, jwks_uri: 'file:///etc/passwd' }, /not https/],
    [{ issuer: platform.issuer, jwks_uri: 'http://192.0.2.1/keys' }, /no public address/],
  ] as const
  for (const [metadata, words] of wrong) {
    const lying = await startStandInIssuer(t)
    lying.state.metadata = JSON.parse(JSON.stringify(metadata).replaceAll(platform.issuer, lying.issuer))
    await add([{ issuer: lying.issuer, subject: branch }])
    const token = lying.sign({ sub: branch, aud: server.issuer, now: server.now() })
    await assertFails(t, await ask(token), 'rfc7523-3-signature', JSON.stringify(metadata))
    t.match(
      server.log.findLast((line) => line.includes('invalid_client')),
      words,
    )
  }
  const down = await startStandInIssuer(t)
  await add([{ issuer: down.issuer, subject: branch }])
  const sign = () => down.sign({ sub: branch, aud: server.issuer, now: server.now() })
  t.equal((await ask(sign())).status, 200)
  down.state.status = 500
  server.advance(3600)
  t.equal((await ask(sign())).status, 200, 'while it is down')
  server.advance(86_400)
  await assertFails(t, await ask(sign()), 'rfc7523-3-signature', 'until the ceiling', 'status 500')
})

t.test('what an operator ends counts for the next token', async (t) => {
  const leaving = await add([{ subject: 'leaving' }, { subject: 'staying' }])
  const asked = (sub: string) => ask(tokenOf({}, sub))
  t.equal((await asked('leaving')).status, 200)
  const { store, config } = server.deps
  const known = { declared, scopes: ['courses:read'], resources: [config.issuer] }
  const left = { trusted_issuers: [{ issuer: platform.issuer, subject: 'staying' }] }
  await store.transact('client', leaving.id, (found) =>
    changeOperatorClient(found, { description: left }, known, { by: 'operator', at: server.now() }),
  )
  await assertFails(t, await asked('leaving'), 'rfc7523-3-iss-sub', 'a subject that was removed')
  t.equal((await asked('staying')).status, 200)
  await add([{ subject: 'leaving' }])
  t.equal((await asked('leaving')).status, 200, 'and another client may have it')
  await store.write(remove('client', leaving.id))
  await assertFails(t, await asked('staying'), 'rfc7523-3-iss-sub', 'a client that was removed')
  await add([{ subject: 'staying' }])
  t.equal((await asked('staying')).status, 200)
})

t.test('an operator names issuer and subject in full', async (t) => {
  const { issuer } = platform
  for (const [entry, message] of [
    [{ issuer: 'http://a.example', subject: 'a' }, /issuer must be an https URL/],
    [{ issuer: 'https://a.example?b', subject: 'a' }, /issuer must be/],
    [{ issuer: 'https://a@b.example', subject: 'a' }, /issuer must be/],
    [{ issuer: 'HTTPS://a.example', subject: 'a' }, /issuer must be/],
    [{ issuer: undefined, subject: 'a' }, /issuer must be/],
    [{ issuer }, /subject must have/],
    [{ issuer, subject: '' }, /subject must have/],
    [{ issuer, subject: 'a\u0000' }, /subject must have/],
    [{ issuer, subject: 'repo:example/*' }, /compared exactly/],
    [{ issuer, subject: 'a', audience: '' }, /audience must have/],
    [{ issuer, subject: 'a', audience: ['b'] }, /audience must have/],
    [{ issuer, subject: 'a', reusable: 'yes' }, /reusable must be/],
    [{ issuer, subject: 'a', subjects: ['b'] }, /unknown member/],
  ] as const)
    await t.rejects(add([entry]), { code: 'invalid_client_metadata', message }, JSON.stringify(entry))
  await t.rejects(add([{ subject: 'a' }, { subject: 'a' }]), { message: /twice/ })
  await t.rejects(add([], { trusted_issuers: 'a' }), { message: /JSON list/ })
  await t.rejects(add([], { trusted_issuers: '[{},{},' }), { message: /JSON list/ })
  await t.rejects(add([]), { message: /needs jwks, jwks_uri or trusted_issuers/ })
})

t.test('[rfc7523-2.2-registration] a client that registers itself trusts no issuer', async (t) => {
  const trusted = [{ issuer: platform.issuer, subject: 'stranger' }]
  const register = (members: Readonly<Record<string, unknown>>) =>
    fetch(`${server.issuer}/api/oauth/register`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        redirect_uris: ['http://127.0.0.1/cb'],
        trusted_issuers: trusted,
        ...members,
      }),
    })
  const ignored = await register({})
  t.equal(ignored.status, 201)
  const registered = await json(ignored)
  t.notOk('trusted_issuers' in registered, 'ignored, as every member that is not offered')
  t.equal((await register({ token_endpoint_auth_method: 'private_key_jwt' })).status, 400)
  await assertFails(t, await ask(tokenOf({}, 'stranger')), 'rfc7523-3-iss-sub', 'no such client')
  const named = await ask(tokenOf({}, 'stranger'), { client_id: String(registered['client_id']) })
  await assertFails(t, named, 'oidc-core-9-registered-method-enforced', 'nor by its client_id')
})
