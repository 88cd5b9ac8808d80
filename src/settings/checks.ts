import { BlockList, isIP } from 'node:net'
import { suggestion } from '../config/error.ts'
import { type AttributeEntry, type Config, exampleSecret, type ResourceEntry } from '../config/schema.ts'
import { attributeFault, isAttributeName } from '../domain/attributes.ts'
import { isGroupName } from '../domain/group.ts'
import { isLocalized } from '../domain/localized.ts'
import { isResourceIdentifier, withoutEmptyPath } from '../domain/resource.ts'
import { howToEncode, isUnambiguousUrl } from '../domain/server-url.ts'
import { features } from '../features.ts'
import { keyPolicy } from '../keys/key-policy.ts'
import { textFaults } from '../pages/i18n/faults.ts'
import { languagesOf } from '../pages/i18n/i18n.ts'
import { accentFault } from '../pages/theme/accent.ts'
import { schemaAt } from './options.ts'

const loopbackHosts: readonly string[] = ['localhost', '127.0.0.1', '[::1]']
/** Handles contain instants of 32 bits (handle.ts), which end in 2106: ten years stay clear of that. */
const longestLifetimeSeconds = 315_576_000
/** A handle names its key in one byte; some ids are left for an operator's own rotations. */
const mostHandleKeys = 200

/**
 * Returns whether the issuer is reachable from this computer only. Names below `.localhost` are its own, RFC 6761 §6.3:
 * browsers never look them up, and a container network may give one to its server.
 */
export function isLoopbackIssuer(issuer: string): boolean {
  const host = URL.parse(issuer)?.hostname ?? ''
  return loopbackHosts.includes(host) || host.endsWith('.localhost')
}

/** Yields a line for each setting that is well-formed, but wrong by itself or together with another one. */
export function* inconsistencies(config: Config): Generator<string> {
  yield* issuerFaults(config)
  yield* pageFaults(config)
  yield* networkFaults(config)
  yield* fetchFaults(config)
  yield* lifetimeFaults(config)
  yield* keyFaults(config)
  yield* mailFaults(config.mail)
  yield* backupFaults(config.backup)
  yield* scopeFaults(config)
  yield* localizedFaults(config)
  yield* attributeFaults(config)
  yield* resourceFaults(config)
  for (const { faults } of features) if (faults !== undefined) yield* faults(config)
  if (!isGroupName(config.admin.group))
    yield 'admin.group: must be a name that a group can have, such as admins'
  if (config.admin.listener === 'management' && config.management.port === undefined)
    yield 'management.port: is missing; admin.listener: management needs it'
  if (config.mode === 'serve' && config.workers !== 1 && config.store === 'sqlite::memory:')
    yield 'workers: must be 1 for a store in memory, which other processes cannot open'
  if (config.logFailedSignIns === 'on' && ['error', 'fatal', 'silent'].includes(config.logLevel))
    yield 'logFailedSignIns: needs logLevel warn, info or debug; failed sign-ins are warnings'
  yield* developmentOptions(config)
  if (config.secret === exampleSecret) {
    yield 'secret: is the one of the example; make your own with lychgate keys secret'
  }
  if (config.mode === 'serve' && config.secret === undefined) {
    yield 'secret: is missing; lychgate init makes one together with a configuration, or set LYCHGATE_SECRET_FILE or LYCHGATE_SECRET to at least 32 random characters'
  }
}

/** Options of a development server are rejected on any other. */
function* developmentOptions({ mode, dev }: Pick<Config, 'mode' | 'dev'>): Generator<string> {
  yield* hostNameFaults('dev.hosts', dev.hosts)
  for (const [index, entry] of (dev.peers ?? []).entries()) {
    if (!isAddressRange(entry))
      yield `dev.peers.${index}: must be an IP address or CIDR range, such as 172.17.0.1`
  }
  if (mode !== 'serve') return
  for (const [name, value] of Object.entries(dev)) {
    if (value !== 'off') yield `dev.${name}: belongs to lychgate dev; remove it`
  }
}

/** Yields what a development server rejects in addition. */
export function* developmentFaults({ issuer }: Pick<Config, 'issuer'>): Generator<string> {
  if (isLoopbackIssuer(issuer)) return
  yield 'issuer: lychgate dev has users with known passwords, so it runs on localhost only; use lychgate serve'
}

