import type { ClaimsRequest, Scope } from '../domain/model.ts'

/** Who is calling, and what the token lets them do. */
export interface Access {
  /** `client`: the client acts for itself (RFC 6749 §4.4), and is the `sub`, too. */
  readonly kind: 'user' | 'client'
  readonly sub: string
  readonly clientId: string
  readonly scope: Scope
  readonly audience: readonly string[]
  /** Claims asked for one by one, OpenID Connect Core §5.5; known only to the authorization server itself. */
  readonly requestedClaims?: ClaimsRequest
}

/** Whether a user or the client itself is the subject of a token; no user has the identifier of a client. */
export function callerKind(sub: string, clientId: string): Access['kind'] {
  return sub === clientId ? 'client' : 'user'
}

/** A token that is not alive, and why: for the log alone, the caller is not told. */
export interface Refused {
  readonly refused: string
}

/**
 * Finds out what a token is worth; `Rejected` or undefined for one that is not alive. What it throws is answered as an
 * error of the server: an `OAuthError` as it says, anything else by the application.
 */
export type VerifyToken = (token: string) => Promise<Access | Refused | undefined>
