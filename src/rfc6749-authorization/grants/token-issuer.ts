import type { FastifyInstance } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import type { Issued } from '../../domain/authorization-code.ts'
import { sealHandle, tokenIdOf } from '../../domain/handle.ts'
import { jwtAccessTokenPayload } from '../../domain/jwt-access-token.ts'
import type { Client, Grant, Seconds } from '../../domain/model.ts'
import { type Access, scopeAt } from '../../domain/resource.ts'
import { formatScope } from '../../domain/scope.ts'
import type { TokenAnswer } from '../token.ts'

/**
 * Turns a committed grant into the tokens of one response, RFC 6749 §5.1, with the members that features add. It runs after
 * the commit and stores nothing: handles are derived from the grant, and a response that is lost costs a retry.
 */
export function tokenIssuer(
  app: FastifyInstance,
  { config, service, keys }: Pick<AppDeps, 'config' | 'service' | 'keys'>,
) {
  return async ({ grant, access }: Issued, client: Client, now: Seconds): Promise<TokenAnswer> => {
    const accessToken = await sealAccessToken(grant, access, now)
    const refreshToken = client.grantTypes.includes('refresh_token') ? sealRefreshToken(grant) : undefined
    const { idTokenSeconds } = config.lifetimes
    const more = await app.makeTokenMembers({ grant, client, accessToken, idTokenSeconds, now })
    return {
      access_token: accessToken,
      token_type: 'Bearer',
      expires_in: access.seconds,
      ...(refreshToken !== undefined && { refresh_token: refreshToken }),
      scope: formatScope(access.scope),
      ...more,
    }
  }

  async function sealAccessToken(grant: Grant, access: Access, now: Seconds): Promise<string> {
    const expiresAt = now + access.seconds
    const narrowing = isWhole(grant, access) ? undefined : { scope: access.scope, resource: access.resource }
    const contents = { kind: 'access', grantId: grant.id, seq: grant.seq, issuedAt: now, expiresAt } as const
    const handle = sealHandle(
      { ...contents, ...(narrowing && { narrowing }) },
      keys.handles.current,
      grant.secret,
    )
    if (access.tokenFormat === 'opaque') return handle
    const claims = jwtAccessTokenPayload(service.issuer, grant, access, tokenIdOf(handle), now)
    return keys.sign('RS256', 'at+jwt', claims)
  }

  /** Whether the token may do all its grant may: then it need not say so. */
  function isWhole(grant: Grant, access: Access): boolean {
    const whole = scopeAt(grant.scope, grant.resource, service.resources)
    return access.resource.length === grant.resource.length && access.scope.length === whole.length
  }

  function sealRefreshToken(grant: Grant): string {
    const { rotatedAt = 0, refreshExpiresAt = 0 } = grant
    const contents = { grantId: grant.id, seq: grant.seq, issuedAt: rotatedAt, expiresAt: refreshExpiresAt }
    return sealHandle({ kind: 'refresh', ...contents }, keys.handles.current, grant.secret)
  }
}
