import fp from 'fastify-plugin'
import type { Issued } from '../../domain/authorization-code.ts'
import { lifetimesFor } from '../../domain/client-lifetimes.ts'
import { type Confirmation, tokenTypeOf } from '../../domain/confirmation.ts'
import { sealHandle, tokenIdOf } from '../../domain/handle.ts'
import { jwtAccessTokenPayload } from '../../domain/jwt-access-token.ts'
import type { Client, Grant, Seconds } from '../../domain/model.ts'
import { refreshHandle } from '../../domain/refresh-token.ts'
import { type AccessTokenTerms, accessTokenTerms, scopeAt } from '../../domain/resource.ts'
import { formatScope } from '../../domain/scope.ts'
import type { Members, TokenResponse } from '../../feature/contributions.ts'
import type { Needs } from '../../feature/deps.ts'
import { tokenClaimsOf } from '../../feature/service.ts'
import type { RulesOfClient } from './grant-rules.ts'

/** The client and the time of a token response. */
export interface Issuance {
  readonly client: Client
  readonly now: Seconds
  /** The key that the request proved; undefined: bearer tokens. */
  readonly confirmation: Confirmation | undefined
  /** Absent: as configured. */
  readonly idTokenSeconds?: Seconds
}

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Turns a committed grant into the tokens of one response, RFC 6749 §5.1. It stores nothing: handles are derived
     * from the grant, and a response that is lost costs a retry.
     */
    issueTokens(issued: Issued, issuance: Issuance): Promise<TokenResponse>
  }
}

/** Decorates `app.issueTokens`. */
export const tokenIssuer = fp<Needs<'config' | 'service' | 'keys' | 'declared'>>(
  async (app, { config, service, keys, declared }) => {
    app.decorate('issueTokens', async ({ grant, terms }, issuance) => {
      const { client, now, confirmation } = issuance
      const { idTokenSeconds = lifetimesFor(client, config.lifetimes).idTokenSeconds } = issuance
      const handle = sealAccessToken(grant, terms, now, confirmation)
      const accessToken =
        terms.tokenFormat === 'opaque'
          ? handle
          : await signAccessToken(handle, grant, client, terms, now, confirmation)
      // A confidential client proves itself whenever it refreshes; its key may change.
      const refreshKey = client.authenticationMethod === 'none' ? confirmation : undefined
      const refreshToken =
        grant.refreshExpiresAt === undefined
          ? undefined
          : sealRefreshToken(grant, refreshKey, app.grantRulesOf(client))
      const response = {
        access_token: accessToken,
        token_type: tokenTypeOf(confirmation, declared.tokenBindings),
        expires_in: terms.seconds,
        ...(refreshToken !== undefined && { refresh_token: refreshToken }),
        scope: formatScope(terms.scope),
      }
      const issued = { grant, client, accessToken, idTokenSeconds, now }
      const adding = app.seams.tokenMembers.collect(issued)
      return adding === undefined ? response : { ...response, ...(await adding) }
    })

    const sealAccessToken = (
      grant: Grant,
      terms: AccessTokenTerms,
      now: Seconds,
      confirmation: Confirmation | undefined,
    ): string => {
      const expiresAt = now + terms.seconds
      const narrowing = isWhole(grant, terms) ? undefined : { scope: terms.scope, resource: terms.resource }
      const { id: grantId, seq, secret } = grant
      return sealHandle(
        { kind: 'access', grantId, seq, issuedAt: now, expiresAt, narrowing, confirmation },
        keys.handles.current,
        secret,
      )
    }

    /** Signs the JWT that stands for a handle, RFC 9068 §2. */
    const signAccessToken = async (
      handle: string,
      grant: Grant,
      client: Client,
      terms: AccessTokenTerms,
      now: Seconds,
      confirmation: Confirmation | undefined,
    ): Promise<string> => {
      const claims = jwtAccessTokenPayload(service.issuer, grant, terms, tokenIdOf(handle), now, confirmation)
      const { accessTokenAlgorithm = 'RS256' } = app.grantRulesOf(client)
      return keys.sign(accessTokenAlgorithm, 'at+jwt', await withAdded(claims, grant, client))
    }

    /** Adds the claims of features. None of them replaces one of the protocol. */
    const withAdded = async (claims: Members, grant: Grant, client: Client): Promise<Members> => {
      const more = { ...(await addedClaims(grant, client)), ...tokenClaimsOf(service, grant, client) }
      return { ...more, ...claims }
    }

    // Of APIs that read their tokens themselves; those of others are looked up, and contain nothing.
    app.seams.previews.add(({ grant, client, now }) => {
      const readers = service.allResources.filter(
        ({ tokenFormat, scopes }) => tokenFormat === 'jwt' && grant.scope.some((name) => scopes.has(name)),
      )
      const contentFor = async (identifier: string) => {
        const atReader = { ...grant, resource: [identifier] }
        const terms = accessTokenTerms(atReader, grant.scope, [], service.resources, client)
        const { jti: _, ...claims } = jwtAccessTokenPayload(service.issuer, grant, terms, '', now)
        return [`access_token ${identifier}`, await withAdded(claims, grant, client)] as const
      }
      if (readers.length === 0) return undefined
      return Promise.all(readers.map(({ identifier }) => contentFor(identifier))).then(Object.fromEntries)
    })

    /** What features add to a JWT, RFC 9068 §2.2.3.1; a token without a user has nothing of a user. */
    const addedClaims = async (grant: Grant, client: Client) => {
      const { userId, clientId, scope, claims: requested } = grant
      if (userId === undefined) return {}
      return app.seams.grantedClaims.collect({
        target: 'access_token',
        userId,
        clientId,
        client,
        scope,
        requested,
      })
    }

    /** Whether the token may do all its grant may: then it need not say so. */
    const isWhole = (grant: Grant, terms: AccessTokenTerms): boolean => {
      if (terms.resource.length !== grant.resource.length) return false
      if (terms.scope.length === grant.scope.length) return true
      return terms.scope.length === scopeAt(grant.scope, grant.resource, service.resources).length
    }

    const sealRefreshToken = (
      grant: Grant,
      confirmation: Confirmation | undefined,
      rules: RulesOfClient,
    ): string => {
      const handle = refreshHandle(grant, rules)
      const bound = confirmation === undefined ? handle : { ...handle, confirmation }
      return sealHandle(bound, keys.handles.current, grant.secret)
    }
  },
  { name: 'token-issuer', dependencies: ['grant-rules'] },
)
