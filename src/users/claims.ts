import fp from 'fastify-plugin'
import { mapDefined } from '../domain/map-defined.ts'
import type { ClaimsRequest, Client, Grant, Scope, User, UserClaims } from '../domain/model.ts'

/** Returns claims about a user, by their names on the wire. */
export type ClaimsSource = (user: User) => UserClaims

/** Returns a claim about the sign-in behind a grant; undefined if the grant has none. */
export type SignInClaim = (grant: Grant) => string | undefined

/** Where claims go, and what the client was granted. */
export interface ClaimsUse {
  readonly target: 'userinfo' | 'id_token' | 'access_token'
  readonly userId: string
  readonly clientId: string
  /** Absent: it is gone. */
  readonly client?: Client
  /** All that the user granted. */
  readonly scope: Scope
  /** The claims that were requested one by one, as far as the user agreed. */
  readonly requested: ClaimsRequest
}

/**
 * Returns claims for one use, by their names on the wire; undefined if it has none. It decides by the scope and the
 * client whether there are any, at once and before it reads anything.
 */
export type GrantedClaims = (use: ClaimsUse) => Promise<Readonly<Record<string, unknown>>> | undefined

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Adds claims for UserInfo and ID Tokens. The scope catalogue decides which scope opens them; of two sources of one
     * claim the one added later wins.
     */
    addClaims(source: ClaimsSource): void
    claimsOf: ClaimsSource
    /**
     * Adds claims that depend on the client and its grant, to UserInfo, ID Tokens and JWT access tokens. They replace
     * no claim of the protocol, such as `sub`.
     */
    addGrantedClaims(claims: GrantedClaims): void
    /** Returns what all of them add to one use. */
    grantedClaims(use: ClaimsUse): ReturnType<GrantedClaims>
    /** Adds a claim about the sign-in to every ID Token, such as `sid`. */
    addSignInClaim(name: string, claim: SignInClaim): void
    readonly signInClaims: ReadonlyMap<string, SignInClaim>
  }
}

/** The extension point for claims about users. */
export const userClaims = fp(
  async (app) => {
    const sources: ClaimsSource[] = []
    app.decorate('addClaims', (source) => void sources.push(source))
    app.decorate('claimsOf', (user) => {
      const claims = {}
      for (const source of sources) Object.assign(claims, source(user))
      return claims
    })
    const granted: GrantedClaims[] = []
    app.decorate('addGrantedClaims', (claims) => void granted.push(claims))
    app.decorate('grantedClaims', (use) => {
      const pending = mapDefined(granted, (claims) => claims(use))
      return pending.length === 0 ? undefined : joined(pending)
    })
    const ofSignIn = new Map<string, SignInClaim>()
    app.decorate('signInClaims', ofSignIn)
    app.decorate('addSignInClaim', (name, claim) => void ofSignIn.set(name, claim))
  },
  { name: 'user-claims' },
)

async function joined(
  pending: readonly NonNullable<ReturnType<GrantedClaims>>[],
): Promise<Readonly<Record<string, unknown>>> {
  return Object.assign({}, ...(await Promise.all(pending)))
}
