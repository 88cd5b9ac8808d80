import { createRemoteJWKSet, errors, type JWTVerifyGetKey, jwtVerify } from 'jose'
import { confirmationOf } from '../domain/confirmation.ts'
import { OAuthError } from '../domain/errors.ts'
import { authenticationOf, callerKind, cannotVerify, type VerifyToken } from './access.ts'

export interface SignatureOptions {
  /** The authorization server's `issuer`, character for character. */
  readonly issuer: string
  /** Its `jwks_uri`. The keys are cached for ten minutes, and fetched again for an unknown key. */
  readonly jwksUri: string
}

/**
 * Verifies JWT access tokens by their signature, RFC 9068 §4, without asking the authorization server: `typ`, `iss`,
 * `exp`, and the algorithm the key was published for; the guard checks `aud`. A revoked token works until `exp`, by
 * the clock of this process: the leeway §4 allows is not given, an API that is out of step should set its clock.
 * @throws {OAuthError} `temporarily_unavailable` when the keys cannot be fetched.
 */
export function signedBy({ issuer, jwksUri }: SignatureOptions): VerifyToken {
  const findKey = fetchedFrom(jwksUri)
  return async (token) => {
    try {
      const { payload } = await jwtVerify(token, findKey, {
        issuer,
        typ: 'at+jwt',
        requiredClaims: ['exp', 'aud', 'sub', 'client_id', 'iat', 'jti'],
      })
      const { sub, client_id: clientId, scope, aud, cnf } = payload
      if (typeof sub !== 'string' || typeof clientId !== 'string') return undefined
      const confirmation = confirmationOf(cnf)
      return {
        kind: callerKind(sub, clientId),
        sub,
        clientId,
        scope: typeof scope === 'string' && scope !== '' ? scope.split(' ') : [],
        audience: [aud ?? []].flat(),
        ...authenticationOf(payload),
        ...(confirmation && { confirmation }),
      }
    } catch (error) {
      // jose throws for an invalid token; a missing key set is not the fault of the token.
      if (error instanceof OAuthError) throw error
      return undefined
    }
  }
}

function fetchedFrom(jwksUri: string): JWTVerifyGetKey {
  const findKey = createRemoteJWKSet(new URL(jwksUri))
  return async (header, token) => {
    try {
      return await findKey(header, token)
    } catch (error) {
      if (isAboutTheToken(error)) throw error
      throw cannotVerify(error)
    }
  }
}

function isAboutTheToken(error: unknown): boolean {
  return [errors.JWKSNoMatchingKey, errors.JWKSMultipleMatchingKeys, errors.JOSENotSupported].some(
    (kind) => error instanceof kind,
  )
}
