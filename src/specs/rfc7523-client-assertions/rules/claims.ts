import type { JsonObject } from '../../../clients/members.ts'
import { check } from '../../../domain/check.ts'
import { foreignMember, isInstant, type Jws, type SignatureRules, shown } from '../../../domain/jws.ts'
import type { Client, Hash, Seconds } from '../../../domain/model.ts'
import { recordKind } from '../../../domain/record.ts'
import { hashSecret } from '../../../domain/secret.ts'

/** An assertion that was used. It must not be used again before it expires. */
interface UsedAssertion {
  readonly id: Hash
  readonly clientId: string
  readonly expiresAt: Seconds
}

export const usedAssertionKind = recordKind<UsedAssertion>('client-assertion', {
  id: ({ id }) => id,
  clientId: ({ clientId }) => clientId,
  expiresAt: ({ expiresAt }) => expiresAt,
})

/** The rules of the signature, RFC 7523 §3. */
export const signatureRules: SignatureRules = {
  code: 'invalid_client',
  signature: 'rfc7523-3-signature',
  algorithm: 'rfc7523-3-alg-registered',
}

/** By how much the clock of a client may differ from that of this server. */
const skewSeconds = 10
/** How far ahead `exp` may be. */
const mostSeconds = 600
const longestJti = 256

/** How this server is named in an assertion. */
export interface Audience {
  readonly issuer: string
  /** What else a client with `legacy_audience` may name: the endpoints that authenticate clients. */
  readonly endpoints: readonly string[]
}

/**
 * Checks the header and the claims of an assertion that this client signed, RFC 7523 §3.
 * @throws {OAuthError} `invalid_client`
 */
export function assertClaims(
  { header, claims }: Jws,
  client: Client,
  audience: Audience,
  now: Seconds,
): void {
  const { iss, sub, aud } = claims
  assertHeader(header)
  must(
    iss === client.id && sub === client.id,
    'rfc7523-3-iss-sub',
    'iss or sub is not the client_id',
    iss,
    client.id,
  )
  must(
    isAudience(aud, client, audience),
    'rfc7523-3-aud',
    adviceOn(aud, audience) ?? 'aud is not the issuer alone',
    aud,
    audience.issuer,
  )
  assertTimes(claims, mostSeconds, now)
  assertIdentifier(claims)
}

/** Checks that the header says nothing that this server does not act upon, RFC 7523 §3 and RFC 8725 §3.11. */
export function assertHeader(header: JsonObject): void {
  const foreign = foreignMember(header)
  must(foreign === undefined, 'rfc7523-3-valid-jwt', 'the header has a member that is not accepted', foreign)
  must(
    header['typ'] === undefined ||
      /^(application\/)?(jwt|jose|client-authentication\+jwt)$/i.test(String(header['typ'])),
    'rfc7523-3-valid-jwt',
    'typ is that of another kind of JWT',
    header['typ'],
  )
}

/**
 * Checks when an assertion is valid, RFC 7523 §3.
 * @param most How far ahead `exp` may be, in seconds.
 */
export function assertTimes({ exp, nbf, iat }: JsonObject, most: Seconds, now: Seconds): void {
  must(isInstant(exp) && now < exp + skewSeconds, 'rfc7523-3-exp', 'exp is missing or over', exp, now)
  must(
    isInstant(exp) && exp <= now + most + skewSeconds,
    'rfc7523-3-exp',
    `exp is more than ${most / 60} minutes ahead`,
    exp,
    now,
  )
  for (const [name, at] of Object.entries({ nbf, iat }))
    must(
      at === undefined || (isInstant(at) && at <= now + skewSeconds),
      'rfc7523-3-nbf-iat',
      `${name} is no instant, or in the future`,
      at,
      now,
    )
}

/** Checks `jti`, by which an assertion is used once, RFC 7523 §3. */
export function assertIdentifier({ jti }: JsonObject): void {
  must(
    typeof jti === 'string' && jti !== '' && jti.length <= longestJti,
    'rfc7523-3-jti-replay',
    `jti is missing or longer than ${longestJti} characters`,
    jti,
  )
}

/** Checks a rule of an assertion; the log has what was received, the response does not. */
export function must(
  ok: boolean,
  rule: string,
  description: string,
  received: unknown,
  stored?: string | number | readonly string[],
): void {
  check(ok, rule, 'invalid_client', description, { stored, received: shown(received) })
}

/** The issuer as one string; other forms only where an operator marked the client, RFC 7523 §3 and RFC 9126 §2. */
function isAudience(aud: unknown, { extra }: Client, audience: Audience): boolean {
  return aud === audience.issuer || (extra?.['legacy_audience'] === true && isLegacyAudience(aud, audience))
}

/** Returns the option that accepts an audience, if one does. It follows from `aud` alone, so the response may say it. */
export function adviceOn(aud: unknown, audience: Audience): string | undefined {
  return aud !== audience.issuer && isLegacyAudience(aud, audience)
    ? 'aud is not the issuer alone (lychgate client set --legacy-audience true accepts it)'
    : undefined
}

function isLegacyAudience(aud: unknown, { issuer, endpoints }: Audience): boolean {
  return [aud].flat().some((name) => name === issuer || endpoints.includes(String(name)))
}

/** Returns the record by which an assertion is used once, RFC 7523 §3; it is kept until the assertion has expired. */
export function useOf({ claims: { iss, jti, exp } }: Jws, clientId: string): UsedAssertion {
  return {
    id: hashSecret(`${iss} ${jti}`),
    clientId,
    expiresAt: Math.ceil(Number(exp)) + skewSeconds,
  }
}
