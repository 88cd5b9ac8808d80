import type { HandleKeys } from '../domain/handle.ts'
import type { SigningAlgorithm } from '../domain/model.ts'

/** A public key as it is published, RFC 7517. */
export interface PublicJwk {
  readonly kid: string
  readonly kty: string
  readonly alg: SigningAlgorithm
  readonly use: 'sig'
  readonly [member: string]: unknown
}

/** The server's keys, ready to use. */
export interface KeyRing {
  /** What handles are sealed and opened with. */
  readonly handles: HandleKeys
  /** Algorithms there is an active signing key for. */
  readonly algorithms: readonly SigningAlgorithm[]
  /** The JWK Set of every published signing key, RFC 7517 §5: public members only. */
  jwks(): { readonly keys: readonly PublicJwk[] }
  /** A compact JWS over the claims by the active key of this algorithm; the header is alg, kid and typ only. */
  sign(
    algorithm: SigningAlgorithm,
    type: 'JWT' | 'at+jwt',
    claims: Readonly<Record<string, unknown>>,
  ): Promise<string>
  /** The claims of a JWS of this type signed by one of our keys with that key's own algorithm; undefined otherwise. Time claims are the caller's to judge. */
  verify(jws: string, type: 'JWT' | 'at+jwt'): Promise<Readonly<Record<string, unknown>> | undefined>
}
