/** FAPI 2.0 Message Signing (Final) §5.3 and §5.4: what passes the browser of such a client is signed, both ways. */
import { createRemoteJWKSet, jwtVerify } from 'jose'
import t, { type Test } from 'tap'
import type { AssertionAlgorithm } from '../helpers/assertions.ts'
import {
  addProfiled,
  ask,
  authorized,
  changeParty,
  type Party,
  proofFor,
  push,
  redemption,
} from '../helpers/profiled-clients.ts'
import { tokenPath } from '../helpers/proofs.ts'
import { type RequestChange, signRequest } from '../helpers/request-objects.ts'
import { startServer } from '../helpers/server.ts'
import { assertRejected, type Json, json } from '../helpers/wire.ts'

const server = await startServer(t)
const keySet = createRemoteJWKSet(new URL(`${server.issuer}/api/oauth/jwks`))
const signing = {
  security_profile: 'fapi2-message-signing',
  require_signed_request_object: true,
  authorization_signed_response_alg: 'ES256',
  response_modes: ['jwt'],
}

const add = (alg: AssertionAlgorithm = 'ES256', members: Json = {}) =>
  addProfiled(server, alg, { ...signing, ...members })

/** What a client pushes: the request object alone. */
const only = {
  response_type: undefined,
  redirect_uri: undefined,
  scope: undefined,
  state: undefined,
  code_challenge: undefined,
  code_challenge_method: undefined,
}

const signed = ({ client, key }: Party, { claims, ...change }: RequestChange = {}) => ({
  ...only,
  request: signRequest(key, client, server, {
    ...change,
    claims: { scope: 'openid courses:read', response_mode: 'jwt', ...claims },
  }),
})

/** Asserts that a push is rejected, and that the log says by which rule. */
async function assertFails(t: Test, response: Response, error: string, rule: string, about: string) {
  await assertRejected(t, response, error, 400, about)
  t.match(
    server.log.findLast((text) => text.includes(`"${error}"`)),
    `"${rule}"`,
    `[${rule}] ${about}`,
  )
}

const party = await add()

for (const alg of ['ES256', 'PS256', 'EdDSA'] as const)
  t.test(`[fapi2-ms-5.3.1-signed-request] [fapi2-ms-5.4.1-jarm] both ways are signed: ${alg}`, async (t) => {
    const by = await add(alg)
    const { searchParams } = await authorized(by, signed(by))
    t.strictSame([...searchParams.keys()], ['response'])
    const { payload, protectedHeader } = await jwtVerify(searchParams.get('response') ?? '', keySet, {
      issuer: server.issuer,
      audience: by.client.id,
      currentDate: new Date(server.now() * 1000),
    })
    t.equal(protectedHeader.alg, 'ES256')
    const response = await ask(by, redemption(by, String(payload['code'])))
    t.match(await json(response), { token_type: 'DPoP', id_token: /./ })
  })

t.test('[fapi2-ms-5.3.1-signed-request] parameters that are not signed are rejected', async (t) => {
  const plain = await push(party, { response_mode: 'jwt' })
  await assertFails(t, plain, 'invalid_request', 'fapi2-ms-5.3.1-signed-request', 'parameters')
  const unsigned = [{ alg: 'none' }, {}, { iss: party.client.id }]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .slice(0, 2)
  const none = await push(party, { ...only, request: `${unsigned.join('.')}.` })
  await assertRejected(t, none, 'invalid_request_object', 400, 'alg none')
  // An operator who takes the member away does not take the rule away.
  const loose = await add('ES256', { require_signed_request_object: false })
  const again = await push(loose, { response_mode: 'jwt' })
  await assertFails(t, again, 'invalid_request', 'fapi2-ms-5.3.1-signed-request', 'without the member')
})

t.test('[fapi2-ms-5.3.1-exp-nbf] a request object is for at most 60 minutes', async (t) => {
  const now = server.now()
  const rows: readonly (readonly [string, Json])[] = [
    ['no exp', { exp: undefined }],
    ['no nbf', { nbf: undefined }],
    ['neither', { exp: undefined, nbf: undefined }],
    ['61 minutes', { nbf: now - 1900, exp: now + 1800 }],
    ['a text', { nbf: String(now) }],
    ['too old', { nbf: now - 3700, exp: now - 100 }],
    ['over', { nbf: now - 120, exp: now - 60 }],
    ['ahead', { nbf: now + 60, exp: now + 120 }],
  ]
  for (const [about, claims] of rows) {
    const response = await push(party, signed(party, { claims }))
    await assertRejected(t, response, 'invalid_request_object', 400, `[fapi2-ms-5.3.1-exp-nbf] ${about}`)
  }
  const fine = await push(party, signed(party, { claims: { nbf: now - 1800, exp: now + 1800 } }))
  t.equal(fine.status, 201, 'exactly 60 minutes')
})

t.test('[fapi2-ms-5.3.1-aud] [fapi2-ms-5.3.1-typ] aud is the issuer, typ may say what it is', async (t) => {
  for (const aud of ['https://other.example', undefined, []]) {
    const response = await push(party, signed(party, { claims: { aud } }))
    await assertRejected(t, response, 'invalid_request_object', 400, '[fapi2-ms-5.3.1-aud]')
  }
  const inList = await push(
    party,
    signed(party, { claims: { aud: ['https://other.example', server.issuer] } }),
  )
  t.equal(inList.status, 201)
  const typed = await push(party, signed(party, { header: { typ: 'oauth-authz-req+jwt' } }))
  t.equal(typed.status, 201, '[fapi2-ms-5.3.1-typ]')
})

t.test(
  '[fapi2-ms-5.4-response-modes] a client that registered for signed responses gets no others',
  async (t) => {
    for (const mode of [undefined, 'query', 'form_post', 'form_post.jwt']) {
      const response = await push(party, signed(party, { claims: { response_mode: mode } }))
      const error = await json(response.clone())
      await assertFails(t, response, 'invalid_request', 'fapi2-ms-5.4-response-modes', String(mode))
      t.match(error['error_description'], 'response_modes')
    }
    for (const mode of ['jwt', 'query.jwt'])
      t.equal((await push(party, signed(party, { claims: { response_mode: mode } }))).status, 201, mode)
    const plain = await add()
    await changeParty(plain, { description: { response_modes: [] } })
    const { searchParams } = await authorized(plain, signed(plain, { claims: { response_mode: undefined } }))
    t.strictSame(
      [...searchParams.keys()].sort(),
      ['code', 'iss', 'state'],
      'an operator may allow plain ones',
    )
  },
)

t.test('the rules of the security profile hold, too', async (t) => {
  const { searchParams } = await authorized(party, signed(party))
  const { payload } = await jwtVerify(searchParams.get('response') ?? '', keySet, {
    currentDate: new Date(server.now() * 1000),
  })
  const code = String(payload['code'])
  const unbound = await ask(party, redemption(party, code), tokenPath, [])
  await assertRejected(t, unbound, 'invalid_dpop_proof', 400)
  t.equal((await ask(party, redemption(party, code), tokenPath, [proofFor(server, tokenPath)])).status, 200)
  const browser = await fetch(
    `${server.issuer}/oauth/authorize?${new URLSearchParams({ client_id: party.client.id, request: signed(party).request })}`,
    { redirect: 'manual' },
  )
  const { searchParams: told } = new URL(browser.headers.get('location') ?? '')
  const { payload: error } = await jwtVerify(told.get('response') ?? '', keySet, {
    currentDate: new Date(server.now() * 1000),
  })
  t.equal(
    error['error'],
    'invalid_request',
    'a signed request that is not pushed is rejected, in a signed response',
  )
})
