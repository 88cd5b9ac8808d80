import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Confirmation } from '../domain/confirmation.ts'

/** A call with a token that is bound to a key. */
export interface BoundCall {
  readonly request: FastifyRequest
  /** For headers of the response, whether the call is rejected or not. */
  readonly reply: FastifyReply
  readonly token: string
  readonly confirmation: Confirmation
  /** The identifier of the API that is called. */
  readonly resource: string
}

/** An authentication scheme for tokens that are bound to a key of their client (RFC 7800 §3). */
export interface TokenScheme {
  /** Its name in the Authorization header. */
  readonly name: string
  /** The member of `cnf` whose tokens it opens; no other token is accepted under it. */
  readonly member: string
  /** Further members of its challenges, such as `algs`. */
  readonly challenge: Readonly<Record<string, string>>
  /**
   * Checks that the caller has the key.
   * @throws {OAuthError} The guard adds the challenge.
   */
  assertKey(call: BoundCall): Promise<void>
}
