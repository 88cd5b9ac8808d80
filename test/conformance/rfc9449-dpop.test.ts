/** Tokens bound to a key, RFC 9449, at the endpoints of the authorization server. */
import { createHmac } from 'node:crypto'
import t, { type Test } from 'tap'
import { type AssertionChange, makeClientKey } from '../helpers/assertions.ts'
import {
  authorizationUrl,
  claimsOf,
  type Fields,
  form,
  obtainCode,
  register,
  responseOf,
  signInAndApprove,
  type TestClient,
} from '../helpers/flow.ts'
import { nodeCount } from '../helpers/nodes.ts'
import { postProven, signProof, thumbprintOf, tokenPath } from '../helpers/proofs.ts'
import { send } from '../helpers/raw.ts'
import { startServer } from '../helpers/server.ts'
import { newUser } from '../helpers/user.ts'
import { addClient, assertRejected, introspect, type Json, json } from '../helpers/wire.ts'

const library = 'https://library.example/api'
const options = {
  resources: [
    { identifier: library, name: 'Library', scopes: ['courses:read'], tokenFormat: 'jwt' as const },
  ],
}
const server = await startServer(t, options)
const demanding = await startServer(t, { dpop: { nonce: 'token' } })
const key = makeClientKey('ES256')
const other = makeClientKey('ES256')
const client = await register(server)
const machine = await addClient(server, {
  authenticationMethod: 'client_secret_post',
  grantTypes: ['authorization_code', 'refresh_token', 'client_credentials'],
  scope: ['openid', 'courses:read'],
})
const asking = { grant_type: 'client_credentials' }
const { agent } = newUser(server)

/** A proof for the token endpoint. */
function proof(change: AssertionChange = {}, by = key, of = server, path = tokenPath): string {
  return signProof(by, { url: of.issuer + path, now: of.now() }, change)
}

const ask = (...proofs: readonly string[]) => postProven(server, machine, tokenPath, asking, ...proofs)

const codeFields = (code: string, of = client): Fields => ({
  grant_type: 'authorization_code',
  code,
  redirect_uri: of.redirectUri,
  code_verifier: 'v'.repeat(43),
})

/** The response to a code, with these proofs. */
async function redeem(of: TestClient, fields: Fields, ...proofs: readonly string[]): Promise<Response> {
  const code = await obtainCode(server, of, { agent, fields })
  return postProven(server, of, tokenPath, codeFields(code, of), ...proofs)
}

const refreshed = (of: TestClient, tokens: Json, ...proofs: readonly string[]) => {
  const fields = { grant_type: 'refresh_token', refresh_token: String(tokens['refresh_token']) }
  return postProven(server, of, tokenPath, fields, ...proofs)
}

/** Asserts that a proof is rejected, and that the log says by which rule. */
async function assertFails(t: Test, response: Response, rule: string, about: string, of = server) {
  await assertRejected(t, response, 'invalid_dpop_proof', 400, about)
  const line = of.log.findLast((text) => text.includes('invalid_dpop_proof'))
  t.match(line, `"${rule}"`, `[${rule}] ${about}`)
}

