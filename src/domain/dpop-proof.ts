import { hash, type KeyObject } from 'node:crypto'
import { check } from './check.ts'
import { isSameKey } from './confirmation.ts'
import { isInstant, type Jws, parseJws, shown, verifies } from './jws.ts'
import {
  algorithmNamed,
  algorithmOf,
  type ClientAlgorithm,
  hasPrivatePart,
  type PublicKey,
  parseKey,
  prepareKey,
} from './key-set.ts'
import type { Seconds } from './model.ts'
import type { SingleUse } from './record.ts'
import { hashSecret } from './secret.ts'

declare module './errors.ts' {
  interface FeatureErrors {
    /** RFC 9449 §5: 400 at the authorization server; an API responds 401, RFC 9449 §7.1. */
    invalid_dpop_proof: 400
    /** RFC 9449 §8 and §9. */
    use_dpop_nonce: 400
  }
}

/** What a proof may be signed with: asymmetric, and without RS256, as for a new protocol there is no need of it. */
export const proofAlgorithms: readonly string[] = ['ES256', 'PS256', 'EdDSA', 'Ed25519']
const longestProof = 8192
const longestJti = 256
const longestUrl = 2048
const nonceSeconds = 30

/** How far `iat` of a proof may be from the clock of the server, check 11 of RFC 9449 §4.3. */
export interface ProofWindow {
  readonly pastSeconds: Seconds
  readonly aheadSeconds: Seconds
}

/** A proof is used within a minute, and the clock of its client differs by 10 seconds at most. */
const defaultWindow: ProofWindow = { pastSeconds: 70, aheadSeconds: 10 }

/** A parsed proof of possession of a key, RFC 9449 §4.2; its signature and its claims are still to be checked. */
export interface Proof {
  readonly jws: Jws
  readonly key: PublicKey
  readonly algorithm: ClientAlgorithm
  /** The key, ready to verify with. */
  readonly object: KeyObject
  /** The thumbprint of the key, RFC 7638 with SHA-256. */
  readonly jkt: string
}

/** The request that a proof must be for. */
export interface ProvenRequest {
  readonly method: string
  readonly url: string
  readonly now: Seconds
  readonly window?: ProofWindow | undefined
}

/**
 * Reads the DPoP header fields of a request, and checks what RFC 9449 §4.3 says about the form of a proof (checks 1,
 * 2, 4, 5 and 7).
 * @throws {OAuthError} `invalid_dpop_proof`
 */
export function readProof(fields: readonly string[]): Proof {
  const [field] = fields
  must(
    field !== undefined && fields.length === 1 && !field.includes(','),
    'rfc9449-4.3-single-header',
    'send one DPoP header with one proof',
    fields.length,
  )
  const jws = field.length <= longestProof ? parseJws(field) : undefined
  must(jws !== undefined, 'rfc9449-4.3-well-formed', 'the DPoP header is not one signed JWT', field.length)
  const { typ, alg, jwk, crit } = jws.header
  must(typ === 'dpop+jwt', 'rfc9449-4.3-typ', 'typ of the proof is not dpop+jwt', typ, 'dpop+jwt')
  const algorithm = proofAlgorithms.includes(String(alg)) ? algorithmNamed(alg) : undefined
  must(
    algorithm !== undefined,
    'rfc9449-4.3-alg',
    'alg of the proof is not one of dpop_signing_alg_values_supported',
    alg,
    proofAlgorithms,
  )
  must(!hasPrivatePart(jwk), 'rfc9449-4.3-private-key', 'jwk of the proof has a private or symmetric key')
  const key = parseKey(jwk)
  const prepared = key && prepareKey(key)
  must(
    key !== undefined &&
      prepared !== undefined &&
      crit === undefined &&
      algorithmOf(key, algorithm) === algorithm,
    'rfc9449-4.3-signature',
    'jwk of the proof is not a public key for alg',
    alg,
  )
  return { jws, key, algorithm, object: prepared.object, jkt: prepared.thumbprint }
}

/**
 * Checks that a proof is for this request, of now, and signed with its key: checks 3, 8, 9, 11 and 6 of RFC 9449 §4.3.
 * @throws {OAuthError} `invalid_dpop_proof`
 */
export function assertProof(
  { jws, key, algorithm, object }: Proof,
  { method, url, now, window = defaultWindow }: ProvenRequest,
): void {
  const { jti, htm, htu, iat } = jws.claims
  must(
    typeof jti === 'string' && jti !== '' && jti.length <= longestJti,
    'rfc9449-4.3-claims',
    `jti of the proof is missing or longer than ${longestJti} characters`,
    jti,
  )
  must(
    typeof htm === 'string' && typeof htu === 'string' && isInstant(iat),
    'rfc9449-4.3-claims',
    'the proof needs jti, htm, htu and iat',
    Object.keys(jws.claims).join(' '),
  )
  must(htm === method, 'rfc9449-4.3-htm', 'htm of the proof is not the method of the request', htm, method)
  must(
    htu === url || isSameUrl(htu, url),
    'rfc9449-4.3-htu',
    'htu of the proof is not the URL of the request',
    htu,
    url,
  )
  must(
    iat <= now + window.aheadSeconds && iat >= now - window.pastSeconds,
    'rfc9449-4.3-iat',
    'iat of the proof is too old, or in the future',
    iat,
    now,
  )
  must(
    verifies(algorithm, object, Buffer.from(jws.signed), jws.signature),
    'rfc9449-4.3-signature',
    'the signature of the proof is not that of its jwk',
    key.kty,
  )
}

