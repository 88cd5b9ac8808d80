import {
  type Ending,
  type TokenFacts,
  verifyAccessToken,
  verifyRefreshToken,
  whyInactive,
} from '../domain/access-token.ts'
import type { AccessPolicy } from '../domain/current-grant.ts'
import { endingOf, grantIdOfJwt, tokenIdOfJwt, verifyJwtAccessToken } from '../domain/jwt-access-token.ts'
import type { GrantOfToken, Seconds } from '../domain/model.ts'
import type { AppDeps } from '../feature/deps.ts'
import { grantOfTokenKey } from '../storage/store.ts'

/** An invalid token, and why: only for the log, never for the response. */
export interface DeadToken {
  readonly kind: 'dead'
  readonly why: string
}

/** Returns the current state of a token. */
export type TokenReader = (token: string, now: Seconds) => Promise<TokenFacts | DeadToken>

/**
 * A reader of every kind of token this server issues, whatever a hint says, RFC 7662 §2.1: authenticated first, then
 * at most one point read.
 */
export function tokenReader({
  keys,
  store,
  service,
}: Pick<AppDeps, 'keys' | 'store' | 'service'>): TokenReader {
  return async (token, now) => {
    const handle = await keys.open(token, 'access', 'refresh')
    if (handle !== undefined) {
      const grant = await store.find('grantOfToken', grantOfTokenKey(handle.grantId, handle.tokenId))
      const facts =
        handle.kind === 'access'
          ? verifyAccessToken(handle, grant, service, now)
          : verifyRefreshToken(handle, grant, service, now)
      return facts ?? dead(handle, grant, service, now)
    }
    const claims = looksSigned(token) ? await keys.verify(token, 'at+jwt') : undefined
    const grantId = claims && grantIdOfJwt(claims)
    if (claims === undefined || grantId === undefined || claims['iss'] !== service.issuer) {
      return foreign
    }
    const grant = await store.find('grantOfToken', grantOfTokenKey(grantId, tokenIdOfJwt(claims)))
    return verifyJwtAccessToken(claims, grant, service, now) ?? dead(endingOf(claims), grant, service, now)
  }
}

const foreign: DeadToken = { kind: 'dead', why: 'no access token of this server reads like this' }

function dead(token: Ending, grant: GrantOfToken | undefined, policy: AccessPolicy, now: Seconds): DeadToken {
  const { why } = whyInactive(token, grant, policy, now) ?? { why: 'its grant does not know it' }
  return { kind: 'dead', why }
}

function looksSigned(token: string): boolean {
  return token.startsWith('eyJ') && token.length < 8192
}