/**
 * RFC 8414 §2, RFC 8414 §3.3 and OpenID Connect Discovery §3: clients compare the issuer character by character, so
 * there is one way to write it, without a fragment that the endpoints could take over, RFC 6749 §3.1. It is a
 * resource too, RFC 9728 §1.2. RFC 6749 §10.9: https, except on loopback.
 */
function* issuerFaults({ issuer, mode }: Pick<Config, 'issuer' | 'mode'>): Generator<string> {
  const url = URL.parse(issuer)
  if (url === null || !/^https?:$/.test(url.protocol)) {
    yield 'issuer: must be an absolute http or https URL, such as https://auth.example.com'
    return
  }
  const path = url.pathname.replace(/\/+$/, '')
  // A container network may give a name below .localhost to another machine: of use for `lychgate dev` alone.
  const isLocal = mode === 'dev' ? isLoopbackIssuer(issuer) : loopbackHosts.includes(url.hostname)
  if (url.protocol === 'http:' && !isLocal) {
    const names = mode === 'dev' ? 'localhost, names below it,' : 'localhost,'
    yield `issuer: http is accepted on ${names} 127.0.0.1 and [::1] only; write https://${url.host}${path}`
    return
  }
  const canonical = url.origin + path
  if (url.username !== '' || url.password !== '' || issuer !== canonical) {
    yield `issuer: must be written without user name, query, fragment and trailing slash, in lower case: ${canonical}`
  }
}

