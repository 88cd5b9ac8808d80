import type { AccessFacts } from '../domain/access.ts'
import { contextClasses } from '../domain/authentication-context.ts'
import { isDeceptive } from '../domain/deceptive.ts'
import type { Write } from '../domain/decision.ts'
import { type ErrorDetail, OAuthError } from '../domain/errors.ts'
import type { Client, SigningAlgorithm } from '../domain/model.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import type { RecordRow } from '../domain/record.ts'
import { isLoopbackUri } from '../domain/redirect-uri.ts'

/** A JSON object as a client sent it; nothing about its members is known yet. */
export type JsonObject = Readonly<Record<string, unknown>>

/** Where users open an app. `lacking`: they have to set up a factor first. */
export interface MemberStart {
  readonly url: string
  readonly access: 'open' | 'closed' | 'lacking'
}

/** How a member of client metadata is read and checked; undefined: the client did not send it. */
export interface ClientMember {
  /** Where a client has it; absent: in `extra`, under its name on the wire. */
  readonly property?: keyof Client
  /** It may have a language tag, RFC 7591 §2.2: `client_name#fr`. */
  readonly localizable?: true
  /** It follows from the other members: registration checks what is sent, and no operator sets it. */
  readonly isDerived?: true
  /** Clients that register themselves cannot have it: what they send is ignored. */
  readonly operatorOnly?: true
  /** They can with an initial access token, RFC 7591 §3. */
  readonly withToken?: true
  /** An operator may set it for all clients of an initial access token. */
  readonly byToken?: true
  /**
   * Absent: it depends on other members, and the rules of registration and those of operators read it.
   * @param offered The algorithms that the server signs with; absent: all.
   * @param declared What the specifications of the server declare.
   */
  read?(
    members: JsonObject,
    name: string,
    offered?: readonly SigningAlgorithm[],
    declared?: Pick<ClientDeclarations, 'responseModes' | 'withoutPasskeys'>,
  ): unknown
  /** Details of a change that the audit log keeps in addition to the member's name. */
  readonly factsOf?: (before: unknown, after: unknown) => Readonly<Record<string, string>>
  /** Where users open an app that has it, and whether what it says lets this one in. */
  readonly startOf?: (value: unknown, facts: Pick<AccessFacts, 'groups' | 'factors'>) => MemberStart
  /** The records by which clients are found by this member. They must have the client as their owner. */
  readonly recordsOf?: (clientId: string, value: unknown) => readonly RecordRow[]
}

/** What a feature declares about a grant type. */
export interface GrantTypeDeclaration {
  /** Clients that register themselves cannot have it. */
  readonly operatorOnly?: true
  /** The client acts for itself, so it is confidential and has a list of scopes, RFC 6749 §4.4. */
  readonly withoutUser?: true
  /** The client exchanges a token of another one, so it is confidential; it may be a resource server, RFC 8693. */
  readonly fromToken?: true
  /** No browser is redirected to the client: it needs no redirect URI. */
  readonly withoutRedirect?: true
}

/** What features declare about clients, by the names of RFC 7591 §2. */
export interface ClientDeclarations {
  readonly clientMetadata: Readonly<Record<string, ClientMember>>
  readonly grantTypes: Readonly<Record<string, GrantTypeDeclaration>>
  /** The response modes that specifications add. */
  readonly responseModes?: Readonly<Record<string, unknown>>
  /** No passkey can be created for the issuer, so that no client may require one. */
  readonly withoutPasskeys?: true
  readonly clientAuthentication: Readonly<
    Record<
      string,
      {
        /** It sends the client secret, so the client has one. */
        readonly usesSecret?: true
        /** Clients that register themselves cannot have it. */
        readonly operatorOnly?: true
        /** They can with an initial access token, RFC 7591 §3. */
        readonly withToken?: true
        /**
         * Checks what a client of this method has registered.
         * @throws {OAuthError} `invalid_client_metadata`
         */
        readonly assertRegistered?: (extra: JsonObject) => void
      }
    >
  >
}

