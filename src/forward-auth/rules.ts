import { isTextList, type JsonObject, type MemberStart, readFlag, rejection } from '../clients/members.ts'
import type { AccessFacts } from '../domain/access.ts'
import { methodsOf } from '../domain/authentication-context.ts'
import { isObject } from '../domain/is-object.ts'
import type { Client } from '../domain/model.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import { type RecordRow, recordKind } from '../domain/record.ts'

/** The member of client metadata that makes a client a protected host. */
export const member = 'forward_auth'
/** Where a proxy routes requests for a protected host to this server. */
export const ownPath = '/.lychgate/'
export const callbackPath = `${ownPath}callback`
/** The one path there that a proxy asks about, so that what it does to an app's requests can be seen. */
export const probePath = `${ownPath}probe`

/** What some paths of a host need; the first rule that matches decides. */
export interface AccessRule {
  /** A whole path, or with a final `*` the paths that begin with what precedes it. */
  readonly path: string
  /** Absent: every method. GET includes HEAD. */
  readonly methods?: readonly string[]
  /** Absent: a user who is signed in. `bearer`: the same, or an access token for this host. */
  readonly access?: 'public' | 'bearer'
  /** The ids of the groups, of which the user must be in one. */
  readonly groups?: readonly string[]
  readonly second_factor?: true
}

/** A host that a proxy protects by asking this server about each request. It is a client. */
export interface ProtectedHost {
  /** Lower case, with a port unless it is 443; compared as text. */
  readonly host: string
  readonly rules: readonly AccessRule[]
}

/** What a request needs. */
export interface Needs {
  readonly access: 'public' | 'bearer' | 'user'
  /** The user must be in one group of each list. */
  readonly groups: readonly (readonly string[])[]
  readonly secondFactor: boolean
}

/** The headers of a request, by their names in lower case. */
export type Headers = Readonly<Record<string, string | readonly string[] | undefined>>

/** A request that a proxy asks about. */
export interface Forwarded {
  readonly host: string
  readonly method: string
  /** Path and query, as the browser sent them. */
  readonly uri: string
}

const hostSyntax =
  /^(?=.{1,253}(?::|$))(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z][a-z0-9-]{0,62}(?::\d{2,5})?$/
const methodSyntax = /^[A-Z]{1,20}$/
const groupId = /^group_[\w-]{22}$/
const mostRules = 100
const mostInRule = 100
const longestPath = 500

/**
 * Reads `forward_auth` of client metadata. The redirect URI of the client must be that of the host.
 * @throws {OAuthError} `invalid_client_metadata`
 */
export function readProtectedHost(members: JsonObject, name: string): ProtectedHost | undefined {
  const value = members[name] || undefined
  if (value === undefined) return undefined
  if (!isObject(value)) throw rejection(`${name} must be an object`)
  const { host, rules = [], ...others } = value
  if (Object.keys(others).length > 0) throw rejection(`${name} has host and rules, and no other member`)
  if (typeof host !== 'string' || !hostSyntax.test(host) || host.endsWith(':443'))
    throw rejection(`${name}.host must be a host name in lower case, with its port unless that is 443`)
  const uris = members['redirect_uris']
  if (!isTextList(uris) || uris.length !== 1 || uris[0] !== callbackOf(host))
    throw rejection(`${name}: the only redirect URI of the client must be ${callbackOf(host)}`)
  if (!Array.isArray(rules) || rules.length > mostRules)
    throw rejection(`${name}.rules must be a list of at most ${mostRules} rules`)
  return { host, rules: rules.map((rule, at) => readRule(rule, `${name}.rules[${at}]`)) }
}

function readRule(rule: unknown, where: string): AccessRule {
  if (!isObject(rule)) throw rejection(`${where} must be an object`)
  const { path, methods, access, groups, second_factor: _, ...others } = rule
  if (Object.keys(others).length > 0)
    throw rejection(`${where} has path, methods, access, groups and second_factor, and no other member`)
  if (typeof path !== 'string' || path.length > longestPath || !isNormalPath(path.replace(/\*$/, '')))
    throw rejection(`${where}.path must be a path in normal form, such as /api/*`)
  if (!isListOf(methods, methodSyntax)) throw rejection(`${where}.methods must be a list of methods`)
  if (!isListOf(groups, groupId)) throw rejection(`${where}.groups must be a list of ids of groups`)
  if (access !== undefined && access !== 'public' && access !== 'bearer')
    throw rejection(`${where}.access must be public or bearer`)
  const secondFactor = readFlag(rule, 'second_factor') || undefined
  if (access !== undefined && (groups !== undefined || secondFactor))
    throw rejection(`${where}: groups and second_factor are about users, so access must be absent`)
  return { path, ...omitUndefined({ methods, access, groups, second_factor: secondFactor }) }
}

function isListOf(value: unknown, syntax: RegExp): value is readonly string[] | undefined {
  if (value === undefined) return true
  const isList = isTextList(value) && value.length > 0 && value.length <= mostInRule
  return isList && value.every((one) => syntax.test(one))
}

/** The redirect URI of a protected host, on that host. */
export function callbackOf(host: string): string {
  return `https://${host}${callbackPath}`
}

