import { bearerChallenge, type NamedScheme } from '../domain/bearer.ts'
import { OAuthError } from '../domain/errors.ts'
import type { BoundCall } from '../feature/contributions.ts'

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
