import type { AppDeps } from '../deps.ts'
import { idTokenClaims } from '../domain/claims.ts'
import type { TokenMembers } from '../domain/token-members.ts'
import { idTokenPayload } from './rules.ts'

/** Adds `id_token` to the token response of an OpenID Connect request, OpenID Connect Core §3.1.3.3 and §12.2. */
export function idTokens({
  service,
  store,
  keys,
}: Pick<AppDeps, 'service' | 'store' | 'keys'>): TokenMembers {
  return async ({ grant, client, accessToken, idTokenSeconds, now }) => {
    if (!grant.scope.includes('openid')) return {}
    const algorithm = client.idTokenSignedResponseAlg
    const user = grant.claims.idToken.length > 0 ? await store.find('user', grant.userId) : undefined
    const requested = idTokenClaims(user, grant.claims, service.scopeClaims)
    const facts = { issuer: service.issuer, grant, accessToken, algorithm, idTokenSeconds, requested }
    return { id_token: await keys.sign(algorithm, 'JWT', idTokenPayload(facts, now)) }
  }
}