t.test(
  '[rfc9449-5-token-type] [rfc9449-6.1-cnf-jkt] a proof binds the tokens of every grant type',
  async (t) => {
    const jkt = thumbprintOf(key)
    const own = await json(await ask(proof()))
    t.equal(own['token_type'], 'DPoP', '[rfc9449-5-token-type] client_credentials')
    t.equal(String(own['access_token']).length, 159, 'as docs/security.md says')
    t.match(await introspect(server, machine, String(own['access_token'])), {
      token_type: 'DPoP',
      cnf: { jkt },
    })
    const tokens = await json(await redeem(client, {}, proof()))
    t.match(
      tokens,
      { token_type: 'DPoP', refresh_token: /^.{160}$/, id_token: /./ },
      '[rfc9449-5-token-type]',
    )
    const seen = await introspect(server, client, String(tokens['access_token']))
    t.match(seen, { active: true, token_type: 'DPoP', cnf: { jkt } }, '[rfc9449-6.1-cnf-jkt] introspection')
    const narrow = await json(await redeem(client, { resource: library, scope: 'courses:read' }, proof()))
    t.strictSame(claimsOf(String(narrow['access_token']))['cnf'], { jkt }, '[rfc9449-6.1-cnf-jkt] a JWT')
    const signed = await introspect(server, client, String(narrow['access_token']))
    t.match(signed, { active: true, token_type: 'DPoP', cnf: { jkt } }, '[rfc9449-6.1-cnf-jkt]')
    const bearer = await json(await redeem(client, {}))
    t.equal(bearer['token_type'], 'Bearer', 'without a proof nothing is bound')
    t.notOk('cnf' in (await introspect(server, client, String(bearer['access_token']))))
  },
)

t.test(
  '[rfc9449-4.3-single-header] [rfc9449-4.3-well-formed] one header with one strict JWT is read',
  async (t) => {
    const one = proof()
    await assertFails(t, await ask(one, proof()), 'rfc9449-4.3-single-header', 'two values')
    await assertFails(t, await ask(one, one), 'rfc9449-4.3-single-header', 'the same value twice')
    const body = String(form({ ...asking, client_id: machine.id, client_secret: machine.secret }))
    const headers = [
      ['Content-Type', 'application/x-www-form-urlencoded'],
      ['DPoP', proof()],
      ['dpop', proof()],
    ] as const
    const twice = await send(server, { method: 'POST', path: tokenPath, headers, body })
    t.match(twice.body, 'invalid_dpop_proof', '[rfc9449-4.3-single-header] two header fields')
    const [header, claims, signature] = proof().split('.')
    const repeated = `{"jti":"a","jti":"b","htm":"POST","htu":"${server.issuer}${tokenPath}","iat":${server.now()}}`
    for (const wrong of [
      'x',
      'a.b.c',
      '{}',
      `${header}.${claims}`,
      `${header}.${claims}.`,
      `${proof()}.x`,
      `${proof()} x`,
      `${header}=.${claims}.${signature}`,
      `${header}.${'A'.repeat(9000)}.${signature}`,
      `W10.${claims}.${signature}`,
      proof({ text: '[]' }),
      proof({ text: repeated }),
    ])
      await assertFails(t, await ask(wrong), 'rfc9449-4.3-well-formed', wrong.slice(0, 20))
  },
)

t.test(
  '[rfc9449-4.3-typ-alg] [rfc9449-4.3-typ] [rfc9449-4.3-alg] [rfc9449-5-invalid-proof-error] typ and alg are those of a proof',
  async (t) => {
    for (const typ of [undefined, 'JWT', 'dpop', 'DPOP+JWT', 'at+jwt', 1])
      await assertFails(t, await ask(proof({ header: { typ } })), 'rfc9449-4.3-typ', String(typ))
    for (const alg of [undefined, 'none', 'HS256', 'RS256', 'ES384', 'es256', ['ES256'], null])
      await assertFails(t, await ask(proof({ header: { alg } })), 'rfc9449-4.3-alg', String(alg))
    t.pass('[rfc9449-4.3-typ-alg] [rfc9449-5-invalid-proof-error] by assertFails')
  },
)

