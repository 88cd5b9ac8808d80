import fp from 'fastify-plugin'
import type { Grant, User, UserClaims } from '../domain/model.ts'

/** Returns claims about a user, by their names on the wire. */
export type ClaimsSource = (user: User) => UserClaims | Promise<UserClaims>

/** Returns a claim about the sign-in behind a grant; undefined if the grant has none. */
export type SignInClaim = (grant: Grant) => string | undefined

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Adds claims for UserInfo and ID Tokens. The scope catalogue decides which scope opens them; of two sources of one
     * claim the one added later wins.
     */
    addClaims(source: ClaimsSource): void
    claimsOf: ClaimsSource
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
      const [first, ...others] = sources
      return first !== undefined && others.length === 0 ? first(user) : joinedClaims(sources, user)
    })
    const ofSignIn = new Map<string, SignInClaim>()
    app.decorate('signInClaims', ofSignIn)
    app.decorate('addSignInClaim', (name, claim) => void ofSignIn.set(name, claim))
  },
  { name: 'user-claims' },
)

async function joinedClaims(sources: readonly ClaimsSource[], user: User): Promise<UserClaims> {
  return Object.assign({}, ...(await Promise.all(sources.map((source) => source(user)))))
}
