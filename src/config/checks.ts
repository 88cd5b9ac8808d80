import { BlockList, isIP } from 'node:net'
import { ConfigError } from './error.ts'
import type { Config, ResourceEntry } from './schema.ts'

const loopbackHosts: readonly string[] = ['localhost', '127.0.0.1', '[::1]']
/** Handles carry instants as 32 bits (handle.ts): ten years keep clear of their end in 2106. */
const longestLifetimeSeconds = 315_576_000

/** Whether the issuer is reachable from this computer only. */
export function isLoopbackIssuer(issuer: string): boolean {
  return loopbackHosts.includes(new URL(issuer).hostname)
}

/** Asserts what the schema cannot say: settings that are well-formed each, and wrong together. */
export function assertConsistent(config: Config): void {
  assertIssuer(config.issuer)
  assertNetwork(config)
  assertLifetimes(config)
  assertScopes(config)
  assertResources(config)
  if (config.mode === 'serve' && config.secret === undefined) {
    throw new ConfigError(
      'secret: is missing; set LYCHGATE_SECRET or LYCHGATE_SECRET_FILE to at least 32 random characters',
    )
  }
}

/**
 * RFC 8414 §2, RFC 8414 §3.3 and OpenID Connect Discovery §3: clients compare the issuer character by character, so
 * there is one way to write it, without a fragment that the endpoints could take over, RFC 6749 §3.1. It is a
 * resource too, RFC 9728 §1.2. RFC 6749 §10.9: https, except where nothing leaves this computer.
 */
function assertIssuer(issuer: string): void {
  const url = URL.parse(issuer)
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new ConfigError('issuer: must be an absolute http or https URL, such as https://auth.example.com')
  }
  const canonical = url.origin + url.pathname.replace(/\/+$/, '')
  if (url.username !== '' || url.password !== '' || issuer !== canonical) {
    throw new ConfigError(
      `issuer: must be written without user name, query, fragment and trailing slash, in lower case: ${canonical}`,
    )
  }
  if (url.protocol === 'http:' && !isLoopbackIssuer(issuer)) {
    throw new ConfigError(
      `issuer: http is accepted on localhost, 127.0.0.1 and [::1] only; write https://${url.host}${url.pathname.replace(/\/+$/, '')}`,
    )
  }
}

function assertNetwork(config: Config): void {
  if (config.rateLimits === 'off' && !isLoopbackIssuer(config.issuer)) {
    throw new ConfigError('rateLimits: off is accepted on a loopback issuer only')
  }
  for (const [index, entry] of config.trustProxy.entries()) {
    if (isAddressRange(entry)) continue
    throw new ConfigError(
      `trustProxy.${index}: must be an IP address or CIDR range, such as 10.0.0.1 or 10.0.0.0/8`,
    )
  }
  if (config.store !== undefined && !/^(sqlite:.|postgres(ql)?:\/\/.)/.test(config.store)) {
    throw new ConfigError('store: must be sqlite:<file> or postgres://<user>@<host>/<database>')
  }
  for (const name of ['documentation', 'policy', 'terms'] as const) {
    const link = config.service[name]
    if (link !== undefined && !/^https?:$/.test(URL.parse(link)?.protocol ?? '')) {
      throw new ConfigError(`service.${name}: must be an absolute http or https URL`)
    }
  }
}

function isAddressRange(entry: string): boolean {
  const [address = '', bits, ...rest] = entry.split('/')
  const family = isIP(address)
  if (family === 0 || rest.length > 0) return false
  if (bits === undefined) return true
  if (!/^\d{1,3}$/.test(bits)) return false
  try {
    new BlockList().addSubnet(address, Number(bits), family === 4 ? 'ipv4' : 'ipv6')
    return true
  } catch {
    return false
  }
}

function assertLifetimes({ lifetimes, resources }: Config): void {
  for (const [name, value] of Object.entries(lifetimes)) {
    if (value > longestLifetimeSeconds) {
      throw new ConfigError(`lifetimes.${name}: must be at most ${longestLifetimeSeconds} (ten years)`)
    }
  }
  if (lifetimes.refreshTokenIdleSeconds > lifetimes.refreshTokenAbsoluteSeconds) {
    throw new ConfigError(
      'lifetimes.refreshTokenIdleSeconds: must not exceed lifetimes.refreshTokenAbsoluteSeconds',
    )
  }
  if (lifetimes.sessionIdleSeconds > lifetimes.sessionAbsoluteSeconds) {
    throw new ConfigError('lifetimes.sessionIdleSeconds: must not exceed lifetimes.sessionAbsoluteSeconds')
  }
  const accessTokens: [string, number | undefined][] = [
    ['lifetimes.accessTokenSeconds', lifetimes.accessTokenSeconds],
    ...resources.map((resource, index): [string, number | undefined] => [
      `resources.${index}.accessTokenSeconds`,
      resource.accessTokenSeconds,
    ]),
  ]
  for (const [option, value = 0] of accessTokens) {
    if (value <= lifetimes.refreshTokenIdleSeconds) continue
    throw new ConfigError(`${option}: must not exceed lifetimes.refreshTokenIdleSeconds`)
  }
}

function assertScopes({ scopes }: Config): void {
  const names = scopes.map(({ name }) => name)
  const repeated = names.findIndex((name, index) => names.indexOf(name) < index)
  if (repeated >= 0) throw new ConfigError(`scopes.${repeated}.name: ${names[repeated]} is listed twice`)
  if (!names.includes('openid')) throw new ConfigError('scopes: openid is missing from the catalogue')
}

/** RFC 8707 §2: a resource is an absolute URI without a fragment. */
function assertResources({ resources, scopes, issuer }: Config): void {
  const known = new Set(scopes.map(({ name }) => name))
  for (const [index, resource] of resources.entries()) {
    const option = `resources.${index}`
    if (!isResourceIdentifier(resource.identifier)) {
      throw new ConfigError(`${option}.identifier: must be an absolute URI without a fragment`)
    }
    const identifier = withoutEmptyPath(resource.identifier)
    if (identifier === issuer) {
      throw new ConfigError(
        `${option}.identifier: is the issuer itself, which is always a resource; remove the entry`,
      )
    }
    if (resources.findIndex((other) => withoutEmptyPath(other.identifier) === identifier) < index) {
      throw new ConfigError(`${option}.identifier: ${resource.identifier} is listed twice`)
    }
    assertResourceScopes(option, resource, known)
  }
}

function assertResourceScopes(option: string, { scopes }: ResourceEntry, known: ReadonlySet<string>): void {
  const unknown = scopes.findIndex((name) => !known.has(name))
  if (unknown < 0) return
  throw new ConfigError(`${option}.scopes.${unknown}: ${scopes[unknown]} is not in the scope catalogue`)
}

/** Clients write an empty path with or without its slash, RFC 3986 §6.2.3: both name one resource. */
function withoutEmptyPath(identifier: string): string {
  return identifier.replace(/^([a-z][a-z0-9+.-]*:\/\/[^/?#]+)\/$/i, '$1')
}

/** The characters of a URI, RFC 3986 §2, without the fragment's mark. */
function isResourceIdentifier(text: string): boolean {
  return /^[a-z][a-z0-9+.-]*:[\w\-.~:/?[\]@!$&'()*+,;=%]+$/i.test(text) && URL.canParse(text)
}
