import type { FastifyPluginAsync } from 'fastify'
import { noteUse } from '../../clients/use.ts'
import type { AppDeps } from '../../deps.ts'
import { auditGrant } from '../../domain/audit.ts'
import { redeemCode } from '../../domain/authorization-code.ts'
import { check } from '../../domain/check.ts'
import { every } from '../../domain/parameters.ts'
import { tokenIssuer } from './token-issuer.ts'

/** RFC 6749 §4.1.3: the grant type `authorization_code`. */
export const authorizationCodeGrant: FastifyPluginAsync<AppDeps> = async (app, deps) => {
  const { config, service, store, keys, clock } = deps
  const issueTokens = tokenIssuer(app, deps)
  app.addGrantType('authorization_code', async (client, parameters, from) => {
    check(
      parameters.code !== undefined,
      'rfc6749-4.1.3-code-required',
      'invalid_request',
      'code is missing',
      { passed: 'code is present' },
    )
    const handle = await keys.open(parameters.code, 'code')
    check(handle !== undefined, 'rfc6749-4.1.3-code-valid', 'invalid_grant', 'the code is unknown', {
      passed: 'the code is genuine',
    })
    const now = clock()
    const redemption = {
      handle,
      client,
      redirectUri: parameters.redirect_uri,
      codeVerifier: parameters.code_verifier,
      resource: every(parameters, 'resource'),
    }
    const issued = await store.transact('grant', handle.grantId, (grant) => {
      const decision = redeemCode(grant, redemption, service.resources, config.lifetimes, now)
      return noteUse(auditGrant(decision, grant, { at: now, from }), client, now)
    })
    return issueTokens(issued, client, now)
  })
}
