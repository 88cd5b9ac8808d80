import { type CookieKind, cookieName } from '../../src/http/cookies.ts'
import { grantType } from '../../src/specs/rfc8628-device-grant/rules/codes.ts'
import { faultOfAdministration } from './administration.ts'
import { useAssertion } from './assertions.ts'
import type { HttpResponse } from './connection.ts'
import { faultOfDevice } from './devices.ts'
import { faultOfDocument } from './documents.ts'
import { faultOfRegistration } from './initial-tokens.ts'
import { formOf } from './page-parts.ts'
import { faultOfBinding, faultOfUse } from './proofs.ts'
import type { Pair, Sent } from './request.ts'
import { faultOfObject, objectBy } from './request-objects.ts'
import type { Wanted, World } from './world.ts'

/** The parameters of a request to an endpoint, as the WHATWG parses them. */
export function parametersOf({ method, target, headers, body }: Sent): URLSearchParams {
  if (method === 'GET' || method === 'HEAD') return new URLSearchParams(target.split('?').slice(1).join('?'))
  const isChunked = headers.some(([name]) => name === 'Transfer-Encoding')
  const text = body.toString('latin1')
  return new URLSearchParams(isChunked ? text.replaceAll(/(?:^|\r\n)[0-9a-f]+\r\n|\r\n$/g, '') : text)
}

/** The first non-empty value: a parameter without a value counts as omitted, RFC 6749 §3.1. */
export function sentValue(asked: URLSearchParams, name: string): string | undefined {
  return asked.getAll(name).find(Boolean)
}

/** Whether the request is for exactly this path. */
export function isAt(sent: Sent, path: string): boolean {
  return pathOf(sent) === path
}

function pathOf({ target }: Sent): string {
  return target.replace(/^http:\/\/evil\.example/, '').split('?')[0] ?? ''
}

/** What a response did without a right to do it; undefined if nothing. */
export function faultOfRights(sent: Sent, response: HttpResponse, world: World): string | undefined {
  const path = pathOf(sent)
  const forged =
    faultOfForgery(sent, response, world) ??
    faultOfConfiguration(path, sent, response, world) ??
    faultOfDocument(sent, response, world) ??
    faultOfObject(sent, response, world) ??
    faultOfRegistration(sent, response, world) ??
    faultOfAdministration(path, sent, response, world)
  if (forged !== undefined) return forged
  if (response.status >= 300 && response.status < 400 && response.status !== 304)
    return faultOfRedirect(sent, response, world)
  if (response.headers['location'] !== undefined && response.status !== 201)
    return 'a Location without a redirect'
  if (response.status !== 200 && response.status !== 201) return undefined
  const json = response.headers['content-type']?.startsWith('application/json') && sent.method !== 'HEAD'
  const content = json ? (JSON.parse(response.body) as Record<string, unknown>) : {}
  const mustProve = proving.test(path) && sent.method === 'POST'
  if (mustProve && !sent.bytes && !isProven(sent, world)) return 'served without its secret'
  if (path === '/oauth/device_authorization' && sent.method === 'POST' && !sent.bytes) {
    const client = clientOf(sent, parametersOf(sent), world)
    return world.deviceClients.has(client ?? '') ? undefined : `a device for ${client}`
  }
  if (path === '/api/oauth/token') return faultOfTokens(sent, content, world)
  if (path === '/api/oauth/introspect') return faultOfIntrospection(sent, content, world)
  if (path === '/api/oauth/userinfo' || content['caller'] === 'user' || content['caller'] === 'client')
    return faultOfAccess(sent, world)
  const form = response.headers['content-type']?.startsWith('text/html') ? formOf(response.body) : undefined
  if (form === undefined || form.action.startsWith('/')) return undefined
  // The response of the authorization endpoint as a form.
  const members = new URLSearchParams(form.fields.map(([name, value]): [string, string] => [name, value]))
  return faultOfResponse(form.action, members, sent, world)
}

/** Where a client must prove who it is. */
const proving = /^\/(?:api\/oauth\/(?:token|introspect|revoke|par)|oauth\/device_authorization)$/

