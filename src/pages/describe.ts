/** How users, clients, resources and places are described on pages. */
import type { FastifyRequest } from 'fastify'
import { clientWords, resourceName } from '../domain/localized.ts'
import type { Client, Seconds, User } from '../domain/model.ts'
import { isLoopbackUri, privateUseScheme } from '../domain/redirect-uri.ts'
import type { Text } from '../domain/text.ts'
import type { Service } from '../feature/service.ts'
import { addressPrefix } from '../http/address-prefix.ts'
import { msg } from './i18n/i18n.ts'

/** A user, as pages name them. */
export interface NamedUser {
  readonly name: string
  readonly username: string
}

/** Returns the names of a user for a page. */
export function displayName({ claims, username }: User): NamedUser {
  return { name: String(claims['name'] ?? username), username }
}

/** A client, as pages describe it. */
export interface DescribedClient {
  readonly name?: string
  /** Whether the client registered itself: its name is self-asserted, RFC 7591 §5. */
  readonly selfRegistered: boolean
  /** The host that publishes it, if it is known by that. */
  readonly publishedBy?: string
  readonly registeredAgoSeconds: Seconds
  /** "from this computer", "from the network 203.0.113.0/24"; absent if it is not known. */
  readonly registeredFrom?: Text
}

/** Describes a client to the user of a request. */
export function describeClient(
  client: Client,
  request: FastifyRequest,
  service: Service,
  now: Seconds,
): DescribedClient {
  const { name } = clientWords(client, request.language)
  const from = placeOf(client.registeredFrom, request, service)
  return {
    ...(name !== undefined && { name }),
    selfRegistered: client.origin === 'registered' && client.published === undefined,
    ...(client.published && { publishedBy: client.published.host }),
    registeredAgoSeconds: ago(client.issuedAt, now),
    ...(from && { registeredFrom: from }),
  }
}

/** A page of a client: shown with its host, and never fetched. */
export interface ClientLink {
  readonly label: Text
  readonly url: string
  readonly host: string
}

/** Returns the pages that a client names for its users. */
export function clientLinks(client: Client, language: string): readonly ClientLink[] {
  const { clientUri, policyUri, tosUri } = clientWords(client, language)
  return [
    { label: msg('consent.website'), url: clientUri },
    { label: msg('consent.privacy'), url: policyUri },
    { label: msg('consent.terms'), url: tosUri },
  ].flatMap(({ label, url = '' }) => {
    const parsed = URL.parse(url)
    return parsed === null ? [] : [{ label, url, host: parsed.host }]
  })
}

/**
 * Returns where a user opens an app: where it starts a sign-in itself, OpenID Connect Core §4, or its home page. Only
 * https, or http on the computer of the browser; undefined for an app that an operator locked.
 */
export function startUrl(client: Client, language: string, issuer: string): URL | undefined {
  const initiateLoginUri = client.extra?.['initiate_login_uri']
  const { clientUri } = clientWords(client, language)
  const isSafe = (uri: unknown) => typeof uri === 'string' && (/^https:\/\//i.test(uri) || isLoopbackUri(uri))
  const uri = [initiateLoginUri, clientUri].find(isSafe)
  if (typeof uri !== 'string' || client.lockedAt !== undefined) return undefined
  const url = new URL(uri)
  if (uri === initiateLoginUri)
    url.search += `${url.search === '' ? '?' : '&'}${new URLSearchParams({ iss: issuer })}`
  return url
}

/** Where a client sends the user. */
export interface RedirectTarget {
  readonly redirectHost: string
  /** Whether the redirect goes to the computer of the browser. */
  readonly loopback: boolean
  /** The redirect opens an app of the device: `redirectHost` is its scheme. */
  readonly opensApp?: true
}

/** Returns the host of a redirect URI, and whether it is this computer, or the scheme of an app. */
export function redirectTarget(redirectUri: string): RedirectTarget {
  const scheme = privateUseScheme(redirectUri)
  if (scheme !== undefined) return { redirectHost: scheme, loopback: false, opensApp: true }
  return { redirectHost: new URL(redirectUri).host, loopback: isLoopbackUri(redirectUri) }
}

/** A resource of a request or grant, as pages name it. */
export interface NamedResource {
  readonly name: string
  readonly identifier: string
}

/** Names the resources of a request or grant; none if it is only this service. */
export function foreignResources(
  identifiers: readonly string[],
  { resources }: Service,
  language: string,
): readonly NamedResource[] {
  if (identifiers.every((identifier) => identifier === resources.own.identifier)) return []
  return identifiers.map((identifier) => {
    const resource = resources.find(identifier)
    return { identifier, name: resource ? resourceName(resource, language) : identifier }
  })
}

/** Returns how long ago an instant was, at least one second. */
export function ago(at: Seconds, now: Seconds): Seconds {
  return Math.max(1, now - at)
}

const loopbackPrefixes = ['127.0.0.0/24', '0:0:0:0::/64']

/**
 * Describes the place of an action to the user of a request; undefined if it is not known. On a service with https,
 * loopback is not a place: it is a proxy that the settings do not name, from which every request comes.
 * @param prefix See address-prefix.ts.
 */
export function placeOf(
  prefix: string | undefined,
  { ip }: FastifyRequest,
  { https }: Service,
): Text | undefined {
  if (prefix === undefined) return undefined
  if (loopbackPrefixes.includes(prefix)) return https ? undefined : msg('place.here')
  return prefix === addressPrefix(ip)
    ? msg('place.sameNetwork')
    : msg('place.network', { network: { host: prefix } })
}
