import t from 'tap'
import {
  ask,
  assertErrorRedirect,
  callback,
  integrate,
  pageOf,
  sentAway,
  signedIn,
} from '../helpers/authorization.ts'
import { authorize, exchange, type Fields, obtainCode, pkce, register } from '../helpers/flow.ts'
import { startServer } from '../helpers/server.ts'
import { assertRejected } from '../helpers/wire.ts'

const server = await startServer(t)
const client = await register(server)
const confidential = await register(server, { token_endpoint_auth_method: 'client_secret_post' })
const native = await register(server, { application_type: 'native' })
const user = await signedIn(server, client)
const verifier = 'v'.repeat(43)

t.test(
  '[service-4-authorize-code-challenge] [rfc7636-4.4.1-challenge-required] [rfc8252-8.1-native-pkce-required] [oauth21-4.1.1-pkce-for-all] every client needs code_challenge',
  async (t) => {
    const portal = await integrate(server)
    for (const [who, message] of [
      [client, '[rfc7636-4.4.1-challenge-required]'],
      [native, '[rfc8252-8.1-native-pkce-required]'],
      [confidential, '[oauth21-4.1.1-pkce-for-all]'],
      [portal, '[service-4-authorize-code-challenge] also of an operator'],
    ] as const) {
      for (const fields of [
        { code_challenge: undefined },
        { code_challenge: undefined, code_challenge_method: undefined },
        { code_challenge: undefined, code_challenge_method: undefined, nonce: 'a-nonce' },
      ]) {
        const response = await authorize(server, who, fields)
        const description = assertErrorRedirect(t, server, response, 'invalid_request', {
          to: who.redirectUri,
          message,
        })
        t.match(description, 'code_challenge')
      }
    }
  },
)

t.test(
  '[service-4-authorize-ccm] [rfc7636-4.3-method-default-plain] [rfc7636-4.4.1-method-unsupported] the only method is S256, and an omitted one does not count as it',
  async (t) => {
    const missing = '[rfc7636-4.3-method-default-plain]'
    for (const [method, clause] of [
      ['plain', '[service-4-authorize-ccm]'],
      ['s256', '[service-4-authorize-ccm]'],
      ['S512', '[rfc7636-4.4.1-method-unsupported]'],
      ['sha256', '[rfc7636-4.4.1-method-unsupported]'],
      ['S256 ', '[rfc7636-4.4.1-method-unsupported]'],
      ['none', '[rfc7636-4.4.1-method-unsupported]'],
      [undefined, missing],
      ['', missing],
    ] as const) {
      // A plain challenge of 43 characters looks like any other.
      for (const challenge of [pkce(verifier).challenge, verifier]) {
        const fields = { code_challenge_method: method, code_challenge: challenge }
        const response = await authorize(server, client, fields)
        const description = assertErrorRedirect(t, server, response, 'invalid_request', {
          message: `${clause} ${method}`,
        })
        t.match(description, /code_challenge_method.*S256/)
      }
    }
  },
)

t.test('[rfc7636-4.2-challenge-syntax] a challenge is 43 characters of unpadded base64url', async (t) => {
  const { challenge } = pkce(verifier)
  const wrong = [
    challenge.slice(0, 42),
    `${challenge}=`,
    `${challenge}A`,
    'a'.repeat(129),
    'a'.repeat(128),
    `${challenge.slice(0, 20)} ${challenge.slice(21)}`,
    `${challenge.slice(0, 20)}+${challenge.slice(21)}`,
    `${challenge.slice(0, 20)}é${challenge.slice(21)}`,
    `${challenge}\n`,
  ]
  for (const text of wrong) {
    const response = await authorize(server, client, { code_challenge: text })
    t.match(assertErrorRedirect(t, server, response, 'invalid_request', { message: text }), 'code_challenge')
  }
})

t.test('[rfc7636-4.2-s256-mandatory] the example of appendix B is redeemed', async (t) => {
  const fields = { code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM' }
  const code = await obtainCode(server, client, { agent: user, fields })
  const right = { code_verifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk' }
  const plain = await exchange(server, client, code, { code_verifier: fields.code_challenge })
  await assertRejected(t, plain, 'invalid_grant')
  t.equal((await exchange(server, client, code, right)).status, 200)
})

t.test(
  '[rfc7636-4.4-bound-to-code] a code is redeemed only with its own verifier, and a wrong one leaves it valid',
  async (t) => {
    const [one, other] = [pkce(), pkce()]
    const codes: string[] = []
    for (const { challenge } of [one, other])
      codes.push(await obtainCode(server, client, { agent: user, fields: { code_challenge: challenge } }))
    const [first = '', second = ''] = codes
    for (const [code, { verifier }] of [
      [first, other],
      [second, one],
    ] as const) {
      const crossed = await exchange(server, client, code, { code_verifier: verifier })
      await assertRejected(t, crossed, 'invalid_grant')
    }
    t.equal((await exchange(server, client, first, { code_verifier: one.verifier })).status, 200)
    t.equal((await exchange(server, client, second, { code_verifier: other.verifier })).status, 200)
  },
)

t.test('[rfc7636-4.4-challenge-not-exposed] no response and no code contains the challenge', async (t) => {
  const { challenge, verifier } = pkce()
  const page = pageOf(await ask(server, client, { code_challenge: challenge }, user))
  const landing = await user.submit(page, { decision: 'approve' })
  const { code = '' } = sentAway(landing)
  const response = await exchange(server, client, code, { code_verifier: verifier })
  t.equal(response.status, 200, 'the challenge is the one of this code')
  t.notOk(JSON.stringify(landing).includes(challenge), 'the redirect')
  t.notOk((await response.text()).includes(challenge), 'the tokens')
  t.notOk(page.html.includes(challenge), 'the consent page')
  const digest = Buffer.from(challenge, 'base64url').toString('latin1')
  for (const text of [code, ...code.split(/[._]/)]) {
    const decoded = Buffer.from(text, 'base64url').toString('latin1')
    for (const secret of [challenge, digest]) {
      t.notOk(text.includes(secret))
      t.notOk(decoded.includes(secret))
    }
  }
})

t.test(
  '[rfc9700-2.1.1-pkce-supported] a challenge from a client that need not send one is enforced, and none is invented',
  async (t) => {
    const exempt = await integrate(server, { pkce: 'optional', consent: 'skip' })
    const codeWith = async (fields: Fields) => sentAway(await ask(server, exempt, fields, user))['code'] ?? ''
    const none = { code_challenge: undefined, code_challenge_method: undefined }
    for (const [who, code] of [
      [exempt, await codeWith({})],
      [confidential, await obtainCode(server, confidential, { agent: user })],
    ] as const) {
      const without = await exchange(server, who, code, { code_verifier: undefined })
      await assertRejected(t, without, 'invalid_grant')
      t.equal((await exchange(server, who, code)).status, 200)
    }
    const bare = await codeWith(none)
    const downgraded = await exchange(server, exempt, bare)
    await assertRejected(t, downgraded, 'invalid_request', 400, 'a verifier without a challenge')
    t.equal((await exchange(server, exempt, bare, { code_verifier: undefined })).status, 200)
    for (const fields of [
      { code_challenge: undefined },
      { code_challenge_method: 'plain' },
      { code_challenge: 'short' },
    ])
      assertErrorRedirect(t, server, await authorize(server, exempt, fields), 'invalid_request', {
        to: callback,
      })
  },
)
