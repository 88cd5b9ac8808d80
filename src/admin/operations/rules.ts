import { hash } from 'node:crypto'
import { bearerChallenge } from '../../domain/bearer.ts'
import { check } from '../../domain/check.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { Group } from '../../domain/group.ts'
import { isObject } from '../../domain/is-object.ts'
import type { Client, Scope, User } from '../../domain/model.ts'
import { isAdministrator } from '../../users/administrators.ts'
import type { StoredUpstream } from '../../users/rules/upstream.ts'
import { describeUser } from '../../users/rules/user.ts'

declare module '../../domain/errors.ts' {
  interface FeatureErrors {
    not_found: 404
    // RFC 9110 §15.5.13
    precondition_failed: 412
    // RFC 6585 §3
    precondition_required: 428
  }
}

/** Who calls, and what the access token allows. */
export interface Caller {
  /** `client`: it acts for itself, RFC 6749 §4.4. `personal token`: a script of the user, who is not there. */
  readonly kind: 'user' | 'client' | 'personal token'
  readonly sub: string
  readonly scope: Scope
  /** The key of the personal token. */
  readonly personalTokenId?: string
}

/** Names a caller who is no user, in errors. */
export function describeCaller({ kind }: Pick<Caller, 'kind'>): string {
  return kind === 'client' ? 'a client without a user' : 'a personal token'
}

/** How a challenge is written. */
export interface Challenge {
  readonly scheme: string
  readonly resourceMetadata: string
}

/**
 * Checks what the client of the access token may do now, whatever it was when the token was issued. An operator added
 * it, and its metadata names the scope, so that no client has it by default.
 */
export function assertClientMay(
  client: Client | undefined,
  { kind }: Caller,
  needed: string,
  { scheme, resourceMetadata }: Challenge,
): void {
  const description = 'the metadata of the client does not name the scope that this needs'
  const challenge = { error: 'insufficient_scope', description, scope: [needed], resourceMetadata } as const
  check(
    client?.scope?.includes(needed) === true,
    'lychgate-admin-client-scope',
    'insufficient_scope',
    description,
    {
      stored: client?.scope ?? [],
      received: needed,
      headers: {
        'www-authenticate': bearerChallenge({ ...challenge, scheme: { name: scheme, challenge: {} } }),
      },
    },
  )
  check(
    client.origin === 'integration' && (kind === 'user' || client.grantTypes.includes('client_credentials')),
    'lychgate-admin-client-by-operator',
    'access_denied',
    'only a client that an operator added may administer, and without a user only one with client_credentials',
    { stored: [client.origin, ...client.grantTypes] },
  )
}

/** Checks that a personal token may call an operation. */
export function assertWithToken(personalTokens: 'rejected' | undefined): void {
  check(
    personalTokens !== 'rejected',
    'lychgate-personal-token-no-credentials',
    'access_denied',
    'a personal token must not make tokens or change how users sign in',
  )
}

/** Checks that a user is an administrator now. */
export function assertAdministrator(groups: readonly Group[], group: string): void {
  check(
    isAdministrator(groups, group),
    'lychgate-admin-membership',
    'access_denied',
    'the user of the access token is not an administrator',
    { stored: groups.map(({ name }) => name), received: group },
  )
}

/** Whose access token has a scope; others may do everything. */
type Limited = Partial<Pick<Caller, 'kind' | 'scope'>> | undefined

/**
 * Checks that a caller does not change a client that may administer more than the caller: a new secret or redirect URI
 * would give them that. A personal token changes no client that may administer: such a client would outlive the token.
 */
export function assertWithin({ scope = [] }: Pick<Client, 'scope'>, caller: Limited): void {
  if (caller?.scope === undefined) return
  const own = caller.kind === 'personal token' ? [] : caller.scope
  const beyond = scope.filter((name) => name.startsWith('admin:') && !own.includes(name))
  check(
    beyond.length === 0,
    'lychgate-admin-no-escalation',
    'access_denied',
    caller.kind === 'personal token'
      ? 'a personal token must not change a client that has scopes of the admin API'
      : 'the client has scopes of the admin API that the access token lacks',
    { stored: own, received: beyond },
  )
}