t.test(
  '[rfc9449-4.3-jwk] [rfc9449-4.3-private-key] [rfc9449-4.3-signature] only the public key of the signature is a jwk',
  async (t) => {
    const { kid: _, ...jwk } = key.jwk
    const privateJwk = key.privateKey.export({ format: 'jwk' })
    for (const wrong of [privateJwk, { ...jwk, d: '' }, { kty: 'oct', k: 'c2VjcmV0' }, { ...jwk, k: 'x' }])
      await assertFails(
        t,
        await ask(proof({ header: { jwk: wrong } })),
        'rfc9449-4.3-private-key',
        '[rfc9449-4.3-jwk]',
      )
    const { kid: __, ...stranger } = other.jwk
    const off = { ...jwk, y: 'A'.repeat(43) }
    for (const wrong of [
      undefined,
      null,
      'x',
      [jwk],
      {},
      stranger,
      off,
      { ...jwk, crv: 'P-384' },
      { ...jwk, use: 'enc' },
    ])
      await assertFails(
        t,
        await ask(proof({ header: { jwk: wrong } })),
        'rfc9449-4.3-signature',
        '[rfc9449-4.3-jwk]',
      )
    const ed = makeClientKey('EdDSA')
    await assertFails(
      t,
      await ask(proof({ header: { alg: 'EdDSA' } })),
      'rfc9449-4.3-signature',
      'alg of another key',
    )
    await assertFails(t, await ask(proof({ header: { crit: ['jwk'] } })), 'rfc9449-4.3-signature', 'crit')
    const [header, claims] = proof().split('.')
    const mac = createHmac('sha256', JSON.stringify(jwk)).update(`${header}.${claims}`).digest('base64url')
    await assertFails(t, await ask(`${header}.${claims}.${mac}`), 'rfc9449-4.3-signature', 'no signature')
    const broken = proof().replace(/\.[^.]+$/, `.${proof().split('.')[2]}`)
    await assertFails(t, await ask(broken), 'rfc9449-4.3-signature', 'the signature of another proof')
    const metadata = await json(await fetch(`${server.issuer}/.well-known/oauth-authorization-server`))
    const algorithms = ['ES256', 'PS256', 'EdDSA', 'Ed25519'] as const
    t.strictSame(metadata['dpop_signing_alg_values_supported'], algorithms, '[rfc9449-5.1-metadata]')
    for (const alg of algorithms) t.equal((await ask(proof({}, makeClientKey(alg)))).status, 200, alg)
    t.equal((await ask(proof({}, ed))).status, 200, 'EdDSA')
  },
)

t.test(
  '[rfc9449-4.3-htm-htu] [rfc9449-4.3-htm] [rfc9449-4.3-htu] a proof is for one method and one URL, compared in normal form',
  async (t) => {
    for (const htm of ['GET', 'post', 'POST '])
      await assertFails(
        t,
        await ask(proof({ claims: { htm } })),
        'rfc9449-4.3-htm',
        `[rfc9449-4.3-htm-htu] ${htm}`,
      )
    const { issuer } = server
    const { host, port } = new URL(issuer)
    for (const htu of [
      issuer,
      `${issuer}${tokenPath}/`,
      `${issuer}/api/oauth/par`,
      `${issuer}/API/oauth/token`,
      `https://${host}${tokenPath}`,
      `http://127.0.0.1:${port}${tokenPath}`,
      `http://localhost${tokenPath}`,
      `http://a@${host}${tokenPath}`,
      `http:\\\\${host}${tokenPath}`,
      `http://${host}\\api\\oauth\\token`,
      `${issuer}/api/oauth/token%`,
      `${issuer}/api%2Foauth/token`,
      ` ${issuer}${tokenPath}`,
      `${issuer}${tokenPath}\u0000`,
      tokenPath,
      '',
    ])
      await assertFails(
        t,
        await ask(proof({ claims: { htu } })),
        'rfc9449-4.3-htu',
        `[rfc9449-4.3-htm-htu] ${htu}`,
      )
    for (const htu of [
      `${issuer}${tokenPath}?a=b`,
      `${issuer}${tokenPath}#x`,
      `HTTP://LOCALHOST:${port}${tokenPath}`,
      `${issuer}/api/./x/../oauth/%74oken`,
      `${issuer}/api/%2e/oauth/token`,
    ])
      t.equal((await ask(proof({ claims: { htu } }))).status, 200, `[rfc9449-4.3-htm-htu] ${htu}`)
    // What the Host header says has no part in it.
    const body = String(form({ ...asking, client_id: machine.id, client_secret: machine.secret }))
    const sent = (htu: string) =>
      send(server, {
        method: 'POST',
        path: tokenPath,
        headers: [
          ['Host', 'evil.example'],
          ['Content-Type', 'application/x-www-form-urlencoded'],
          ['DPoP', proof({ claims: { htu } })],
        ],
        body,
      })
    t.not((await sent(`http://evil.example${tokenPath}`)).status, 200, '[rfc9449-4.3-htu] Host')
  },
)

