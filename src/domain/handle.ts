import { timingSafeEqual } from 'node:crypto'
import type { Confirmation } from './confirmation.ts'
import { hmac } from './hmac.ts'
import type { Grant, Scope, Seconds } from './model.ts'

/**
 * Sealed handles: the form of codes, refresh tokens and access tokens (RFC 6749 §10.3, §10.10). A handle names its
 * grant and has two tags: one by a key of the key ring, checked before any look-up, so that garbage never reaches the
 * database, and one by the grant's secret, checked against the row. Neither a leaked database nor a leaked key suffices
 * to forge one. Handles are not stored, the same contents always give the same handle, and a handle contains nothing of
 * the request, not even its code_challenge (RFC 7636 §4.4).
 *
 *     prefix · base64url( kind 1 · key 1 · grant 12 · seq 4 · issuedAt 4 · expiresAt 4 · more n · key tag 16 · grant tag 16 )
 *
 * `more` is text in lines: nothing; the confirmation; scope and resource; or scope, resource and the confirmation.
 */
export type HandleKind = 'code' | 'refresh' | 'access'

export interface Handle {
  readonly kind: HandleKind
  readonly grantId: string
  /** The `seq` of the grant when it was issued. */
  readonly seq: number
  readonly issuedAt: Seconds
  readonly expiresAt: Seconds
  /** An access token that may do less than its grant. */
  readonly narrowing?: { readonly scope: Scope; readonly resource: readonly string[] } | undefined
  /** The key of the client that the token is bound to. */
  readonly confirmation?: Confirmation | undefined
}

/** A handle whose key tag is valid; its grant tag still has to be checked with `handleBelongsTo`. */
export interface OpenedHandle extends Handle {
  /** Names one access token, for its revocation: the key tag, base64url. */
  readonly tokenId: string
  /** Whether its grant tag was made with this secret of a grant. */
  hasTagOf(grantSecret: string): boolean
}

/** A symmetric key of the key ring; `id` is one byte. */
export interface HandleKey {
  readonly id: number
  /** 32 random bytes, base64url. Text, because HMAC takes it five times faster than bytes. */
  readonly secret: string
}

/** The keys handles are made and read with; `current` seals. */
export interface HandleKeys {
  readonly current: HandleKey
  find(id: number): HandleKey | undefined
}

/** Scannable prefixes: a leaked secret names its kind. */
export const handlePrefix: Readonly<Record<HandleKind, string>> = {
  code: 'lyc_code_',
  refresh: 'lyc_refresh_',
  access: 'lyc_access_',
}

const kindByte: Readonly<Record<HandleKind, number>> = { code: 1, refresh: 2, access: 3 }
const headBytes = 26
const grantIdBytes = 12
const tagBytes = 16
/** Longest accepted handle, in characters: longer text is not worth decoding. */
const longestHandle = 8192

/**
 * The text a client receives for these contents. Deterministic.
 * @throws {TypeError} for an id that is not a grant id: the rest of the buffer would be uninitialised memory.
 */
export function sealHandle(handle: Handle, key: HandleKey, grantSecret: string): string {
  const text = moreOf(handle)
  const more = text === undefined ? undefined : Buffer.from(text)
  const signedBytes = headBytes + (more?.length ?? 0)
  // Every byte of it is written below.
  const bytes = Buffer.allocUnsafe(signedBytes + 2 * tagBytes)
  bytes[0] = kindByte[handle.kind]
  bytes[1] = key.id
  if (bytes.write(handle.grantId, 2, grantIdBytes, 'base64url') !== grantIdBytes)
    throw new TypeError('not the id of a grant')
  bytes.writeUInt32BE(handle.seq, 14)
  bytes.writeUInt32BE(handle.issuedAt, 18)
  bytes.writeUInt32BE(handle.expiresAt, 22)
  if (more) more.copy(bytes, headBytes)
  const signed = bytes.subarray(0, signedBytes)
  bytes.write(tag(key.secret, signed), signedBytes, tagBytes, 'latin1')
  bytes.write(tag(grantSecret, signed), signedBytes + tagBytes, tagBytes, 'latin1')
  return handlePrefix[handle.kind] + bytes.toString('base64url')
}

/** The contents of a handle that was just sealed, as `openHandle` would return them. */
export function openedAs(handle: Handle, text: string, grantSecret: string): OpenedHandle {
  return { ...handle, tokenId: tokenIdOf(text, handle.kind), hasTagOf: (secret) => secret === grantSecret }
}

