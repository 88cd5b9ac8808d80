import {
  assertFirstUse,
  assertNonce,
  assertProof,
  assertProofOfToken,
  noncesBy,
  proofAlgorithms,
  proofFields,
  proofMemory,
  readProof,
  useOfProof,
} from '../domain/dpop-proof.ts'
import { hmacText } from '../domain/hmac.ts'
import type { SingleUse } from '../domain/record.ts'
import type { TokenScheme } from '../http/token-scheme.ts'
import { systemClock } from '../system/system.ts'

export interface DpopOptions {
  /** Demands a nonce in each proof (RFC 9449 §9), made with this secret: all processes of an API have the same one. */
  readonly nonceSecret?: string
  /**
   * Remembers a proof until it is too old (RFC 9449 §11.1); returns false if it is known. Absent: this process
   * remembers. An API of several processes needs a common memory, or a nonce.
   */
  readonly remember?: (proof: SingleUse) => boolean | Promise<boolean>
}

/** Accepts tokens that are bound to a key of their client, RFC 9449 §7: each call needs a proof by that key. */
export function dpop({ nonceSecret, remember }: DpopOptions = {}): TokenScheme {
  const isNewHere = proofMemory()
  const nonces =
    nonceSecret === undefined ? undefined : noncesBy((window) => hmacText(nonceSecret, window).slice(0, 22))
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
      if (nonces !== undefined) return
      const use = useOfProof(proof)
      assertFirstUse(await (remember?.(use) ?? isNewHere(use, now)), proof)
    },
  }
}