/** Who signs in or approves by a form must have been shown it, RFC 6749 §10.12. */
function faultOfForgery(sent: Sent, { headers, cookies }: HttpResponse, world: World): string | undefined {
  const signsIn = cookies.some((cookie) => /^lychgate_session_[\w-]{10}=lyc/.test(cookie))
  const asked = parametersOf(sent)
  const interaction = sentValue(asked, 'interaction')
  if (sent.bytes || interaction === undefined) return undefined
  // Self-registered clients ask every time; others may need no form.
  const asksAlways = world.registrations.has(world.wanted.get(interaction)?.clientId ?? '')
  const approves = asksAlways && /[?&]code=/.test(headers['location'] ?? '')
  const isShown = world.shown.get(interaction)?.has(sentValue(asked, 'csrf') ?? '') ?? false
  return isShown || !(signsIn || approves) ? undefined : 'a form that was not shown counts'
}

/** A registration is managed only with its own token, RFC 7592 §2. */
function faultOfConfiguration(
  path: string,
  sent: Sent,
  { status }: HttpResponse,
  world: World,
): string | undefined {
  const [, id] = /^\/api\/oauth\/register\/([^/]+)$/.exec(path) ?? []
  if (id === undefined || sent.bytes || sent.method === 'OPTIONS' || status >= 300) return undefined
  const [, authorization = ''] = sent.headers.find(([name]) => name === 'Authorization') ?? []
  const isOwn = world.registrations.get(id) === /^bearer +(\S+) *$/i.exec(authorization)?.[1]
  return isOwn ? undefined : `${sent.method} of ${id} without its token`
}