/** The contents of a handle of one of these kinds, if it was sealed by one of these keys; otherwise undefined. */
export function openHandle(
  keys: HandleKeys,
  text: string,
  ...kinds: readonly HandleKind[]
): OpenedHandle | undefined {
  const kind = kinds.find((candidate) => text.startsWith(handlePrefix[candidate]))
  if (kind === undefined || text.length > longestHandle) return undefined
  const encoded = text.slice(handlePrefix[kind].length)
  const bytes = Buffer.from(encoded, 'base64url')
  // A decoder that skips invalid characters would accept many spellings of one token; accept the canonical one only.
  if (bytes.length < headBytes + 2 * tagBytes || bytes.toString('base64url') !== encoded) return undefined
  const key = keys.find(bytes[1] as number)
  const signed = bytes.subarray(0, bytes.length - 2 * tagBytes)
  const keyTag = bytes.subarray(signed.length, signed.length + tagBytes)
  if (bytes[0] !== kindByte[kind] || !key || !isTag(keyTag, key.secret, signed)) return undefined
  const lines = signed.length === headBytes ? [] : signed.subarray(headBytes).toString().split('\n')
  const [scope, resource] = lines
  const confirmation = lines.length % 2 === 0 ? undefined : lines.at(-1)
  return {
    kind,
    grantId: signed.toString('base64url', 2, 2 + grantIdBytes),
    seq: signed.readUInt32BE(14),
    issuedAt: signed.readUInt32BE(18),
    expiresAt: signed.readUInt32BE(22),
    ...(resource !== undefined && { narrowing: { scope: words(scope), resource: words(resource) } }),
    ...(confirmation !== undefined && { confirmation: JSON.parse(confirmation) }),
    tokenId: keyTag.toString('base64url'),
    hasTagOf: grantTagOf(signed, bytes.subarray(signed.length + tagBytes)),
  }
}

/**
 * Verifies a grant tag in constant time, until a secret matches. The secret of a grant never changes and no other makes
 * the same tag, so from then on this secret is compared: both are the server's own, and time says nothing about the tag.
 */
function grantTagOf(signed: Buffer, grantTag: Buffer): OpenedHandle['hasTagOf'] {
  let verified: string | undefined
  let bytes: readonly [Buffer, Buffer] | undefined = [grantTag, signed]
  return (secret) => {
    if (bytes === undefined) return secret === verified
    if (!isTag(bytes[0], secret, bytes[1])) return false
    verified = secret
    // Views of a larger buffer, which could not be freed as long as the handle is kept.
    bytes = undefined
    return true
  }
}

/** Returns the id of the key that a handle names. Nothing is verified. */
export function keyIdOf(text: string): number | undefined {
  const prefix = Object.values(handlePrefix).find((candidate) => text.startsWith(candidate))
  if (prefix === undefined) return undefined
  return Buffer.from(text.slice(prefix.length, prefix.length + 4), 'base64url')[1]
}

/** The id of a handle just sealed, the same `openHandle` will find. */
export function tokenIdOf(text: string, kind: HandleKind = 'access'): string {
  return Buffer.from(text.slice(handlePrefix[kind].length), 'base64url')
    .subarray(-2 * tagBytes, -tagBytes)
    .toString('base64url')
}

/** Whether an opened handle was made with this grant's own secret. */
export function handleBelongsTo(handle: OpenedHandle, grant: Pick<Grant, 'id' | 'secret'>): boolean {
  return handle.grantId === grant.id && handle.hasTagOf(grant.secret)
}

/** Returns the optional body of a handle. */
function moreOf({ narrowing, confirmation }: Handle): string | undefined {
  if (narrowing === undefined && confirmation === undefined) return undefined
  const lines = [
    ...(narrowing === undefined ? [] : [narrowing.scope.join(' '), narrowing.resource.join(' ')]),
    ...(confirmation === undefined ? [] : [JSON.stringify(confirmation)]),
  ]
  return lines.join('\n')
}

function words(text: string | undefined): readonly string[] {
  return text ? text.split(' ') : []
}

function isTag(bytes: Buffer, secret: string, signed: Buffer): boolean {
  return timingSafeEqual(bytes, Buffer.from(tag(secret, signed), 'latin1'))
}

function tag(secret: string, signed: Buffer): string {
  return hmac(secret, signed).slice(0, tagBytes)
}