/** What this server knows, for a request to stay within. */
export interface ClientVocabulary {
  readonly scopes: readonly string[]
  /** The scopes that a client may have without an operator; absent: all of them. */
  readonly openScopes?: readonly string[]
  /** Resource identifiers, the issuer among them. */
  readonly resources: readonly string[]
  /** The algorithms that the server signs with; absent: all. */
  readonly algorithms?: readonly SigningAlgorithm[]
  readonly declared: ClientDeclarations
}

/** What clients that register themselves can have of what features declare. */
export function openToAll<T extends { readonly operatorOnly?: true }>(
  declared: Readonly<Record<string, T>>,
): Readonly<Record<string, T>> {
  return Object.fromEntries(Object.entries(declared).filter(([, { operatorOnly }]) => !operatorOnly))
}

/** What they can have with an initial access token, RFC 7591 §3. */
export function openWithToken<T extends { readonly operatorOnly?: true; readonly withToken?: true }>(
  declared: Readonly<Record<string, T>>,
): Readonly<Record<string, T>> {
  return Object.fromEntries(
    Object.entries(declared).filter(([, { operatorOnly, withToken }]) => !operatorOnly || withToken),
  )
}

/** What no change of its metadata touches: who a client is, what authenticates it, and whether it is locked. */
export function lastingMembers({
  id,
  origin,
  issuedAt,
  usedAt,
  lockedAt,
  registeredFrom,
  secretHash,
  previousSecret,
  secretUsedAt,
  registrationTokenHash,
  registrationKey,
}: Client) {
  return {
    id,
    origin,
    issuedAt,
    usedAt,
    ...omitUndefined({
      lockedAt,
      registeredFrom,
      secretHash,
      previousSecret,
      secretUsedAt,
      registrationTokenHash,
      registrationKey,
    }),
  }
}

/**
 * Returns the writes that bring the records by which a client is found in line with its members. Removing the client
 * removes the records.
 */
export function recordWrites(
  before: Client | undefined,
  after: Client,
  { clientMetadata }: Pick<ClientDeclarations, 'clientMetadata'>,
): readonly Write[] {
  const rowsOf = ({ id, extra }: Client) =>
    Object.entries(clientMetadata).flatMap(([name, { recordsOf }]) => recordsOf?.(id, extra?.[name]) ?? [])
  const [old, rowsAfter] = [before === undefined ? [] : rowsOf(before), rowsOf(after)]
  const isIn = (rows: readonly RecordRow[], { kind, id }: RecordRow) =>
    rows.some((row) => row.kind === kind && row.id === id)
  return [
    ...old
      .filter((row) => !isIn(rowsAfter, row))
      .map(({ kind, id }): Write => ({ op: 'deleteRecord', kind, key: id })),
    ...rowsAfter
      .filter((row) => !isIn(old, row))
      .map((record): Write => ({ op: 'insert', kind: 'record', record })),
  ]
}

const longestText = 200
const longestUri = 2048
const longestSeconds = 2_147_483_647

/** The rejection of a member of client metadata, RFC 7591 §3.2.2. */
export function rejection(description: string, detail: Partial<ErrorDetail> = {}): OAuthError {
  return new OAuthError('invalid_client_metadata', description, {
    rule: 'rfc7591-3.2.2-invalid-client-metadata',
    ...detail,
  })
}

/** A text for users or machines, RFC 7591 §2: bounded and without deceptive characters; a blank one is absent. */
export function readText(members: JsonObject, name: string): string | undefined {
  const text = members[name] ?? ''
  if (typeof text !== 'string') throw rejection(`${name} must be a string`)
  assertText(text, name)
  return text.trim() === '' ? undefined : text
}

/** Rejects a text that is too long or has deceptive characters. */
export function assertText(text: string, name: string): void {
  if ([...text].length > longestText) throw rejection(`${name} is longer than ${longestText} characters`)
  if (isDeceptive(text)) throw rejection(`${name} has control or invisible characters`)
}

