import type { TSchema } from '@sinclair/typebox'
import type { ClientDeclarations, GrantTypeDeclaration } from '../clients/members.ts'
import type { Config } from '../config/schema.ts'
import { indexScopeClaims } from '../domain/claims.ts'
import type { Beginnings, ScopePolicy } from '../domain/current-grant.ts'
import { localizedMembers } from '../domain/localized.ts'
import type { Grant, GrantedClient } from '../domain/model.ts'
import { indexResources, type Resource } from '../domain/resource.ts'
import { type AddedScopes, type CatalogueScope, completeCatalogue } from '../domain/scope-catalogue.ts'
import { wellKnownUrl } from '../domain/well-known.ts'

/** What the server derives from its configuration, once at start-up. */
export interface Service extends ScopePolicy {
  readonly issuer: string
  /** The path of the issuer, '' when it has none: every endpoint lives below it. */
  readonly prefix: string
  readonly https: boolean
  /**
   * The relying party of passkeys, Web Authentication Level 3 §5.4.2: a host name; absent if the host is an IP
   * address.
   */
  readonly relyingParty?: { readonly id: string; readonly origin: string }
  /** The scope catalogue, with the scopes that every server has. */
  readonly catalogue: readonly CatalogueScope[]
  /** The own API is the first. */
  readonly allResources: readonly Resource[]
  readonly tokenClaims: Readonly<Record<string, DeclaredTokenClaim>>
  /** The URL of the metadata of the service's own API, RFC 9728 §3.1: every challenge names it. */
  readonly resourceMetadataUrl: string
}

/** A claim of access tokens that follows from the grant and its client as it is now. */
export interface DeclaredTokenClaim {
  readonly schema: TSchema
  /** Returns its value; undefined: the token has none. */
  of(grant: Pick<Grant, 'extra'>, client: Pick<GrantedClient, 'extra'>): unknown
}

/** Scopes that features declare, by their names. */
export type DeclaredScopes = Readonly<
  Record<
    string,
    AddedScopes[string] & {
      /** Whether a server with this configuration has it. Absent: every server has. */
      readonly isOffered?: (config: Config) => boolean
    }
  >
>

/**
 * Returns the scope catalogue of a configuration, with the scopes that every server has and the scopes of features.
 */
export function catalogueOf(config: Config, declared: DeclaredScopes = {}): readonly CatalogueScope[] {
  const offered = Object.entries(declared).flatMap(([name, { isOffered, ...scope }]) =>
    (isOffered?.(config) ?? true) ? [[name, scope] as const] : [],
  )
  const scopes = config.scopes.map((scope) => {
    const own = config.accounts.attributes.flatMap((one) => (one.scope === scope.name ? one.name : []))
    return own.length === 0 ? scope : { ...scope, claims: [...(scope.claims ?? []), ...own] }
  })
  return completeCatalogue(scopes, Object.fromEntries(offered))
}

/** Returns the names of the scopes that a client may have without an operator. */
export function openScopesOf(catalogue: readonly CatalogueScope[]): readonly string[] {
  return catalogue.flatMap(({ name, operatorOnly }) => (operatorOnly ? [] : [name]))
}

/** The service that a configuration describes, with the scopes, grant types and claims that features add. */
export function describeService(
  config: Config,
  {
    scopes = {},
    grantTypes = {},
    tokenClaims = {},
  }: { scopes?: DeclaredScopes; tokenClaims?: Service['tokenClaims'] } & Partial<
    Pick<ClientDeclarations, 'grantTypes'>
  > = {},
): Service {
  const url = new URL(config.issuer)
  const prefix = url.pathname === '/' ? '' : url.pathname
  const catalogue = catalogueOf(config, scopes)
  const own: Resource = {
    identifier: config.issuer,
    name: config.service.name,
    scopes: new Set(catalogue.map(({ name }) => name)),
    tokenFormat: 'opaque',
    accessTokenSeconds: config.lifetimes.accessTokenSeconds,
  }
  const others = config.resources.map((entry) => ({
    identifier: entry.identifier,
    name: entry.name,
    localized: localizedMembers(entry, ['name']),
    scopes: new Set(entry.scopes),
    tokenFormat: entry.tokenFormat,
    accessTokenSeconds: entry.accessTokenSeconds ?? config.lifetimes.accessTokenSeconds,
  }))
  return {
    issuer: config.issuer,
    prefix,
    https: url.protocol === 'https:',
    ...(hasPasskeys(config) && { relyingParty: { id: url.hostname, origin: url.origin } }),
    catalogue,
    scopes: own.scopes,
    openScopes: new Set(openScopesOf(catalogue)),
    userScopes: new Set(catalogue.flatMap(({ name, access }) => (access === 'identity' ? [name] : []))),
    grantTypes: beginningsOf(grantTypes),
    scopeClaims: indexScopeClaims(catalogue),
    resources: indexResources(own, others),
    allResources: [own, ...others],
    tokenClaims,
    resourceMetadataUrl: wellKnownUrl(config.issuer, 'oauth-protected-resource'),
  }
}

/**
 * Returns the service of a configuration whose scopes and resources change. What follows from them is described again
 * for another revision; take it from the service at each use.
 */
export function liveService(describe: () => Service, revision: () => number): Service {
  let [described, at] = [describe(), revision()]
  const now = () => {
    if (revision() !== at) [described, at] = [describe(), revision()]
    return described
  }
  return {
    ...described,
    get catalogue() {
      return now().catalogue
    },
    get scopes() {
      return now().scopes
    },
    get openScopes() {
      return now().openScopes
    },
    get userScopes() {
      return now().userScopes
    },
    get scopeClaims() {
      return now().scopeClaims
    },
    get resources() {
      return now().resources
    },
    get allResources() {
      return now().allResources
    },
  }
}

/** Returns the claims of an access token that follow from its grant and its client; undefined if there are none. */
export function tokenClaimsOf(
  { tokenClaims }: Pick<Service, 'tokenClaims'>,
  grant: Pick<Grant, 'extra'>,
  client: Pick<GrantedClient, 'extra'>,
): Readonly<Record<string, unknown>> | undefined {
  let claims: Record<string, unknown> | undefined
  for (const name in tokenClaims) {
    const value = tokenClaims[name]?.of(grant, client)
    if (value !== undefined) claims = { ...claims, [name]: value }
  }
  return claims
}

function beginningsOf(declared: Readonly<Record<string, GrantTypeDeclaration>>): Beginnings {
  const named = (passes: (declaration: GrantTypeDeclaration) => boolean | undefined) =>
    Object.entries(declared).flatMap(([name, declaration]) => (passes(declaration) ? [name] : []))
  return {
    withRedirect: ['authorization_code'],
    withoutRedirect: named(({ withoutUser, withoutRedirect }) => withoutRedirect && !withoutUser),
    fromToken: named(({ fromToken }) => fromToken),
    withoutUser: named(({ withoutUser }) => withoutUser),
  }
}

/** Whether passkeys can be created for the issuer: its host is a name, Web Authentication Level 3 §5.4.2. */
export function hasPasskeys({ issuer }: Pick<Config, 'issuer'>): boolean {
  return !/^[\d.]+$|^\[/.test(URL.parse(issuer)?.hostname ?? '')
}
