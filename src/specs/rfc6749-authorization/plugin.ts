import fp from 'fastify-plugin'
import { noAuthentication } from '../../domain/client-authentication.ts'
import type { Needs } from '../../feature/deps.ts'
import { approval } from './approval.ts'
import { authorizationRequests } from './authorization-requests.ts'
import { authorizationResponse } from './authorization-response.ts'
import { secretMethods } from './client-secret.ts'
import { grantRules } from './grant-rules.ts'
import { addGrantTypes } from './grant-types.ts'
import { tokenIssuer } from './issue-tokens.ts'
import { tokenBindings } from './token-bindings.ts'

/**
 * What RFC 6749 itself adds to the seams of the core: client authentication with a secret
 * (RFC 6749 §2.3.1), the authorization code and the refresh token. The application registers its two endpoints,
 * authorize.ts among the pages and token.ts among what clients call.
 */
export const authorizationFramework = fp<
  Needs<'config' | 'store' | 'keys' | 'clock' | 'random' | 'service' | 'declared'>
>(
  async (app, deps) => {
    app.seams.clientAuthentication.add('none', noAuthentication)
    const { post, basic } = secretMethods(deps)
    app.seams.clientAuthentication.add('client_secret_post', post)
    app.seams.clientAuthentication.add('client_secret_basic', basic)
    await app.register(authorizationResponse, deps)
    await app.register(authorizationRequests, deps)
    await app.register(grantRules, deps)
    await app.register(approval, deps)
    await app.register(tokenBindings, deps)
    await app.register(tokenIssuer, deps)
    app.seams.metadata.add({ grant_types_supported: Object.keys(deps.declared.grantTypes) })
    addGrantTypes(app, deps)
  },
  { name: 'authorization-framework' },
)