/**
 * An absolute http or https URI, RFC 7591 §2; an empty one is absent. Never fetched, and shown with its host, so
 * userinfo, which can pass for a host, is rejected.
 */
export function readUri(members: JsonObject, name: string): string | undefined {
  const uri = members[name] ?? ''
  if (uri === '') return undefined
  const wellFormed =
    typeof uri === 'string' && uri.length <= longestUri && /^https?:\/\/(?![/?#])[!-~]+$/i.test(uri)
  if (wellFormed && !/[\\"<>^`{|}]|^[^/]*\/\/[^/?#]*@/.test(uri) && URL.canParse(uri)) return uri
  throw rejection(`${name} must be an absolute http or https URI of at most ${longestUri} characters`, {
    rule: 'rfc7591-2-uri-members-valid',
  })
}

/** The same, with https. */
export function readHttpsUri(members: JsonObject, name: string): string | undefined {
  const uri = readHttpsOrLoopbackUri(members, name)
  if (uri === undefined || /^https:/i.test(uri)) return uri
  throw rejection(`${name} must be an https URI`, { rule: 'rfc7591-2-uri-members-valid' })
}

/** The same, with https; or loopback, for development. */
export function readHttpsOrLoopbackUri(members: JsonObject, name: string): string | undefined {
  const uri = readUri(members, name)
  if (uri === undefined || /^https:/i.test(uri) || isLoopbackUri(uri)) return uri
  throw rejection(`${name} must be an https URI`, { rule: 'rfc7591-2-uri-members-valid' })
}

/** One of a closed list of values, or absent. */
export function readChoice<T extends string>(
  members: JsonObject,
  name: string,
  choices: readonly T[],
  rule: string,
): T | undefined {
  const value = members[name] ?? undefined
  const choice = choices.find((candidate) => candidate === value)
  if (value === undefined || choice !== undefined) return choice
  throw rejection(`${name} must be one of: ${choices.join(', ')}`, {
    rule,
    ...(typeof value === 'string' && { received: value }),
  })
}

/** A boolean; absent is false. */
export function readFlag(members: JsonObject, name: string): boolean {
  const flag = members[name] ?? false
  if (typeof flag === 'boolean') return flag
  throw rejection(`${name} must be a boolean`)
}

/** A whole number of seconds, zero included, or absent. */
export function readSeconds(members: JsonObject, name: string): number | undefined {
  const seconds = members[name] ?? undefined
  if (seconds === undefined) return undefined
  if (typeof seconds === 'number' && Number.isInteger(seconds) && seconds >= 0 && seconds <= longestSeconds) {
    return seconds
  }
  throw rejection(`${name} must be a whole number of seconds from 0 to ${longestSeconds}`)
}

const mostContacts = 20

/** Reads `contacts`, RFC 7591 §2. @throws {OAuthError} `invalid_client_metadata` */
export function readContacts(members: JsonObject): readonly string[] {
  const contacts = members['contacts'] ?? []
  if (!isTextList(contacts)) throw rejection('contacts must be an array of strings')
  if (contacts.length > mostContacts) throw rejection(`contacts has more than ${mostContacts} entries`)
  for (const contact of contacts) assertText(contact, 'contacts')
  return contacts
}

/**
 * Reads `default_acr_values` (OpenID Connect Registration §2). Classes that no sign-in here can have are left out, as a
 * request may name them without effect, and the response shows what is left (RFC 7591 §3.2.1).
 * @throws {OAuthError} `invalid_client_metadata`
 */
export function readContextClasses(members: JsonObject, name: string): readonly string[] | undefined {
  const values = members[name] ?? []
  if (!isTextList(values)) throw rejection(`${name} must be an array of strings`)
  const offered = contextClasses.filter((one) => values.includes(one))
  if (offered.length === 0) return undefined
  return offered.toSorted((one, other) => values.indexOf(one) - values.indexOf(other))
}

/** Whether the value is an array of strings. A lone string is not: it is never wrapped into one. */
export function isTextList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((member) => typeof member === 'string')
}