/** @throws {OAuthError} unless there is such a client, and the caller may change it. */
export function requireWithin(row: Client | undefined, caller: Limited): Client {
  const client = requireFound(row, 'client')
  assertWithin(client, caller)
  return client
}

/** Checks that administrators do not lock themselves out. */
export function assertOther(caller: { readonly sub: string } | undefined, userId: string): void {
  check(
    caller?.sub !== userId,
    'lychgate-admin-not-oneself',
    'conflict',
    'administrators cannot lock or delete themselves; another one can',
    { status: 409 },
  )
}

/** @throws {OAuthError} `not_found` */
export function requireFound<T>(value: T | undefined, what: string): T {
  check(value !== undefined, foundRule, 'not_found', `there is no such ${what}`, { status: 404 })
  return value
}

/** Returns the error for what does not exist, or what the caller must not see: the response is the same. */
export function notFound(what: string): OAuthError {
  return new OAuthError('not_found', `there is no such ${what}`, { rule: foundRule, status: 404 })
}

const foundRule = 'lychgate-admin-found'

/** Returns the error for something unique that another one has. */
export function conflict(description: string): OAuthError {
  return new OAuthError('conflict', description, { rule: 'lychgate-admin-unique', status: 409 })
}

/** Returns the entity tag of a user, RFC 9110 §8.8.3. Every change of the user changes it. */
export function tagOfUser({ passwordHash, ...user }: User): string {
  return tagOf({ ...user, hasPassword: passwordHash !== undefined })
}

/** Returns the entity tag of a client. Its use does not change it. */
export function tagOfClient({ usedAt: _, secretUsedAt: __, previousSecret, ...client }: Client): string {
  return tagOf({ ...client, keptUntil: previousSecret?.expiresAt })
}

/** Returns the entity tag of a group. */
export function tagOfGroup(group: Group): string {
  return tagOf(group)
}

/** Returns the entity tag of an upstream. A change of the operator's secret does not change it. */
export function tagOfUpstream({ sealedSecret: _, ...upstream }: StoredUpstream): string {
  return tagOf(upstream)
}

/** Returns the entity tag of any other record. */
export function tagOfRecord(record: object): string {
  return tagOf(record)
}

function tagOf(record: object): string {
  return `"${hash('sha256', JSON.stringify(sorted(record)), 'base64url').slice(0, 22)}"`
}

/** The same value with the members of every object in one order: storage keeps their order, a change does not. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isObject(value)) return value
  const names = Object.keys(value).sort()
  return Object.fromEntries(names.map((name) => [name, sorted(value[name])]))
}

/**
 * Checks that what is changed is what the caller saw, RFC 9110 §13.1.1.
 * @throws {OAuthError} `precondition_required` without If-Match (RFC 6585 §3), `precondition_failed` for another tag.
 */
export function assertMatches(ifMatch: string | undefined, tag: string): void {
  check(
    ifMatch !== undefined,
    'lychgate-admin-if-match',
    'precondition_required',
    'If-Match is missing: send the ETag of what you change',
    { status: 428 },
  )
  const tags = ifMatch.split(',').map((one) => one.trim())
  check(
    tags.includes('*') || tags.includes(tag),
    'rfc9110-13.1.1-if-match',
    'precondition_failed',
    'it was changed in the meantime; read it again',
    { status: 412, stored: tag, received: ifMatch.slice(0, 100) },
  )
}

/** Returns a user as the caller may see them: attributes are for full administrators. */
export function describeFor({ isDelegate }: { readonly isDelegate: boolean }, user: User) {
  return isDelegate ? { ...describeUser(user), attributes: {} } : describeUser(user)
}

/** Checks that a link to a user of a group goes to them: it signs its owner in as that user. */
export function assertSent(isSent: boolean): void {
  check(
    isSent,
    'lychgate-admin-link-is-sent',
    'conflict',
    'for an administrator of a group a link is only sent: this needs a mail server, and an address of the user',
    { status: 409 },
  )
}

/** Returns a key that can be in the store: no identifier has other characters, and a database may reject some. */
export function storedKey(text: string): string {
  return /^[\x21-\x7e]+$/.test(text) ? text : ''
}
