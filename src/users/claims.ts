import fp from 'fastify-plugin'
import type { User, UserClaims } from '../domain/model.ts'

/** Returns claims about a user, by their names on the wire. */
export type ClaimsSource = (user: User) => UserClaims | Promise<UserClaims>

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Adds claims for UserInfo and ID Tokens. The scope catalogue decides which scope opens them; of two sources of one
     * claim the one added later wins.
     */
    addClaims(source: ClaimsSource): void
    claimsOf: ClaimsSource
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
  },
  { name: 'user-claims' },
)

async function joinedClaims(sources: readonly ClaimsSource[], user: User): Promise<UserClaims> {
  return Object.assign({}, ...(await Promise.all(sources.map((source) => source(user)))))
}
