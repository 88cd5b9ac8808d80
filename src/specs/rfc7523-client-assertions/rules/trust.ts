import { type JsonObject, rejection } from '../../../clients/members.ts'
import type { FailedProof } from '../../../domain/client-authentication.ts'
import { isObject } from '../../../domain/is-object.ts'
import { type Jws, shown } from '../../../domain/jws.ts'
import type { Client, Hash, Seconds } from '../../../domain/model.ts'
import { type RecordRow, recordKind } from '../../../domain/record.ts'
import { isLoopbackUri } from '../../../domain/redirect-uri.ts'
import { hashSecret } from '../../../domain/secret.ts'
import { parseStrictJson } from '../../../domain/strict-json.ts'
import { assertHeader, assertIdentifier, assertTimes, must } from './claims.ts'

/**
 * Another issuer's word for who a workload is, in place of a key of the client (RFC 7521 §3: an assertion that a
 * third party issues). All members are compared character by character.
 */
export interface TrustedIssuer {
  readonly issuer: string
  readonly subject: string
  /** Absent: this server's issuer. */
  readonly audience?: string
  /** A token may be used until it expires, because its platform hands out the same one until then. */
  readonly reusable?: true
}

/** Names the client of tokens, where a request does not. */
interface TrustedSubject {
  readonly id: Hash
  readonly clientId: string
}

export const trustedSubjectKind = recordKind<TrustedSubject>('trusted-subject', {
  id: ({ id }) => id,
  clientId: ({ clientId }) => clientId,
})

/**
 * How far ahead `exp` may be, in seconds: GitHub sends five minutes, Kubernetes an hour by default and a day at most
 * here.
 */
const mostSeconds = { once: 3600, reusable: 86_400 }
const mostTrusted = 20
const longestText = 1000

/** Returns the issuers that a client trusts. */
export function trustedBy({ extra }: Client): readonly TrustedIssuer[] {
  // `as`: readTrusted alone writes this member.
  return (extra?.['trusted_issuers'] ?? []) as readonly TrustedIssuer[]
}

/** Names the issuers and subjects that a change adds or removes, for the audit log. */
export function trustFacts(before: unknown, after: unknown): Readonly<Record<string, string>> {
  // `as`: readTrusted alone writes this member.
  const [old, now] = [before, after].map((list) => (list ?? []) as readonly TrustedIssuer[])
  const keysOf = (list: readonly TrustedIssuer[] = []) => new Set(list.map((one) => JSON.stringify(one)))
  const [oldKeys, newKeys] = [keysOf(old), keysOf(now)]
  const differing = [
    ...(old ?? []).filter((one) => !newKeys.has(JSON.stringify(one))),
    ...(now ?? []).filter((one) => !oldKeys.has(JSON.stringify(one))),
  ]
  const named = (values: readonly string[]) => [...new Set(values)].join(' ')
  return {
    issuer: named(differing.map(({ issuer }) => issuer)),
    subject: named(differing.map(({ subject }) => subject)),
  }
}

/**
 * Checks the header and the claims of an assertion that another issuer made, RFC 7523 §3. Only its subject differs from
 * that of a client's own: an operator has said which client it is.
 * @param ownIssuer The audience where an operator named no other.
 * @returns what the client trusts.
 * @throws {OAuthError} `invalid_client`
 */
export function assertTrusted(
  { header, claims }: Jws,
  client: Client,
  ownIssuer: string,
  now: Seconds,
): TrustedIssuer {
  const { iss, sub, aud } = claims
  assertHeader(header)
  const trusted = trustedBy(client)
  const named = trusted.filter(({ issuer, subject }) => issuer === iss && subject === sub)
  must(
    named.length > 0,
    'rfc7523-3-iss-sub',
    'the client does not trust this issuer and subject',
    `${iss} ${sub}`,
    trusted.map(({ issuer, subject }) => `${issuer} ${subject}`),
  )
  const found = named.find(({ audience = ownIssuer }) => audience === soleAudience(aud))
  must(
    found !== undefined,
    'rfc7523-3-aud',
    'aud is not the expected audience alone',
    aud,
    named.map(({ audience = ownIssuer }) => audience),
  )
  // `must` throws if there is none.
  const trust = found as TrustedIssuer
  assertTimes(claims, trust.reusable ? mostSeconds.reusable : mostSeconds.once, now)
  if (!trust.reusable) assertIdentifier(claims)
  return trust
}