function faultOfRedirect(sent: Sent, { status, headers }: HttpResponse, world: World): string | undefined {
  const location = headers['location']
  if (status !== 303 || location === undefined) return `a redirect by ${status} to ${location}`
  if (
    location === '/' ||
    /^\/assets\/icon\.svg\?v=[\w-]+$/.test(location) ||
    /^\/(?:login|consent)\?interaction=[\w-]{22}(?:&from=[\w.%+-]+)?(?:&(?:switch|another|changed)=1)?$/.test(
      location,
    )
  )
    return undefined
  if (
    location === '/device' ||
    /^\/device(?:\/confirm)?\?user_code=[A-Z]{4}-[A-Z]{4}(?:&changed=1)?$/.test(location)
  )
    return undefined
  if (/^\/oauth\/(?:authorize|logout)\?/.test(location) && sent.method === 'POST') return undefined
  if (!/^https?:\/\//.test(location)) return `a redirect to ${location}`
  // The choice of a language leads back to a page of this server, whatever the form says.
  if (/^[^?]*\/language(?:$|\?)/.test(sent.target) && location.startsWith(`${world.issuer}/`))
    return undefined
  const at = location.search(/[?&](?:code|error|state)=/)
  const [uri, parameters] = at < 0 ? [location, ''] : [location.slice(0, at), location.slice(at + 1)]
  if (/^[^?]*\/oauth\/logout/.test(sent.target)) return faultOfLogout(uri, world)
  return faultOfResponse(uri, new URLSearchParams(parameters), sent, world)
}

function faultOfLogout(uri: string, world: World): string | undefined {
  const known = ['https://client.example/bye', 'http://127.0.0.1/bye']
  return known.includes(withoutPort(uri)) ? undefined : `logout sends away to ${uri} of ${world.issuer}`
}

/** An authorization response: its target and its parameters, RFC 6749 §4.1.2 and RFC 9207. */
function faultOfResponse(
  uri: string,
  members: URLSearchParams,
  sent: Sent,
  world: World,
): string | undefined {
  const asked = parametersOf(sent)
  if (sent.bytes) return undefined
  const begun = world.wanted.get(sentValue(asked, 'interaction') ?? '') ?? pushedBy(asked, world)
  const fault = faultOfTarget(uri, members, begun ?? objectBy(sent, world) ?? wantedOf(asked), world)
  // An error of a request object goes to the redirect URI in it, or to that of the unsigned parameters.
  const told = [objectBy(sent, world, 'made') ?? wantedOf(asked), wantedOf(asked)]
  const isTold =
    begun === undefined &&
    members.has('error') &&
    told.some((wanted) => faultOfTarget(uri, members, wanted, world) === undefined)
  if (fault !== undefined && !isTold) return fault
  if (members.has('code') && !hasCookie(sent, 'session', world)) return 'a code for no request'
  if (!members.has('code') && !members.get('error_description')) return 'no error_description'
  const names = [...members.keys()]
  return new Set(names).size === names.length ? undefined : `repeated: ${names}`
}

/** Where a response goes, and with what the client recognises it. */
function faultOfTarget(
  uri: string,
  members: URLSearchParams,
  wanted: Wanted,
  world: World,
): string | undefined {
  const registered = [...(world.redirectUris.get(wanted.clientId) ?? [])]
  if (!registered.some((each) => withoutPort(each) === withoutPort(uri))) return `sent away to ${uri}`
  if (wanted.redirectUri !== undefined && wanted.redirectUri !== uri)
    return `sent to ${uri}, not ${wanted.redirectUri}`
  if (members.get('iss') !== world.issuer) return 'no iss'
  if ((members.get('state') ?? undefined) !== wanted.state)
    return `state is ${members.get('state')}, not ${wanted.state}`
  return members.has('code') === members.has('error') ? 'neither code nor error' : undefined
}

/** The request that was pushed, RFC 9126; with `request` next to its reference it is rejected unread, RFC 9101 §5. */
export function pushedBy(asked: URLSearchParams, { pushed, wanted }: World): Wanted | undefined {
  const held = wanted.get(sentValue(asked, 'held_request') ?? '')
  if (held !== undefined) return held
  if (asked.getAll('request').some(Boolean)) return undefined
  return pushed.get(sentValue(asked, 'request_uri') ?? '')
}

/** What an authorization request expects of its response; a repeated state counts as none. */
export function wantedOf(asked: URLSearchParams): Wanted {
  const jkt = sentValue(asked, 'dpop_jkt')
  const [state, ...others] = asked.getAll('state').filter(Boolean)
  return {
    clientId: sentValue(asked, 'client_id') ?? '',
    redirectUri: sentValue(asked, 'redirect_uri'),
    state: others.length === 0 ? state : undefined,
    verifier: undefined,
    ...(jkt !== undefined && { jkt }),
  }
}

/** The public client of a refresh token: it may omit `client_id`. */
function publicOwnerOf(refresh: string | undefined, { owners, clientSecrets }: World): string | undefined {
  const owner = refresh === undefined ? undefined : owners.get(refresh)
  return owner === undefined || clientSecrets.has(owner) ? undefined : owner
}

function faultOfTokens(sent: Sent, content: Record<string, unknown>, world: World): string | undefined {
  const asked = parametersOf(sent)
  if (sent.bytes) return undefined
  const [code, refresh] = [sentValue(asked, 'code'), sentValue(asked, 'refresh_token')]
  const isCode = asked.getAll('grant_type').includes('authorization_code')
  const client = clientOf(sent, asked, world) ?? (isCode ? undefined : publicOwnerOf(refresh, world))
  if (client === undefined) return 'tokens for no client'
  const repeated = [...new Set(asked.keys())].find(
    (name) => name !== 'resource' && asked.getAll(name).filter(Boolean).length > 1,
  )
  if (repeated !== undefined) return `tokens for a request that repeats ${repeated}`
  const used = isCode ? code : refresh
  // RFC 9449 §5: what authenticates a confidential client also protects its refresh tokens.
  const isKeyed = isCode || !world.clientSecrets.has(client)
  const unbound = faultOfBinding(
    sent,
    content['token_type'],
    { client, used: isKeyed ? used : undefined },
    world,
  )
  if (unbound !== undefined) return unbound
  if (!Number.isInteger(content['expires_in'])) return 'no expires_in'
  const grantTypes = sentValue(asked, 'grant_type')
  if (grantTypes === 'client_credentials') return faultOfOwnToken(client, content, world)
  if (grantTypes === grantType) return faultOfDevice(client, asked, world)
  if (used === undefined || world.owners.get(used) !== client)
    return `tokens for ${used}, which is not of ${client}`
  if (isCode && world.redeemed.has(used)) return 'a code redeemed twice'
  if (isCode) world.redeemed.add(used)
  return undefined
}

/** Only a client that may gets a token without a user, never with a refresh token, RFC 6749 §4.4. */
function faultOfOwnToken(client: string, content: Record<string, unknown>, world: World): string | undefined {
  const allowed = world.machines.get(client)
  if (allowed === undefined) return `a token without a user for ${client}`
  const beyond = String(content['scope'])
    .split(' ')
    .filter((name) => !allowed.includes(name))
  if (beyond.length > 0) return `a token without a user has the scope ${beyond.join(' ')}`
  return 'refresh_token' in content || 'id_token' in content ? 'more than an access token' : undefined
}

function faultOfIntrospection(
  sent: Sent,
  content: Record<string, unknown>,
  world: World,
): string | undefined {
  if (content['active'] === false) return Object.keys(content).length === 1 ? undefined : 'inactive, and more'
  if (sent.bytes) return undefined
  const asked = parametersOf(sent)
  const [client, token = ''] = [clientOf(sent, asked, world), sentValue(asked, 'token')]
  const owner = world.owners.get(token)
  if (owner === undefined) return `active, and never issued: ${token}`
  // The resource server may introspect the tokens of every user.
  return owner === client || world.resourceServers.has(client ?? '')
    ? undefined
    : `${client} learns about a token of ${owner}`
}

function faultOfAccess(sent: Sent, world: World): string | undefined {
  if (sent.bytes) return undefined
  const [, authorization = ''] = sent.headers.find(([name]) => name === 'Authorization') ?? []
  const [, scheme = 'bearer', sentToken] = /^(bearer|dpop) +(\S+) *$/i.exec(authorization) ?? []
  const token = sentToken ?? sentValue(parametersOf(sent), 'access_token') ?? ''
  if (!world.owners.has(token)) return `access with a token never issued: ${token}`
  return faultOfUse(sent, scheme, token, world)
}

/** RFC 6749 §2.3: a client that has a secret must send it. */
function isProven(sent: Sent, world: World): boolean {
  const asked = parametersOf(sent)
  const client = clientOf(sent, asked, world)
  const assertion = sentValue(asked, 'client_assertion')
  if (client === world.signer.id) return assertion !== undefined && useAssertion(assertion, world)
  const secret = world.clientSecrets.get(client ?? '')
  return secret === undefined || secret === (basicOf(sent)?.[1] ?? sentValue(asked, 'client_secret'))
}

/** The client that a request names; an assertion names the one that signs. */
export function clientOf(sent: Sent, asked: URLSearchParams, { signer }: World): string | undefined {
  const named = basicOf(sent)?.[0] ?? sentValue(asked, 'client_id')
  return named ?? (sentValue(asked, 'client_assertion') === undefined ? undefined : signer.id)
}

/** RFC 6749 §2.3.1 */
function basicOf({ headers }: Sent): readonly [string, string] | undefined {
  const [, authorization] = headers.find(([name]) => name === 'Authorization') ?? []
  if (authorization === undefined) return undefined
  const decoded = Buffer.from(authorization.replace(/^basic +/i, ''), 'base64').toString()
  const colon = decoded.indexOf(':')
  const parts = [decoded.slice(0, colon), decoded.slice(colon + 1)]
  const [id = '', secret = ''] = parts.map((text) => new URLSearchParams(`x=${text}`).get('x') ?? '')
  return [id, secret]
}

function hasCookie({ headers }: Sent, kind: CookieKind, { issuer }: World): boolean {
  const name = cookieName(issuer, kind)
  return headers.some(([header, value]: Pair) => header === 'Cookie' && value.includes(`${name}=`))
}

/** RFC 8252 §7.3, by hand. */
function withoutPort(uri: string): string {
  for (const host of ['http://127.0.0.1', 'http://[::1]']) {
    if (!uri.startsWith(`${host}:`)) continue
    const slash = uri.indexOf('/', host.length)
    return slash < 0 ? uri : host + uri.slice(slash)
  }
  return uri
}