t.test(
  '[rfc9449-4.3-claims-and-iat] [rfc9449-4.3-claims] [rfc9449-4.3-iat] a proof has every claim, and is of now',
  async (t) => {
    for (const claims of [
      { jti: undefined },
      { jti: '' },
      { jti: 1 },
      { jti: 'j'.repeat(257) },
      { htm: undefined },
      { htm: 1 },
      { htu: undefined },
      { htu: [server.issuer + tokenPath] },
      { iat: undefined },
      { iat: String(server.now()) },
      { iat: null },
    ]) {
      const about = `[rfc9449-4.3-claims-and-iat] ${JSON.stringify(claims).slice(0, 40)}`
      await assertFails(t, await ask(proof({ claims })), 'rfc9449-4.3-claims', about)
    }
    for (const away of [-600, -80, 20, 600, 1e300])
      await assertFails(
        t,
        await ask(proof({ claims: { iat: server.now() + away } })),
        'rfc9449-4.3-iat',
        `[rfc9449-4.3-claims-and-iat] ${away}`,
      )
    for (const away of [-65, -60, 0.5, 9])
      t.equal((await ask(proof({ claims: { iat: server.now() + away } }))).status, 200, `${away} s`)
  },
)

t.test('[rfc9449-11.1-jti-replay] a proof is used once, on whichever node', async (t) => {
  const one = proof()
  t.equal((await ask(one)).status, 200)
  await assertFails(t, await ask(one), 'rfc9449-11.1-jti-replay', 'the same again')
  const jti = 'chosen'
  t.equal((await ask(proof({ claims: { jti } }))).status, 200)
  await assertFails(t, await ask(proof({ claims: { jti } })), 'rfc9449-11.1-jti-replay', 'the same jti')
  for (const away of [-1, 9]) {
    const later = proof({ claims: { jti, iat: server.now() + away } })
    // Of several nodes one knows it: another second is another record.
    if (nodeCount === 1)
      await assertFails(t, await ask(later), 'rfc9449-11.1-jti-replay', `the same jti, ${away} s away`)
  }
  t.equal((await ask(proof({ claims: { jti } }, other))).status, 200, 'the jti of another key is another')
  const raced = proof()
  const responses = await Promise.all(Array.from({ length: 8 }, () => ask(raced)))
  t.equal(responses.filter(({ status }) => status === 200).length, 1, '[rfc9449-11.1-jti-replay] at once')
})

t.test('[rfc9449-5-refresh-bound-public] the refresh token of a public client needs its key', async (t) => {
  const first = await json(await redeem(client, {}, proof()))
  const wrong = '[rfc9449-5-refresh-bound-public]'
  await assertRejected(t, await refreshed(client, first), 'invalid_grant', 400, `${wrong} no proof`)
  await assertRejected(
    t,
    await refreshed(client, first, proof({}, other)),
    'invalid_grant',
    400,
    `${wrong} another`,
  )
  const second = await json(await refreshed(client, first, proof()))
  t.match(second, { token_type: 'DPoP', refresh_token: /./ }, 'neither rejection used it up')
  t.equal((await refreshed(client, second, proof())).status, 200)
  const bearer = await json(await redeem(client, {}))
  const bound = await json(await refreshed(client, bearer, proof()))
  t.equal(bound['token_type'], 'DPoP', 'a proof binds from then on')
  await assertRejected(t, await refreshed(client, bound), 'invalid_grant', 400, `${wrong} since a refresh`)
  const confidential = await json(await redeem(machine, {}, proof()))
  const later = await json(await refreshed(machine, confidential, proof({}, other)))
  t.equal(later['token_type'], 'DPoP', 'a confidential client proves itself, and may have another key')
  const seen = await introspect(server, machine, String(later['access_token']))
  t.match(seen, { cnf: { jkt: thumbprintOf(other) } })
  const before = await introspect(server, machine, String(confidential['access_token']))
  t.match(before, { cnf: { jkt: thumbprintOf(key) } }, 'and each token has its own')
})

