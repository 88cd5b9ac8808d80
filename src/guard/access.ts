import type { Confirmation } from '../domain/confirmation.ts'
import { OAuthError } from '../domain/errors.ts'
import type { ClaimsRequest, Client, Scope, Seconds, User } from '../domain/model.ts'

/** The caller, and what the token allows. */
export interface Access {
  /** `client`: the client acts for itself (RFC 6749 §4.4), and is the `sub`, too. */
  readonly kind: 'user' | 'client'
  readonly sub: string
  readonly clientId: string
  readonly scope: Scope
  readonly audience: readonly string[]
  /** The key of the client that the token is bound to, RFC 7800 §3.1; absent: a bearer token. */
  readonly confirmation?: Confirmation
  /** How the user signed in. Absent: the client acts for itself, or the verifier does not say. */
  readonly authentication?: Authentication
  /** Claims requested individually, OpenID Connect Core §5.5; known only to the authorization server itself. */
  readonly requestedClaims?: ClaimsRequest
  /** The id of a token that the user made, and no client got: its `clientId` is empty. See the admin API. */
  readonly personalTokenId?: string
  /** The user and the client, where the authorization server itself read them together with the token. */
  readonly owners?: Promise<readonly [User | undefined, Client | undefined]>
}

/** How and when a user signed in, RFC 9470 §6. */
export interface Authentication {
  /** The authentication context class. */
  readonly acr?: string
  /** In seconds since the epoch. */
  readonly authTime?: Seconds
}

/** Reads `acr` and `auth_time` of a token or its introspection, RFC 9470 §6; nothing if it has neither. */
export function authenticationOf(members: object): Pick<Access, 'authentication'> {
  const { acr, auth_time: authTime }: { readonly acr?: unknown; readonly auth_time?: unknown } = members
  const authentication = {
    ...(typeof acr === 'string' && { acr }),
    ...(typeof authTime === 'number' && { authTime }),
  }
  return Object.keys(authentication).length === 0 ? {} : { authentication }
}

/** Whether a user or the client itself is the subject of a token; no user has the identifier of a client. */
export function callerKind(sub: string, clientId: string): Access['kind'] {
  return sub === clientId ? 'client' : 'user'
}

/** The reason why a token is not valid. It is logged, and not part of the response. */
export interface Rejected {
  readonly rejected: string
}

/**
 * Verifies a token; returns `Rejected` or undefined for one that is not valid. If it throws an `OAuthError`, the guard
 * responds with that; any other error is left to the application.
 */
export type VerifyToken = (token: string) => Promise<Access | Rejected | undefined>

/** Makes the error for a token that cannot be verified now. The request is rejected, and not served as anonymous. */
export function cannotVerify(cause: unknown): OAuthError {
  return new OAuthError(
    'temporarily_unavailable',
    'the access token cannot be verified now; try again shortly',
    { rule: 'lychgate-token-verifiable', headers: { 'retry-after': '1' }, cause },
  )
}