/** The way of libpq, before the database or as a parameter; a password may contain a comma too. */
const severalHosts =
  /^postgres(ql)?:\/\/(([^/?#]*@)?[^/?#@]*,[^/?#@]*([/?#]|$)|[^?#]*\?([^#]*&)?(host|port)=[^&#]*(,|%2c))/i

function* networkFaults(config: Config): Generator<string> {
  if (config.rateLimits === 'off' && !isLoopbackIssuer(config.issuer)) {
    yield 'rateLimits: off is accepted on a loopback issuer only'
  }
  yield* hostNameFaults('management.hosts', config.management.hosts)
  for (const [index, entry] of config.trustProxy.entries()) {
    if (isAddressRange(entry)) continue
    yield `trustProxy.${index}: must be an IP address or CIDR range, such as 10.0.0.1 or 10.0.0.0/8`
  }
  if (config.store !== undefined && !/^(sqlite:.|postgres(ql)?:\/\/.)/.test(config.store)) {
    yield 'store: must be sqlite:<file> or postgres://<user>@<host>/<database>'
  }
  if (config.store !== undefined && severalHosts.test(config.store)) {
    yield 'store: names several hosts, which is not supported; name one address that leads to the primary, such as that of HAProxy'
  } else if (isMiscut(config.store)) yield `store: is cut at a wrong place; ${howToEncode}`
}

/** A query may contain an `@`, too. */
function isMiscut(store = ''): boolean {
  if (!/^postgres(ql)?:/.test(store)) return false
  return store.includes('#') || !isUnambiguousUrl(store.replace(/\?.*/s, ''))
}

function* fetchFaults({ fetch }: Pick<Config, 'fetch'>): Generator<string> {
  for (const [index, entry] of fetch.privateNetworks.entries()) {
    if (!isAddressRange(entry))
      yield `fetch.privateNetworks.${index}: must be an IP address or CIDR range, such as 10.2.0.0/16`
  }
  if (fetch.keySetFloorSeconds > fetch.keySetCeilingSeconds)
    yield 'fetch.keySetFloorSeconds: must be at most fetch.keySetCeilingSeconds'
}

function* hostNameFaults(path: string, names: readonly string[] = []): Generator<string> {
  for (const [index, name] of names.entries()) {
    if (/^([a-z0-9_-]+\.)*[a-z0-9_-]+$/.test(name)) continue
    yield `${path}.${index}: must be a host name in lower case, without port`
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

function* lifetimeFaults({ lifetimes, resources }: Config): Generator<string> {
  for (const [name, value] of Object.entries(lifetimes)) {
    if (value > longestLifetimeSeconds) {
      yield `lifetimes.${name}: must be at most ${longestLifetimeSeconds} (ten years)`
    }
  }
  if (lifetimes.refreshTokenIdleSeconds > lifetimes.refreshTokenAbsoluteSeconds) {
    yield 'lifetimes.refreshTokenIdleSeconds: must not exceed lifetimes.refreshTokenAbsoluteSeconds'
  }
  if (lifetimes.sessionIdleSeconds > lifetimes.sessionAbsoluteSeconds) {
    yield 'lifetimes.sessionIdleSeconds: must not exceed lifetimes.sessionAbsoluteSeconds'
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
    yield `${option}: must not exceed lifetimes.refreshTokenIdleSeconds`
  }
}

function* keyFaults(config: Config): Generator<string> {
  const { rotationSeconds, publishAheadSeconds, reloadSeconds } = config.keys
  for (const [name, value] of Object.entries(config.keys)) {
    if (typeof value === 'number' && value > longestLifetimeSeconds) {
      yield `keys.${name}: must be at most ${longestLifetimeSeconds} (ten years)`
    }
  }
  const shortest = config.lifetimes.metadataCacheSeconds + 2 * reloadSeconds
  if (publishAheadSeconds < shortest) {
    yield `keys.publishAheadSeconds: must be at least ${shortest}, lifetimes.metadataCacheSeconds and twice keys.reloadSeconds: by then every server and client knows the key`
  }
  const turn = Math.ceil(keyPolicy(config).overlapSeconds.handle / mostHandleKeys)
  if (rotationSeconds > 0 && rotationSeconds + publishAheadSeconds < turn) {
    yield `keys.rotationSeconds: must be 0 or at least ${turn - publishAheadSeconds}: keys stay as long as what they sealed, and there is room for ${mostHandleKeys}`
  }
}

/** No message shows the URL: it may hold a password. */
function* mailFaults({ url, from, replyTo }: Omit<Config['mail'], 'notices'>): Generator<string> {
  const server = url === undefined ? undefined : URL.parse(url)
  const isServer = server !== null && /^smtps?:$/.test(server?.protocol ?? 'smtp:') && server?.hostname !== ''
  if (!isServer)
    yield 'mail.url: must be smtp://HOST:PORT or smtps://HOST:PORT, with user:password@ before the host'
  else if (url !== undefined && !isUnambiguousUrl(url))
    yield `mail.url: is cut at a wrong place; ${howToEncode}`
  if (url !== undefined && from === undefined) yield 'mail.from: is missing; mail.url needs it'
  if (url === undefined && from !== undefined) yield 'mail.url: is missing; mail.from needs it'
  for (const [name, address] of Object.entries({ from, replyTo })) {
    if (address === undefined || isMailbox(address)) continue
    yield `mail.${name}: must be an email address, or a name and the address in angle brackets`
  }
}

/** The keys go with each request, and the copy has what users store: no other computer may read along. */
function* backupFaults({ endpoint, accessKey, secretKey }: Config['backup']): Generator<string> {
  const url = endpoint === undefined ? undefined : URL.parse(endpoint)
  const isPlain = url?.username === '' && url.search === '' && url.hash === ''
  const isLocal = url?.protocol === 'http:' && isLoopbackIssuer(url.href)
  if (url !== undefined && !(isPlain && (url?.protocol === 'https:' || isLocal)))
    yield 'backup.endpoint: must be https://HOST, with a port or path if the server has one; http only for this computer'
  for (const [name, value] of Object.entries({ endpoint, accessKey, secretKey })) {
    if (value !== undefined || (endpoint ?? accessKey ?? secretKey) === undefined) continue
    yield `backup.${name}: is missing; a bucket needs backup.endpoint and both keys`
  }
}

/** `accounts@example.org` or `Course accounts <accounts@example.org>`, on one line. */
function isMailbox(text: string): boolean {
  return /^[^@<>\p{C}]*<[^@<>\s]+@[^@<>\s]+>$|^[^@<>\s]+@[^@<>\s]+$/u.test(text)
}

function* scopeFaults({ scopes }: Config): Generator<string> {
  const names = scopes.map(({ name }) => name)
  for (const [index, name] of names.entries()) {
    if (names.indexOf(name) < index) yield `scopes.${index}.name: ${name} is listed twice`
  }
  if (!names.includes('openid')) yield 'scopes: openid is missing from the catalogue'
}

/** An entry may have members in other languages, written as in RFC 7591 §2.2. */
function* localizedFaults({ scopes, resources, accounts }: Config): Generator<string> {
  for (const [index, scope] of scopes.entries()) {
    yield* strangeMembers(`scopes.${index}`, scope, ['group', 'description'])
  }
  for (const [index, resource] of resources.entries()) {
    yield* strangeMembers(`resources.${index}`, resource, ['name'])
  }
  for (const [index, attribute] of accounts.attributes.entries()) {
    yield* strangeMembers(`accounts.attributes.${index}`, attribute, ['label'])
  }
}

/** Each user has a value of each attribute at most, and each page of a user shows all of them. */
const [mostAttributes, mostValues] = [30, 50]

function* attributeFaults({ accounts: { attributes }, scopes }: Config): Generator<string> {
  if (attributes.length > mostAttributes) yield `accounts.attributes: has more than ${mostAttributes} entries`
  for (const [index, attribute] of attributes.entries()) {
    const option = `accounts.attributes.${index}`
    const { name, scope, visible, editable } = attribute
    if (!isAttributeName(name))
      yield `${option}.name: must be up to 50 of a-z, 0-9 and _, the first of a-z, and no claim that has a meaning, such as email or groups`
    if (attributes.findIndex((other) => other.name === name) < index)
      yield `${option}.name: ${name} is listed twice`
    if (editable === 'user' && visible !== 'user')
      yield `${option}.visible: must be user, because users may change it`
    if (scope !== undefined && !scopes.some((one) => one.name === scope))
      yield `${option}.scope: ${scope} is not in the scope catalogue`
    yield* valueFaults(option, attribute)
  }
}

function* valueFaults(option: string, { name, type, values = [], visible, editable }: AttributeEntry) {
  if (type !== 'choice' && values.length > 0) yield `${option}.values: belongs to type: choice`
  if (type !== 'choice') return
  if (values.length === 0) yield `${option}.values: is missing; a choice needs its values`
  if (values.length > mostValues) yield `${option}.values: has more than ${mostValues} entries`
  for (const [index, value] of values.entries()) {
    if (values.indexOf(value) < index) yield `${option}.values.${index}: ${value} is listed twice`
    const isText = attributeFault({ name, type: 'string', visible, editable }, value) === undefined
    if (value !== value.trim() || !isText)
      yield `${option}.values.${index}: must be up to 200 visible characters, without spaces around them`
  }
}

function* strangeMembers(option: string, entry: object, localizable: readonly string[]): Generator<string> {
  const own = Object.keys(schemaAt(option.split('.'))?.properties ?? {})
  for (const member of Object.keys(entry)) {
    if (own.includes(member) || isLocalized(member, localizable)) continue
    const known = [...own, ...localizable.map((name) => `${name}#de`)]
    yield `${option}.${member}: there is no such option${suggestion(member, known)}`
  }
}

/** RFC 8707 §2: a resource is an absolute URI without a fragment. */
function* resourceFaults({ resources, scopes, issuer }: Config): Generator<string> {
  const names = new Set(scopes.map(({ name }) => name))
  for (const [index, resource] of resources.entries()) {
    const option = `resources.${index}`
    if (!isResourceIdentifier(resource.identifier)) {
      yield `${option}.identifier: must be an absolute URI without a fragment`
    }
    const identifier = withoutEmptyPath(resource.identifier)
    if (identifier === issuer) {
      yield `${option}.identifier: is the issuer itself, which is always a resource; remove the entry`
    }
    if (resources.findIndex((other) => withoutEmptyPath(other.identifier) === identifier) < index) {
      yield `${option}.identifier: ${resource.identifier} is listed twice`
    }
    yield* resourceScopeFaults(option, resource, names)
  }
}

function* resourceScopeFaults(
  option: string,
  { scopes }: ResourceEntry,
  names: ReadonlySet<string>,
): Generator<string> {
  for (const [index, name] of scopes.entries()) {
    if (!names.has(name)) yield `${option}.scopes.${index}: ${name} is not in the scope catalogue`
  }
}

/** Yields what is wrong with the settings of the pages: colour, links, language and texts. */
export function* pageFaults({ service, texts }: Config): Generator<string> {
  const fault = service.accent === undefined ? undefined : accentFault(service.accent)
  if (fault !== undefined) yield `service.accent: ${fault}`
  for (const name of ['help', 'documentation', 'policy', 'terms'] as const) {
    const link = service[name]
    if (link !== undefined && !/^https?:$/.test(URL.parse(link)?.protocol ?? '')) {
      yield `service.${name}: must be an absolute http or https URL`
    }
  }
  const languages = languagesOf(texts)
  if (!languages.includes(service.language)) {
    yield `service.language: must be one of ${languages.join(', ')}`
  }
  yield* textFaults(texts)
}