t.test('[rfc9449-5.2-client-requires] a client may register that all its tokens are bound', async (t) => {
  const rule = 'rfc9449-5.2-client-requires'
  const strict = await register(server, { dpop_bound_access_tokens: true })
  await assertFails(t, await redeem(strict, {}), rule, 'a code')
  const tokens = await json(await redeem(strict, {}, proof()))
  t.equal(tokens['token_type'], 'DPoP')
  await assertFails(t, await refreshed(strict, tokens), rule, 'a refresh')
  const added = await addClient(server, {
    authenticationMethod: 'client_secret_post',
    grantTypes: ['client_credentials'],
    scope: ['courses:read'],
    description: { dpop_bound_access_tokens: true },
  })
  await assertFails(t, await postProven(server, added, tokenPath, asking), rule, 'client_credentials')
  t.equal((await postProven(server, added, tokenPath, asking, proof())).status, 200)
})

t.test('[rfc9449-10-dpop-jkt] a code is bound by dpop_jkt', async (t) => {
  const fields = { dpop_jkt: thumbprintOf(key) }
  for (const proofs of [[], [proof({}, other)]])
    await assertRejected(
      t,
      await redeem(client, fields, ...proofs),
      'invalid_grant',
      400,
      '[rfc9449-10-dpop-jkt]',
    )
  const code = await obtainCode(server, client, { agent, fields })
  const stolen = await postProven(server, client, tokenPath, codeFields(code), proof({}, other))
  await assertRejected(t, stolen, 'invalid_grant')
  const own = await postProven(server, client, tokenPath, codeFields(code), proof())
  t.equal(own.status, 200, 'a failed attempt uses nothing up')
  const again = await postProven(server, client, tokenPath, codeFields(code), proof({}, other))
  await assertRejected(t, again, 'invalid_grant')
  const tokens = await json(own)
  t.match(
    await introspect(server, client, String(tokens['access_token'])),
    { active: true },
    'nor revokes anything',
  )
  for (const wrong of ['x', 'A'.repeat(44), `${'A'.repeat(42)}=`]) {
    const response = await agent.send(authorizationUrl(server, client, { dpop_jkt: wrong }))
    t.match(responseOf(response), { error: 'invalid_request' }, wrong)
  }
})

t.test('[rfc9449-10.1-par] a pushed request is bound by its proof, by dpop_jkt, or by both', async (t) => {
  const path = '/api/oauth/par'
  const request = Object.fromEntries(new URL(authorizationUrl(server, client)).searchParams)
  const push = (fields: Fields, ...proofs: readonly string[]) =>
    postProven(server, client, path, { ...request, ...fields }, ...proofs)
  const proven = () => proof({}, key, server, path)
  const jkt = thumbprintOf(key)
  const mismatch = await push({ dpop_jkt: thumbprintOf(other) }, proven())
  await assertRejected(t, mismatch, 'invalid_request', 400, '[rfc9449-10.1-par] a mismatch')
  await assertFails(t, await push({}, proof()), 'rfc9449-4.3-htu', 'a proof for another endpoint')
  for (const [fields, proofs] of [
    [{}, [proven()]],
    [{ dpop_jkt: jkt }, []],
    [{ dpop_jkt: jkt }, [proven()]],
  ] as const) {
    const { request_uri: uri } = await json(await push(fields, ...proofs))
    const query = new URLSearchParams({ client_id: client.id, request_uri: String(uri) })
    const landing = await agent.open(`${server.issuer}/oauth/authorize?${query}`)
    const code = (await signInAndApprove(agent, landing)).searchParams.get('code') ?? ''
    const wrong = await postProven(server, client, tokenPath, codeFields(code), proof({}, other))
    await assertRejected(t, wrong, 'invalid_grant', 400, '[rfc9449-10.1-par] another key')
    const right = await postProven(server, client, tokenPath, codeFields(code), proof())
    t.equal(right.status, 200, `[rfc9449-10.1-par] ${Object.keys(fields)}`)
  }
})

