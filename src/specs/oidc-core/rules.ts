import { contextClassOf } from '../../domain/authentication-context.ts'
import { accessTokenHash } from '../../domain/jws.ts'
import type { Grant, Seconds, SigningAlgorithm } from '../../domain/model.ts'

/** The inputs of an ID Token. */
export interface IdTokenFacts {
  readonly issuer: string
  readonly grant: Grant
  /** The user of the grant. */
  readonly sub: string
  readonly accessToken: string
  readonly algorithm: SigningAlgorithm
  readonly idTokenSeconds: Seconds
  /** What features say about the sign-in. */
  readonly signIn: Readonly<Record<string, string>>
  /** Claims of the user, requested for the ID Token or added by features. */
  readonly claims: Readonly<Record<string, unknown>>
}

/**
 * The claims of an ID Token, OpenID Connect Core §2, and after a refresh OpenID Connect Core §12.2: the same iss,
 * sub, aud and auth_time, a new iat, and no nonce: redeeming the code forgets it.
 */
export function idTokenPayload(facts: IdTokenFacts, now: Seconds): Readonly<Record<string, unknown>> {
  const { grant } = facts
  const acr = grant.acr ?? contextClassOf(grant.methods)
  return {
    ...facts.claims,
    ...facts.signIn,
    iss: facts.issuer,
    sub: facts.sub,
    aud: grant.clientId,
    exp: now + facts.idTokenSeconds,
    iat: now,
    ...(grant.authTimeOwed && { auth_time: grant.authenticatedAt }),
    ...(acr !== undefined && { acr }),
    ...(grant.methods.length > 0 && { amr: grant.methods }),
    ...(grant.nonce !== undefined && { nonce: grant.nonce }),
    at_hash: accessTokenHash(facts.accessToken, facts.algorithm),
  }
}