/** Why a token of no client is not accepted, for the log. */
export function unknownSubject({ claims: { iss, sub } }: Jws): FailedProof {
  return {
    namesNoClient: true,
    rule: 'rfc7523-3-iss-sub',
    why: 'of an unknown subject',
    stored: 'no client that trusts this issuer, subject and audience',
    received: shown(`${iss} ${sub}`),
  }
}

/** RFC 7519 §4.1.3: one audience may be written as a list of one, as Kubernetes does. */
function soleAudience(aud: unknown): unknown {
  return Array.isArray(aud) && aud.length === 1 ? aud[0] : aud
}

/** Returns the records by which a client is found by the subject of a token. */
export function trustRecords(clientId: string, trusted: unknown): readonly RecordRow[] {
  // `as`: readTrusted alone writes this member.
  return ((trusted ?? []) as readonly TrustedIssuer[]).map((trust) =>
    trustedSubjectKind.rowOf({ id: subjectId(trust), clientId }),
  )
}

/**
 * Returns where the client of a token may be found: under its audience, and under no audience if that is this server.
 */
export function subjectIds({ claims: { iss, sub, aud } }: Jws, ownIssuer: string): readonly Hash[] {
  const audience = soleAudience(aud)
  if (typeof iss !== 'string' || typeof sub !== 'string' || typeof audience !== 'string') return []
  const named = { issuer: iss, subject: sub }
  return [...(audience === ownIssuer ? [subjectId(named)] : []), subjectId({ ...named, audience })]
}

function subjectId({ issuer, subject, audience }: TrustedIssuer): Hash {
  return hashSecret(JSON.stringify([issuer, subject, audience]))
}

/** Reads `trusted_issuers`: a list of objects, also as JSON text. */
export function readTrusted(members: JsonObject, name: string): readonly TrustedIssuer[] | undefined {
  const value = members[name] ?? ''
  const list = typeof value === 'string' && value !== '' ? parseStrictJson(value) : value
  if (list === '' || (Array.isArray(list) && list.length === 0)) return undefined
  if (!Array.isArray(list) || list.length > mostTrusted)
    throw rejection(`${name} must be a JSON list of at most ${mostTrusted} objects`)
  const trusted = list.map((entry) => readEntry(entry, name))
  if (new Set(trusted.map(subjectId)).size < trusted.length)
    throw rejection(`${name} has the same issuer, subject and audience twice`)
  return trusted
}

function readEntry(entry: unknown, name: string): TrustedIssuer {
  const { issuer, subject, audience, reusable, ...others } = isObject(entry) ? entry : {}
  const [other] = Object.keys(others)
  if (other !== undefined) throw rejection(`${name} has an unknown member`, { received: other })
  if (!isIssuer(issuer)) throw rejection(`${name}: issuer must be an https URL without query and fragment`)
  if (!isText(subject)) throw rejection(`${name}: subject must have 1 to ${longestText} visible characters`)
  if (subject.includes('*')) throw rejection(`${name}: subject is compared exactly; it may have no *`)
  if (audience !== undefined && !isText(audience))
    throw rejection(`${name}: audience must have 1 to ${longestText} visible characters`)
  if (reusable !== undefined && typeof reusable !== 'boolean')
    throw rejection(`${name}: reusable must be a boolean`)
  return {
    issuer,
    subject,
    ...(audience !== undefined && { audience }),
    ...(reusable && { reusable }),
  }
}

/** OpenID Connect Discovery §3: https, or loopback for development. */
function isIssuer(value: unknown): value is string {
  return (
    isText(value) &&
    /^https?:\/\/[^\s?#@]+$/.test(value) &&
    URL.canParse(value) &&
    (value.startsWith('https:') || isLoopbackUri(value))
  )
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && /^\P{C}+$/u.test(value) && value.length <= longestText
}
