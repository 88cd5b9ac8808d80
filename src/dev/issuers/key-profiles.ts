import { randomBytes } from 'node:crypto'
import { type Alter, inJson, inTokens, set } from './changes.ts'
import { repeatsTheProof, signsTheProofByHmac, usesTheTokenWithoutAProof } from './criteria.ts'
import { type Profile, profilesOf } from './profile.ts'

/** What concerns clients that bind their tokens to a key (RFC 9449). */
export const keyClients: readonly Profile[] = profilesOf(repeatsTheProof, {
  'dpop-nonce-endless': {
    ledger: 'rfc9449-8-nonce',
    title: 'the token endpoint demands another DPoP nonce each time',
    sound: 'repeats the request once with the nonce, and gives up then, RFC 9449 §8',
    alter: demandAnotherNonce(),
  },
  'dpop-hmac-only': {
    clause: 'RFC 9449 §4.2',
    ledger: 'rfc9449-5.1-metadata',
    title: 'the metadata offers only HMAC algorithms for DPoP proofs',
    sound: 'stops, or signs with the algorithm of its key: alg must not be symmetric, RFC 9449 §4.2',
    fooledWhen: signsTheProofByHmac,
    alter: inJson('metadata', set({ dpop_signing_alg_values_supported: ['HS256', 'none'] })),
  },
  'dpop-token-as-bearer': {
    ledger: 'rfc9449-5-token-type',
    title: 'token_type is Bearer in the response to a request with a DPoP proof',
    sound: 'discards the response, or sends the token with a proof all the same, RFC 9449 §5',
    fooledWhen: usesTheTokenWithoutAProof,
    alter: inTokens('client_credentials', (members, { step }) =>
      step.sent.proofNonce === undefined ? undefined : { ...members, token_type: 'Bearer' },
    ),
  },
})

function demandAnotherNonce(): Alter {
  return ({ step, reply }) => {
    if (step.place !== 'token' || step.sent.proofNonce === undefined) return undefined
    reply.code(400).header('content-type', 'application/json; charset=utf-8')
    reply.header('dpop-nonce', randomBytes(16).toString('base64url'))
    return JSON.stringify({ error: 'use_dpop_nonce', error_description: 'the nonce of the proof is over' })
  }
}
