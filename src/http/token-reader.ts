import type { AppDeps } from '../deps.ts'
import { type TokenFacts, verifyAccessToken, verifyRefreshToken } from '../domain/access-token.ts'
import { openHandle } from '../domain/handle.ts'
import { grantIdOfJwt, verifyJwtAccessToken } from '../domain/jwt-access-token.ts'
import type { Seconds } from '../domain/model.ts'

/** Finds out what a token is worth now; undefined for anything that is not alive. */
export type TokenReader = (token: string, now: Seconds) => Promise<TokenFacts | undefined>

/** A reader of every kind of token this server issues: authenticated first, then at most one point read. */
export function tokenReader({
  keys,
  store,
  service,
}: Pick<AppDeps, 'keys' | 'store' | 'service'>): TokenReader {
  return async (token, now) => {
    const handle = openHandle(keys.handles, token, 'access', 'refresh')
    if (handle?.kind === 'access') {
      return verifyAccessToken(handle, await store.find('grant', handle.grantId), service.resources, now)
    }
    if (handle !== undefined)
      return verifyRefreshToken(handle, await store.find('grant', handle.grantId), now)
    const claims = looksSigned(token) ? await keys.verify(token, 'at+jwt') : undefined
    const grantId = claims && grantIdOfJwt(claims)
    if (claims === undefined || grantId === undefined || claims['iss'] !== service.issuer) return undefined
    return verifyJwtAccessToken(claims, await store.find('grant', grantId), now)
  }
}

function looksSigned(token: string): boolean {
  return token.startsWith('eyJ') && token.length < 8192
}
