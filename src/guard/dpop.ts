import {
  assertFirstUse,
  assertNonce,
  assertProof,
  assertProofOfToken,
  noncesBy,
  type ProofWindow,
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
  /**
   * How far `iat` of a proof may be from the clock of this process, in either direction: from 1 to 300 seconds. Absent:
   * 70 seconds in the past and 10 in the future. The profile of DPoP for MCP has 300.
   */
  readonly iatWindowSeconds?: number
}

const longestWindow = 300

/**
 * Accepts tokens that are bound to a key of their client, RFC 9449 §7: each call needs a proof by that key.
 * @throws {RangeError} for a window that is none.
 */
export function dpop({ nonceSecret, remember, iatWindowSeconds }: DpopOptions = {}): TokenScheme {
  const iatWindow = windowOf(iatWindowSeconds)
  const isNewHere = proofMemory(iatWindow)
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
      const url = new URL(resource).origin + path
      assertProof(proof, { method: request.method, url, now, window: iatWindow })
      if (nonces !== undefined) assertNonce(proof, nonces, now)
      assertProofOfToken(proof, token, confirmation)
      if (nonces !== undefined) return
      const use = useOfProof(proof, iatWindow)
      assertFirstUse(await (remember?.(use) ?? isNewHere(use, now)), proof)
    },
  }
}

function windowOf(seconds: number | undefined): ProofWindow | undefined {
  if (seconds === undefined) return undefined
  if (!(seconds >= 1 && seconds <= longestWindow))
    throw new RangeError(`iatWindowSeconds must be from 1 to ${longestWindow}`)
  return { pastSeconds: seconds, aheadSeconds: seconds }
}
