import type { FastifyPluginCallback } from 'fastify'
import fp from 'fastify-plugin'
import type { AppDeps } from './deps.ts'
import { type Access, type GuardOptions, guard, type Refused } from './guard/guard.ts'
import { tokenReader } from './http/token-reader.ts'

/** How the guard treats callers without a token, see `GuardOptions`. */
export type OwnGuardOptions = Pick<GuardOptions, 'anonymous' | 'formToken'>

/** The guard of this server's own API: it reads tokens where they are stored instead of asking over HTTP. */
export function ownGuard(
  deps: Pick<AppDeps, 'keys' | 'store' | 'service' | 'clock'>,
): FastifyPluginCallback<OwnGuardOptions> {
  const { resources, resourceMetadataUrl: resourceMetadata } = deps.service
  const readToken = tokenReader(deps)
  const verifyToken = async (text: string): Promise<Access | Refused> => {
    const facts = await readToken(text, deps.clock())
    if (facts.kind === 'dead') return { refused: facts.why }
    if (facts.kind === 'refresh') return { refused: 'it is a refresh token' }
    const { grant, scope, resource: audience } = facts
    return { sub: grant.userId, clientId: grant.clientId, scope, audience, requestedClaims: grant.claims }
  }
  return fp<OwnGuardOptions>(async (app, options) => {
    await app.register(guard, {
      ...options,
      verifyToken,
      resource: resources.own.identifier,
      resourceMetadata,
    })
  })
}
