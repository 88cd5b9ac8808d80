import type { FastifyReply, FastifyRequest } from 'fastify'
import { bearerChallenge, type NamedScheme } from '../domain/bearer.ts'
import type { Confirmation } from '../domain/confirmation.ts'
import { OAuthError } from '../domain/errors.ts'

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
export interface TokenScheme extends NamedScheme {
  /**
   * Checks that the caller has the key.
   * @throws {OAuthError} The guard adds the challenge.
   */
  assertKey(call: BoundCall): Promise<void>
}

/**
 * Checks that the caller has the key of its token.
 * @throws {OAuthError} with a challenge, RFC 9449 §7.1.
 */
export async function assertKey(
  scheme: TokenScheme,
  call: BoundCall,
  resourceMetadata?: string,
): Promise<void> {
  try {
    await scheme.assertKey(call)
  } catch (error) {
    if (!(error instanceof OAuthError) || error.status >= 500) throw error
    const { code, message, detail } = error
    const challenge = bearerChallenge({ scheme, error: code, description: message, resourceMetadata })
    const headers = { ...detail.headers, 'www-authenticate': challenge }
    throw new OAuthError(code, message, { ...detail, status: 401, headers })
  }
}
