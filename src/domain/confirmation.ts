import { isObject } from './is-object.ts'

/**
 * The key of its client that a token is bound to, in the form of `cnf` (RFC 7800 §3.1): one member, whose name says
 * what its value is, such as `jkt`.
 */
export type Confirmation = Readonly<Record<string, string>>

/** The member of `extra` under which a grant stores the key that its code is bound to. */
export const grantConfirmation = 'cnf'

/** How a feature declares that it binds tokens, by the member of `cnf` that it uses. */
export interface DeclaredBinding {
  /**
   * The `token_type` of its tokens (RFC 6749 §7.1), which is also the authentication scheme that they are sent with.
   */
  readonly tokenType: string
  /** The header that tells a client more about proofs. Pages of other origins may read it. */
  readonly responseHeader: string
}

export type DeclaredBindings = Readonly<Record<string, DeclaredBinding>>

/**
 * Reads `cnf` of a token; undefined for a token that is not bound. Any other value binds to nothing that can be
 * proven.
 */
export function confirmationOf(cnf: unknown): Confirmation | undefined {
  if (cnf === undefined) return undefined
  const members = isObject(cnf) ? Object.entries(cnf) : []
  return Object.fromEntries(
    members.flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
  )
}

/** Returns the `token_type` of an access token: `Bearer`, unless it is bound. */
export function tokenTypeOf(confirmation: Confirmation | undefined, bindings: DeclaredBindings): string {
  if (confirmation === undefined) return 'Bearer'
  const found = Object.entries(bindings).find(([member]) => Object.hasOwn(confirmation, member))
  // A binding that this server no longer has: no scheme opens the token.
  return found?.[1].tokenType ?? 'N_A'
}

/** Whether two confirmations are about the same key. */
export function isSameKey(one: Confirmation, other: Confirmation | undefined): boolean {
  return other !== undefined && Object.entries(one).every(([name, value]) => other[name] === value)
}
