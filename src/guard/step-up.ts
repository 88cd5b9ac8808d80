import { type BearerChallenge, bearerChallenge } from '../domain/bearer.ts'
import { recordCheck } from '../domain/check.ts'
import { OAuthError } from '../domain/errors.ts'
import type { Seconds } from '../domain/model.ts'
import type { Access } from './access.ts'

declare module '../domain/errors.ts' {
  interface FeatureErrors {
    /** RFC 9470 §3: the sign-in is too old, or of another class. */
    insufficient_user_authentication: 401
  }
}

/** What an operation demands of the sign-in, RFC 9470 §3. */
export interface AuthenticationDemand {
  /** Any of these authentication context classes, the preferred one first. */
  readonly acrValues?: readonly string[]
  /** How long ago the user may have signed in. */
  readonly maxAgeSeconds?: Seconds
}

/**
 * Checks how and when the user signed in, RFC 9470 §3. The challenge has what the client sends as `acr_values` and
 * `max_age` of its next authorization request, RFC 9470 §4.
 * @throws {OAuthError} `insufficient_user_authentication`
 */
export function assertAuthentication(
  { authentication = {} }: Access,
  { acrValues = [], maxAgeSeconds }: AuthenticationDemand,
  now: Seconds,
  { scheme, resourceMetadata }: Pick<BearerChallenge, 'scheme' | 'resourceMetadata'>,
): void {
  const { acr, authTime } = authentication
  const isOfClass = acrValues.length === 0 || (acr !== undefined && acrValues.includes(acr))
  const isRecent = maxAgeSeconds === undefined || (authTime !== undefined && now - authTime <= maxAgeSeconds)
  if (isOfClass && isRecent) {
    recordCheck('rfc9470-3-challenge', 'the sign-in is recent, and of a demanded class', acr, acrValues)
    return
  }
  const description = isOfClass
    ? 'the sign-in is too old for this; sign in again'
    : 'this needs another kind of sign-in'
  const challenge = bearerChallenge({
    error: 'insufficient_user_authentication',
    description,
    resourceMetadata,
    scheme: {
      name: scheme?.name ?? 'Bearer',
      challenge: {
        ...(acrValues.length > 0 && { acr_values: acrValues.join(' ') }),
        ...(maxAgeSeconds !== undefined && { max_age: String(maxAgeSeconds) }),
        ...scheme?.challenge,
      },
    },
  })
  throw new OAuthError('insufficient_user_authentication', description, {
    rule: 'rfc9470-3-challenge',
    status: 401,
    stored: isOfClass ? authTime : acr,
    received: isOfClass ? maxAgeSeconds : acrValues,
    headers: { 'www-authenticate': challenge },
  })
}