/** Returns what a client protects; undefined for most clients. */
export function protectedHostOf({ extra }: Pick<Client, 'extra'>): ProtectedHost | undefined {
  // `as`: only readProtectedHost stores it.
  return extra?.[member] as ProtectedHost | undefined
}

/**
 * The record by which the client of a host is found. A name has one, whatever the port: browsers send the cookies of a
 * name to all of its ports, and a client of a proxy may write any port into Host.
 */
export const hostKind = recordKind<{ readonly name: string; readonly clientId: string }>('protectedHost', {
  id: ({ name }) => name,
  clientId: ({ clientId }) => clientId,
})

/** Returns the front page of a host, and whether its rules let a user with these groups and factors see it. */
export function startOfHost(
  value: unknown,
  { groups, factors }: Pick<AccessFacts, 'groups' | 'factors'>,
): MemberStart {
  const protectedHost = value as ProtectedHost // only readProtectedHost stores it
  const needs = needsOf(protectedHost, { method: 'GET', uri: '/' })
  const isMember = needs.groups.every((list) => groups.some(({ id }) => list.includes(id)))
  const isLacking = needs.secondFactor && !methodsOf(factors, true).includes('mfa')
  const access = isMember ? (isLacking ? 'lacking' : 'open') : 'closed'
  return { url: `https://${protectedHost.host}/`, access }
}

/** Returns the name of a host, without its port. */
export function nameOf(host: string): string {
  return host.replace(/:\d{1,5}$/, '')
}

/** Returns the records by which the client of a protected host is found. */
export function hostRecords(clientId: string, value: unknown): readonly RecordRow[] {
  const host = protectedHostOf({ extra: { [member]: value } })?.host
  return host === undefined ? [] : [hostKind.rowOf({ name: nameOf(host), clientId })]
}

/**
 * Reads the request that a proxy asks about from its headers. They are compared as text: nothing is decoded, and a name
 * in capitals, with a final dot or with a port that is not on the list is another host.
 * @returns undefined where a header is missing or malformed.
 */
export function readForwarded(headers: Headers): Forwarded | undefined {
  const [host, method, uri] = ['host', 'method', 'uri'].map((name) => headers[`x-forwarded-${name}`])
  if (typeof host !== 'string' || typeof method !== 'string' || typeof uri !== 'string') return undefined
  return methodSyntax.test(method) && /^\/[!-~]*$/.test(uri) ? { host, method, uri } : undefined
}

/**
 * Whether a path is in normal form (RFC 3986 §6.2.2), and has nothing that servers read in different ways: an encoded
 * slash, backslash, dot, semicolon, percent sign or control character, an empty segment, or a parameter behind `;`.
 */
export function isNormalPath(path: string): boolean {
  if (!/^\/(?:[\w.~!$&'()*+,=:@/-]|%[\dA-F]{2})*$/.test(path)) return false
  if (/\/\/|\/\.{1,2}(?:\/|$)/.test(path)) return false
  return !/%(?:[01].|7F|2[5DEF]|3[0-9B]|4[1-9A-F]|5[0-9AcCF]|6[1-9A-F]|7[0-9AE])/.test(path)
}

/** Returns what a request needs. One whose path is not in normal form needs all that any rule of the host needs. */
export function needsOf({ rules }: ProtectedHost, { method, uri }: Pick<Forwarded, 'method' | 'uri'>): Needs {
  const path = uri.split('?', 1)[0] ?? ''
  if (!isNormalPath(path)) return joined(rules)
  const matching = rules.find((rule) => matches(rule, method, path))
  return matching === undefined ? joined([]) : { ...joined([matching]), access: matching.access ?? 'user' }
}

function joined(rules: readonly AccessRule[]): Needs {
  return {
    access: 'user',
    groups: rules.flatMap(({ groups }) => (groups === undefined ? [] : [groups])),
    secondFactor: rules.some((rule) => rule.second_factor),
  }
}

/** A rule that demands more also matches in other capitals, as some servers read paths; one that demands less does not. */
function matches({ path, methods, access }: AccessRule, method: string, asked: string): boolean {
  const isOfMethod = methods?.some((one) => one === method || (one === 'GET' && method === 'HEAD')) ?? true
  if (!isOfMethod) return false
  const isStrict = access === undefined
  const [pattern, text] = isStrict ? [path.toLowerCase(), asked.toLowerCase()] : [path, asked]
  // Many servers read `/upload/` as `/upload`.
  if (!pattern.endsWith('*')) return text === pattern || (isStrict && text === `${pattern}/`)
  const prefix = pattern.slice(0, -1)
  // `/admin/*` includes `/admin`.
  return text.startsWith(prefix) || (isStrict && `${text}/` === prefix)
}

/** Whether a browser waits for a page: everything else gets a status that a program understands, and no redirect. */
export function isPage(method: string, headers: Headers): boolean {
  if (method !== 'GET' && method !== 'HEAD') return false
  const mode = headers['sec-fetch-mode']
  if (mode !== undefined) return mode === 'navigate'
  return headers['sec-websocket-key'] === undefined && String(headers['accept']).includes('text/html')
}
