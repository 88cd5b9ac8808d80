import { check, recordCheck } from './check.ts'
import { lifetimesFor } from './client-lifetimes.ts'
import { mapDefined } from './map-defined.ts'
import type { Client, Grant, Scope, Seconds } from './model.ts'

/** An API that tokens can be issued for, RFC 8707 §2. The service's own API is always one. */
export interface Resource {
  readonly identifier: string
  readonly name: string
  /** `name#de` and its like, RFC 9728 §2.1. */
  readonly localized?: Readonly<Record<string, string>>
  readonly scopes: ReadonlySet<string>
  readonly tokenFormat: 'opaque' | 'jwt'
  readonly accessTokenSeconds: Seconds
}

/** The resources of this server; `own` is the service's API, the default audience. */
export interface Resources {
  readonly own: Resource
  readonly identifiers: readonly string[]
  /** By identifier, and by its spelling with a slash where the path is empty, RFC 3986 §6.2.3. */
  find(identifier: string): Resource | undefined
}

/** The resources and the scope of an access token. */
export interface AccessTokenTerms {
  readonly scope: Scope
  readonly resource: readonly string[]
  readonly tokenFormat: 'opaque' | 'jwt'
  readonly seconds: Seconds
}

/** Whether a text identifies a resource, RFC 8707 §2: an absolute URI without a fragment. */
export function isResourceIdentifier(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:[\w\-.~:/?[\]@!$&'()*+,;=%]+$/i.test(text) && URL.canParse(text)
}

/** Clients write an empty path with or without its slash, RFC 3986 §6.2.3: both name one resource. */
export function withoutEmptyPath(identifier: string): string {
  return identifier.replace(/^([a-z][a-z0-9+.-]*:\/\/[^/?#]+)\/$/i, '$1')
}

/** Looks resources up by the identifiers clients send. */
export function indexResources(own: Resource, others: readonly Resource[]): Resources {
  const all = [own, ...others]
  const index = new Map<string, Resource>()
  for (const resource of all) {
    index.set(resource.identifier, resource)
    // URL parsers add the slash of an empty path: the MCP SDK sends it so.
    if (/^[a-z][a-z0-9+.-]*:\/\/[^/?#]+$/.test(resource.identifier))
      index.set(`${resource.identifier}/`, resource)
  }
  return {
    own,
    identifiers: all.map(({ identifier }) => identifier),
    find: (identifier) => index.get(identifier),
  }
}

/**
 * The identifiers of the requested resources, RFC 8707 §2; the service's own API when none was requested,
 * RFC 8707 §2.1.
 * @throws {OAuthError} `invalid_target` for anything but an absolute URI without fragment that this server knows.
 */
export function parseResource(requested: readonly string[], resources: Resources): readonly string[] {
  if (requested.length === 0) {
    recordCheck(
      'rfc8707-2.1-omitted-default',
      'no resource: the API of this server',
      resources.own.identifier,
    )
    return [resources.own.identifier]
  }
  const identifiers = new Set<string>()
  for (const text of requested) {
    check(
      /^[a-z][a-z0-9+.-]*:[^\s#]+$/i.test(text),
      'rfc8707-2-absolute-no-fragment',
      'invalid_target',
      'resource must be an absolute URI without a fragment',
      { received: text, passed: 'resource is an absolute URI' },
    )
    const resource = resources.find(text)
    check(
      resource !== undefined,
      'rfc8707-2-unknown-invalid-target',
      'invalid_target',
      'resource is not an API of this server (the option resources)',
      { stored: resources.identifiers, received: text, passed: 'resource is an API of this server' },
    )
    identifiers.add(resource.identifier)
  }
  return [...identifiers]
}

/** The members of `scope` that at least one of these resources understands, RFC 8707 §2.2. */
export function scopeAt(scope: Scope, identifiers: readonly string[], resources: Resources): Scope {
  return scope.filter((name) => identifiers.some((id) => resources.find(id)?.scopes.has(name)))
}

/**
 * As `scopeAt`, but rejects a request whose scope would be empty.
 * @throws {OAuthError} `invalid_target`
 */
export function requireScopeAt(scope: Scope, identifiers: readonly string[], resources: Resources): Scope {
  const understood = scopeAt(scope, identifiers, resources)
  check(
    understood.length > 0,
    'rfc8707-2.2-invalid-combination',
    'invalid_target',
    'no requested scope is understood by the requested resource (its scopes in the option resources)',
    { stored: identifiers, received: scope, passed: 'the resource understands the scope' },
  )
  return understood
}

/**
 * What the access token of this token request is for: a subset of the grant's resources, RFC 8707 §2.2, and the part
 * of its scope they understand.
 * @param scope The requested scope, already part of the grant's.
 * @throws {OAuthError} `invalid_target` for a resource the grant does not reach, or tokens no single format fits.
 */
export function accessTokenTerms(
  grant: Pick<Grant, 'resource'>,
  scope: Scope,
  requested: readonly string[],
  resources: Resources,
  client: Pick<Client, 'extra'> = {},
): AccessTokenTerms {
  const identifiers = requested.length === 0 ? grant.resource : parseResource(requested, resources)
  for (const identifier of identifiers) {
    check(
      grant.resource.includes(identifier),
      'rfc8707-2.2-not-granted',
      'invalid_target',
      'resource is not part of the grant',
      { stored: grant.resource, received: identifier, passed: 'resource is part of the grant' },
    )
  }
  const reached = mapDefined(identifiers, (identifier) => resources.find(identifier))
  const tokenFormat = reached.some((resource) => resource.tokenFormat === 'jwt') ? 'jwt' : 'opaque'
  check(
    tokenFormat !== 'jwt' || reached.length <= 1,
    'rfc8707-2.2-subset-at-token',
    'invalid_target',
    'name one resource at a time: these take tokens of their own',
    { stored: identifiers, passed: 'one access token fits the requested resources' },
  )
  return {
    scope: requireScopeAt(scope, identifiers, resources),
    resource: reached.map((resource) => resource.identifier),
    tokenFormat,
    seconds: Math.min(...reached.map((resource) => lifetimesFor(client, resource).accessTokenSeconds)),
  }
}
