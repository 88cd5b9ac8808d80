import { type AssertionAlgorithm, makeClientKey } from '../../helpers/assertions.ts'
import { postProven, signProof, tokenPath } from '../../helpers/proofs.ts'
import { json } from '../../helpers/wire.ts'
import type { Exercise, Promises } from './promise.ts'
import { codeOf, type Subject } from './subject.ts'

const algorithms: readonly AssertionAlgorithm[] = ['ES256', 'PS256', 'EdDSA', 'Ed25519']

/** The response to a code with a proof of this algorithm. */
async function redeemWith(subject: Subject, alg: string): Promise<Response> {
  const { server, client } = subject
  const key = makeClientKey(algorithms.find((one) => one === alg) ?? 'RS256')
  const now = server.now()
  const proof = signProof(key, { url: server.issuer + tokenPath, now }, { header: { alg } })
  const fields = {
    grant_type: 'authorization_code',
    code: await codeOf(subject, client),
    redirect_uri: client.redirectUri,
    code_verifier: 'v'.repeat(43),
  }
  return postProven(server, client, tokenPath, fields, proof)
}

const proofs: Exercise = async (t, subject, alg) => {
  t.match(await json(await redeemWith(subject, alg)), { token_type: 'DPoP' })
}

/** What RFC 9449 adds to the metadata. */
export const boundTokenPromises: Promises = {
  dpop_signing_alg_values_supported: {
    every: proofs,
    unlisted: async (t, subject, listed) => {
      for (const alg of ['none', 'HS256', 'RS256', 'ES384', 'x']) {
        t.notOk(listed.includes(alg), alg)
        t.match(await json(await redeemWith(subject, alg)), { error: 'invalid_dpop_proof' }, alg)
      }
    },
  },
}
