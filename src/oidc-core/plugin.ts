import type { FastifyPluginAsync } from 'fastify'
import type { AppDeps } from '../deps.ts'
import { contextClasses } from '../domain/authentication-context.ts'
import { signingAlgorithms } from '../domain/key-term.ts'
import { idTokens } from './id-tokens.ts'
import { userInfo } from './userinfo.ts'

/**
 * OpenID Connect Core §2 and OpenID Connect Core §5.3: ID Tokens and UserInfo, and what a client may expect of them:
 * subjects are public, OpenID Connect Core §8.
 */
export const openidConnect: FastifyPluginAsync<AppDeps> = async (app, deps) => {
  app.advertise({
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: signingAlgorithms,
    claim_types_supported: ['normal'],
    acr_values_supported: contextClasses,
  })
  app.addTokenMembers(idTokens(deps))
  await app.register(async (guarded) => {
    // There is no user without a token.
    await guarded.register(deps.guard, { anonymous: 'challenge', formToken: true })
    await guarded.register(userInfo, deps)
  })
}