t.test(
  '[rfc9449-8-nonce] [rfc9449-8-nonce-mismatch] [rfc9449-4.3-nonce] a nonce is demanded, given and accepted for a while',
  async (t) => {
    const strict = await addClient(demanding, {
      authenticationMethod: 'client_secret_post',
      grantTypes: ['client_credentials'],
      scope: ['courses:read'],
    })
    const proofWith = (nonce?: unknown) => proof({ claims: { nonce } }, key, demanding)
    const askWith = (nonce?: unknown) => postProven(demanding, strict, tokenPath, asking, proofWith(nonce))
    const nonceOf = (response: Response) => response.headers.get('dpop-nonce') ?? ''
    const demanded = async (nonce: unknown, about: string) => {
      const response = await askWith(nonce)
      const next = nonceOf(response)
      t.match(next, /^[\w-]{22}$/, `[rfc9449-8-nonce] ${about}: one DPoP-Nonce`)
      await assertRejected(t, response, 'use_dpop_nonce', 400, about)
      t.match(
        demanding.log.findLast((line) => line.includes('use_dpop_nonce')),
        'rfc9449-4.3-nonce',
      )
      return next
    }
    // From the beginning of a half minute on, so that none passes unnoticed.
    demanding.advance(30 - (demanding.now() % 30))
    const nonce = await demanded(undefined, 'no nonce')
    for (const wrong of ['x', '', nonce.toUpperCase(), [nonce], 1]) await demanded(wrong, `${wrong}`)
    const right = await askWith(nonce)
    t.equal(right.status, 200, '[rfc9449-8-nonce]')
    t.equal(nonceOf(right), nonce, 'a success has a nonce, too')
    const bearer = await postProven(demanding, strict, tokenPath, asking)
    t.equal(bearer.status, 200, 'without a proof there is nothing to demand')
    t.notOk(bearer.headers.has('dpop-nonce'))
    demanding.advance(30)
    const later = await askWith(nonce)
    t.equal(later.status, 200, 'half a minute later it is still accepted')
    t.not(nonceOf(later), nonce, 'and the next one is given')
    demanding.advance(30)
    await demanded(nonce, '[rfc9449-8-nonce-mismatch] an old nonce')
    const body = await postProven(
      demanding,
      strict,
      '/api/oauth/par',
      {},
      proof({}, key, demanding, '/api/oauth/par'),
    )
    await assertRejected(t, body, 'use_dpop_nonce', 400, 'at the push endpoint, too')
    t.match(nonceOf(body), /./)
  },
)

t.test('[rfc9449-8-nonce] pages of other origins may send proofs and read nonces', async (t) => {
  const preflight = await fetch(server.issuer + tokenPath, {
    method: 'OPTIONS',
    headers: {
      origin: 'https://page.example',
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'dpop',
    },
  })
  t.match(preflight.headers.get('access-control-allow-headers'), /\bdpop\b/)
  const { headers } = await postProven(server, machine, tokenPath, asking)
  t.match(headers.get('access-control-expose-headers'), /\bDPoP-Nonce\b/, '[rfc9449-8-nonce]')
  t.match(headers.get('access-control-expose-headers'), /\bWWW-Authenticate\b/)
})
