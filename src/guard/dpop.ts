import { createHmac } from 'node:crypto'
import {
  assertFirstUse,
  assertNonce,
  assertProof,
  assertProofOfToken,
  noncesBy,
  proofAlgorithms,
  proofFields,
  readProof,
  type UsedProof,
  useOfProof,
} from '../domain/dpop-proof.ts'
import type { Seconds } from '../domain/model.ts'
import type { TokenScheme } from '../http/token-scheme.ts'
import { systemClock } from '../system.ts'

export interface DpopOptions {
  /** Demands a nonce in each proof (RFC 9449 §9), made with this secret: all processes of an API have the same one. */
  readonly nonceSecret?: string
  /**
   * Remembers a proof until it is too old (RFC 9449 §11.1); returns false if it is known. Absent: this process
   * remembers. An API of several processes needs a common memory, or a nonce.
   */
  readonly remember?: (proof: UsedProof) => boolean | Promise<boolean>
}

/** Accepts tokens that are bound to a key of their client, RFC 9449 §7: each call needs a proof by that key. */
export function dpop({ nonceSecret, remember = rememberHere() }: DpopOptions = {}): TokenScheme {
  const nonces =
    nonceSecret === undefined
      ? undefined
      : noncesBy((window) =>
          createHmac('sha256', nonceSecret).update(window).digest('base64url').slice(0, 22),
        )
  return {
    name: 'DPoP',
    member: 'jkt',
    challenge: { algs: proofAlgorithms.join(' ') },
    async assertKey({ request, reply, token, confirmation, resource }) {
      const now = systemClock()
      if (nonces !== undefined) reply.header('dpop-nonce', nonces.current(now))
      const proof = readProof(proofFields(request.raw.rawHeaders))
      const [path = ''] = (request.raw.url ?? '').split('?', 1)
      assertProof(proof, { method: request.method, url: new URL(resource).origin + path, now })
      if (nonces !== undefined) assertNonce(proof, nonces, now)
      assertProofOfToken(proof, token, confirmation)
      if (nonces === undefined) assertFirstUse(await remember(useOfProof(proof)), proof)
    },
  }
}

const mostRemembered = 100_000

/** Remembers the proofs of one process: only those of valid tokens come here. */
function rememberHere(): (proof: UsedProof) => boolean {
  const used = new Map<string, Seconds>()
  return ({ id, expiresAt }) => {
    const now = systemClock()
    for (const [old, end] of used) {
      if (end > now && used.size < mostRemembered) break
      used.delete(old)
    }
    if (used.has(id)) return false
    used.set(id, expiresAt)
    return true
  }
}
