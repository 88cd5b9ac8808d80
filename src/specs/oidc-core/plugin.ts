import { attributesOf } from '../../domain/attributes.ts'
import { contextClasses } from '../../domain/authentication-context.ts'
import { idTokenClaims, idTokenClaimsOf, requestedByScope } from '../../domain/claims.ts'
import { lifetimesFor } from '../../domain/client-lifetimes.ts'
import { offeredAlgorithms } from '../../domain/key-term.ts'
import type { IssuedTokens } from '../../feature/contributions.ts'
import type { Plugin } from '../../feature/deps.ts'
import { idTokenPayload } from './rules.ts'
import { userInfo } from './userinfo.ts'

/**
 * OpenID Connect Core §2 and OpenID Connect Core §5.3: ID Tokens and UserInfo, and what a client may expect of them:
 * subjects are public, OpenID Connect Core §8.
 */
export const openidConnect: Plugin<'config' | 'store' | 'keys' | 'service' | 'declared' | 'guard'> = async (
  app,
  deps,
) => {
  const { service, store, keys } = deps
  app.seams.metadata.add({
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: offeredAlgorithms(deps.config.keys),
    claim_types_supported: ['normal'],
    acr_values_supported: contextClasses,
  })
  app.seams.userClaims.add(({ claims }) => claims)
  const { attributes } = deps.config.accounts
  // Custom attributes are claims that no scope of the shipped catalogue opens.
  if (attributes.length > 0) app.seams.userClaims.add((user) => attributesOf(attributes, user))

  /** Returns what an ID Token has, and what signs it; undefined: the grant has none. */
  const idTokenOf = ({ grant, client, accessToken, idTokenSeconds, now }: IssuedTokens) => {
    const { userId: sub, clientId, scope } = grant
    // An ID Token is for the client at which the user signed in.
    if (sub === undefined || grant.exchangedFrom !== undefined || !scope.includes('openid')) return undefined
    const { idTokenAlgorithms, thinIdToken } = app.grantRulesOf(client)
    const algorithm = keys.usable(client.idTokenSignedResponseAlg, idTokenAlgorithms?.[0])
    if (idTokenAlgorithms?.includes(algorithm) === false) return undefined
    const isThin = idTokenClaimsOf(client) === 'none' || (thinIdToken && client.idTokenClaims === 'default')
    const requested = isThin ? grant.claims : requestedByScope(grant.claims, scope, service.scopeClaims)
    const payload = async () => {
      const user = requested.idToken.length > 0 ? await store.find('user', sub) : undefined
      const about = user && { claims: app.seams.userClaims.collect(user) ?? {} }
      const use = { target: 'id_token', userId: sub, clientId, client, scope, requested } as const
      const granting = app.seams.grantedClaims.collect(use)
      const granted = granting && (await granting)
      const claims = { ...granted, ...idTokenClaims(about, requested, service.scopeClaims) }
      const signIn = app.seams.signInClaims.collect(grant) ?? {}
      const tokens = { accessToken, algorithm, idTokenSeconds }
      const facts = { issuer: service.issuer, grant, sub, claims, signIn, ...tokens }
      return idTokenPayload(facts, now)
    }
    return { algorithm, payload }
  }

  // The ID Token of the token response, OpenID Connect Core §3.1.3.3 and §12.2.
  app.seams.tokenMembers.add('id_token', (issued) => {
    const idToken = idTokenOf(issued)
    if (idToken === undefined) return undefined
    const { algorithm, payload } = idToken
    return payload().then(async (claims) => ({ id_token: await keys.sign(algorithm, 'JWT', claims) }))
  })
  app.seams.previews.add(({ client, ...granted }) => {
    const { idTokenSeconds } = lifetimesFor(client, deps.config.lifetimes)
    const idToken = idTokenOf({ ...granted, client, idTokenSeconds, accessToken: '' })
    return idToken?.payload().then(({ at_hash: _, ...claims }) => ({ id_token: claims }))
  })

  await app.register(async (guarded) => {
    // A token without a user has no user to return.
    await guarded.register(deps.guard, { anonymous: 'challenge', formToken: true, readsOwners: true })
    await guarded.register(userInfo, deps)
  })
}
