import t from 'tap'
import { exchange, type Fields, obtainCode, pkce } from '../helpers/flow.ts'
import { addClient, assertRejected, startFlow } from '../helpers/wire.ts'

const { server, client, agent } = await startFlow(t)

function codeFor(verifier: string, fields: Fields = {}) {
  const { challenge } = pkce(verifier)
  return obtainCode(server, client, { agent, fields: { code_challenge: challenge, ...fields } })
}

t.test(
  '[rfc7636-4.1-verifier-syntax] a verifier outside the grammar is rejected even if its hash matches',
  async (t) => {
    const wrong = [
      'a'.repeat(42),
      'a'.repeat(129),
      `${'a'.repeat(42)}+`,
      `${'a'.repeat(42)}=`,
      `${'a'.repeat(42)} `,
    ]
    for (const verifier of wrong) {
      const code = await codeFor(verifier)
      const response = await exchange(server, client, code, { code_verifier: verifier })
      await assertRejected(t, response, 'invalid_grant', 400, verifier)
    }
    for (const verifier of ['a'.repeat(43), 'a'.repeat(128), `${'-._~'.repeat(10)}Az9`]) {
      const response = await exchange(server, client, await codeFor(verifier), { code_verifier: verifier })
      t.equal(response.status, 200, verifier)
    }
  },
)

t.test(
  '[rfc7636-4.6-verify-s256] [rfc7636-4.6-mismatch-invalid-grant] only the verifier of the challenge redeems the code',
  async (t) => {
    const { verifier, challenge } = pkce()
    const code = await codeFor(verifier)
    const first = verifier.startsWith('A') ? 'B' : 'A'
    for (const wrong of [challenge, first + verifier.slice(1), verifier.toLowerCase(), `${verifier}A`]) {
      const response = await exchange(server, client, code, { code_verifier: wrong })
      const about = `[rfc7636-4.6-mismatch-invalid-grant] ${wrong}`
      await assertRejected(t, response, 'invalid_grant', 400, about)
    }
    t.equal((await exchange(server, client, code, { code_verifier: verifier })).status, 200)
  },
)

t.test('[rfc7636-4.6-verify-s256] the example of RFC 7636 appendix B works', async (t) => {
  const verifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk'
  const code = await codeFor('', { code_challenge: 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM' })
  t.equal((await exchange(server, client, code, { code_verifier: verifier })).status, 200)
})

t.test(
  '[rfc9700-2.1.1-downgrade] [oauth21-3.2.4-verifier-without-challenge] a verifier is rejected if the authorization request had no challenge',
  async (t) => {
    const exempt = await addClient(server, { pkce: 'optional' })
    const without = { code_challenge: undefined, code_challenge_method: undefined }
    const code = await obtainCode(server, exempt, { agent, fields: without })
    const downgraded = await exchange(server, exempt, code)
    await assertRejected(t, downgraded, 'invalid_request', 400, '[rfc9700-2.1.1-downgrade]')
    t.equal((await exchange(server, exempt, code, { code_verifier: undefined })).status, 200)
  },
)
