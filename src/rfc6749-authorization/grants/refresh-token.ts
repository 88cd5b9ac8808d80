import type { FastifyPluginAsync } from 'fastify'
import { noteUse } from '../../clients/use.ts'
import type { AppDeps } from '../../deps.ts'
import { auditGrant } from '../../domain/audit.ts'
import { check } from '../../domain/check.ts'
import { every } from '../../domain/parameters.ts'
import { refresh } from '../../domain/refresh-token.ts'
import { tokenIssuer } from './token-issuer.ts'

/** RFC 6749 §6: the grant type `refresh_token`, with rotation on every use (RFC 9700 §4.14.2). */
export const refreshTokenGrant: FastifyPluginAsync<AppDeps> = async (app, deps) => {
  const { config, service, store, keys, clock } = deps
  const issueTokens = tokenIssuer(app, deps)
  app.addGrantType('refresh_token', async (client, parameters, from) => {
    check(
      parameters.refresh_token !== undefined,
      'rfc6749-6-missing-refresh-param',
      'invalid_request',
      'refresh_token is missing',
      { passed: 'refresh_token is present' },
    )
    const handle = await keys.open(parameters.refresh_token, 'refresh')
    check(
      handle !== undefined,
      'rfc6749-6-invalid-refresh',
      'invalid_grant',
      'the refresh token is unknown',
      { passed: 'the refresh token is genuine' },
    )
    const now = clock()
    const request = { handle, client, scope: parameters.scope, resource: every(parameters, 'resource') }
    const issued = await store.transact('grant', handle.grantId, (grant) => {
      const decision = refresh(grant, request, service.resources, config.lifetimes, now)
      return noteUse(auditGrant(decision, grant, { at: now, from }), client, now)
    })
    return issueTokens(issued, client, now)
  })
}