/** A nonce for every half minute (RFC 9449 §8): the same on every node that has the secret of `mac`. */
export interface Nonces {
  current(now: Seconds): string
  /** Whether the nonce is of now, of the half minute before, or of the next one by the clock of another node. */
  accepts(nonce: unknown, now: Seconds): boolean
}

/** @param mac Returns an unpredictable text for a half minute. */
export function noncesBy(mac: (window: string) => string): Nonces {
  const windowOf = (now: Seconds) => Math.floor(now / nonceSeconds)
  let latest: { readonly window: number; readonly nonce: string } | undefined
  const nonceOf = (window: number) => {
    if (latest?.window !== window) latest = { window, nonce: mac(String(window)) }
    return latest.nonce
  }
  return {
    current: (now) => nonceOf(windowOf(now)),
    accepts: (nonce, now) =>
      nonce === nonceOf(windowOf(now)) || [-1, 1].some((step) => nonce === mac(String(windowOf(now) + step))),
  }
}

/**
 * Checks the nonce of a proof: check 10 of RFC 9449 §4.3.
 * @throws {OAuthError} `use_dpop_nonce`, with the nonce to use.
 */
export function assertNonce({ jws }: Proof, nonces: Nonces, now: Seconds): void {
  const { nonce } = jws.claims
  check(
    nonces.accepts(nonce, now),
    'rfc9449-4.3-nonce',
    'use_dpop_nonce',
    nonce === undefined ? 'the proof needs the nonce of DPoP-Nonce' : 'the nonce of the proof is over',
    {
      received: shown(nonce),
      headers: { 'dpop-nonce': nonces.current(now) },
      passed: 'the proof has a nonce of this server',
    },
  )
}

/**
 * Checks that a proof goes with an access token: check 12 of RFC 9449 §4.3.
 * @param confirmation The `cnf` of the token.
 * @throws {OAuthError} `invalid_dpop_proof`
 */
export function assertProofOfToken(
  { jws, jkt }: Proof,
  token: string,
  confirmation: Readonly<Record<string, string>>,
): void {
  const { ath } = jws.claims
  const expected = hash('sha256', token, 'base64url')
  must(ath === expected, 'rfc9449-4.3-ath', 'ath of the proof is not the hash of the access token', ath)
  must(
    isSameKey(confirmation, { jkt }),
    'rfc9449-4.3-bound-key',
    'the access token is bound to another key',
    jkt,
    confirmation['jkt'],
  )
}

/** Describes that a proof was used. Until this expires, the proof must not be used again, RFC 9449 §11.1. */
export function useOfProof({ jws, jkt }: Proof, { pastSeconds } = defaultWindow): SingleUse {
  const { jti, iat } = jws.claims
  return {
    id: hashSecret(JSON.stringify([jkt, jti])),
    expiresAt: Math.ceil(Number(iat)) + pastSeconds + 1,
  }
}

const mostRemembered = 100_000

/**
 * Remembers the proofs of one process, RFC 9449 §11.1: only those of valid tokens come here. Two sets take turns,
 * because a map from which the oldest are deleted one by one takes longer the more it had.
 * @returns a function that returns whether it sees a proof for the first time.
 */
export function proofMemory({
  pastSeconds,
  aheadSeconds,
} = defaultWindow): (proof: SingleUse, now: Seconds) => boolean {
  // A proof is accepted this long after its first use at most: its `iat` may be from a clock that is ahead.
  const acceptedSeconds = pastSeconds + aheadSeconds + 1
  let [recent, earlier, since] = [new Set<string>(), new Set<string>(), 0]
  return ({ id }, now) => {
    if (now - since > acceptedSeconds || recent.size >= mostRemembered)
      [recent, earlier, since] = [new Set(), recent, now]
    if (recent.has(id) || earlier.has(id)) return false
    recent.add(id)
    return true
  }
}

/** Checks that a proof is used for the first time. @throws {OAuthError} `invalid_dpop_proof` */
export function assertFirstUse(isFirst: boolean, { jws }: Proof): void {
  must(isFirst, 'rfc9449-11.1-jti-replay', 'jti of the proof was used before', jws.claims['jti'])
}

/** Returns the DPoP header fields of a request, each as it was sent. */
export function proofFields(rawHeaders: readonly string[]): readonly string[] {
  return rawHeaders.filter((_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === 'dpop')
}

function isSameUrl(one: string, other: string): boolean {
  const normal = normalizedUrl(one)
  return normal !== undefined && normal === normalizedUrl(other)
}

/**
 * Returns a URL without query and fragment in the normal form of RFC 3986 §6.2.2 and §6.2.3, for comparison.
 * @returns undefined for what is no such URL.
 */
export function normalizedUrl(text: string): string | undefined {
  const bare = text.replace(/[?#].*/s, '')
  if (bare.length > longestUrl || !/^[!-~]+$/.test(bare)) return undefined
  if (!/^https?:\/\/[^/\\@]+(?:\/[!-[\]-~]*)?$/i.test(bare)) return undefined
  if (/%(?![0-9a-f]{2})/i.test(bare)) return undefined
  const decoded = bare.replaceAll(/%[0-9a-f]{2}/gi, (octet) => {
    const character = String.fromCharCode(Number.parseInt(octet.slice(1), 16))
    return /[\w.~-]/.test(character) ? character : octet.toUpperCase()
  })
  return URL.canParse(bare) ? URL.parse(decoded)?.href : undefined
}

function must(
  ok: boolean,
  rule: string,
  description: string,
  received?: unknown,
  stored?: string | number | readonly string[],
): asserts ok {
  check(ok, rule, 'invalid_dpop_proof', description, { stored, received: shown(received) })
}
