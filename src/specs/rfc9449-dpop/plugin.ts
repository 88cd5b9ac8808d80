import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Confirmation, grantConfirmation } from '../../domain/confirmation.ts'
import { insertUse } from '../../domain/decision.ts'
import {
  assertFirstUse,
  assertNonce,
  assertProof,
  assertProofOfToken,
  noncesBy,
  type Proof,
  proofAlgorithms,
  proofFields,
  proofMemory,
  readProof,
  useOfProof,
} from '../../domain/dpop-proof.ts'
import type { ProofUse, TokenBinding } from '../../feature/contributions.ts'
import type { Plugin } from '../../feature/deps.ts'
import { insertOnce } from '../../storage/store.ts'
import { assertBoundKey, assertMayOmitProof, extraOfProof, keyOf, readKey } from './rules.ts'

/**
 * RFC 9449: proofs at the token endpoint (RFC 9449 §5), at the push endpoint (RFC 9449 §10.1) and at the APIs of this
 * server (RFC 9449 §7). What a proof must be is decided in domain/dpop-proof.ts, which the guard of other applications
 * uses, too. Nonces (RFC 9449 §8) are pseudonyms of the time: every node makes and accepts the same ones.
 */
export const dpop: Plugin<'config' | 'store' | 'keys' | 'clock' | 'service'> = async (
  app,
  { config, service, store, keys, clock },
) => {
  app.seams.metadata.add({ dpop_signing_alg_values_supported: proofAlgorithms })
  const { origin } = new URL(service.issuer)
  const nonces = noncesBy((window) => keys.pseudonym('dpop-nonce', window))
  const isNewHere = proofMemory()
  const needsNonce = { token: config.dpop.nonce !== 'off', api: config.dpop.nonce === 'always' }

  /** Makes the checks of a request's proof that do not depend on a token. */
  function verify(request: FastifyRequest, reply: FastifyReply, withNonce: boolean): Proof {
    const now = clock()
    if (withNonce) reply.header('dpop-nonce', nonces.current(now))
    const proof = readProof(proofFields(request.raw.rawHeaders))
    const [path = ''] = request.url.split('?', 1)
    assertProof(proof, { method: request.method, url: origin + path, now })
    if (withNonce) assertNonce(proof, nonces, now)
    return proof
  }

  /**
   * Uses a proof. The record decides between nodes, and after a restart. A `jti` that comes again in a proof of another
   * second has another record: only the process that saw the first notices. A nonce makes both unnecessary, RFC 9449
   * §11.1.
   */
  async function use(proof: Proof, withNonce: boolean, later?: (use: ProofUse) => void): Promise<void> {
    if (withNonce) return
    const used = useOfProof(proof)
    const write = insertUse(used)
    const assertFirst = (isFirst: boolean) => assertFirstUse(isFirst, proof)
    if (!isNewHere(used, clock())) assertFirst(false)
    if (later === undefined) assertFirst(await insertOnce(store, write))
    else later({ write, assertFirst })
  }

  const proven = async (
    ...[request, reply, token, later]: Parameters<TokenBinding['prove']>
  ): Promise<Confirmation> => {
    const proof = verify(request, reply, needsNonce.token)
    if (token !== undefined) assertProofOfToken(proof, token, { jkt: proof.jkt })
    await use(proof, needsNonce.token, later)
    return { jkt: proof.jkt }
  }

  async function provenAtPush(request: FastifyRequest, reply: FastifyReply) {
    const proof = verify(request, reply, needsNonce.token)
    await use(proof, needsNonce.token)
    return extraOfProof(proof)
  }

  app.seams.tokenBindings.add('jkt', {
    prove: (request, ...others) =>
      request.headers['dpop'] === undefined ? undefined : proven(request, ...others),
    assertMayOmit: assertMayOmitProof,
    assertKey: assertBoundKey,
    scheme: {
      challenge: { algs: proofAlgorithms.join(' ') },
      async assertKey({ request, reply, token, confirmation }) {
        const proof = verify(request, reply, needsNonce.api)
        assertProofOfToken(proof, token, confirmation)
        await use(proof, needsNonce.api)
      },
    },
  })

  app.seams.pushReaders.add((request, reply) =>
    request.headers['dpop'] === undefined ? undefined : provenAtPush(request, reply),
  )
  app.seams.requestReaders.add(readKey)
  app.seams.approvals.add(({ request }) => {
    const jkt = keyOf(request.extra)
    return jkt === undefined ? undefined : { extra: { [grantConfirmation]: { jkt } } }
  })
}
