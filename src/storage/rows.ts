import type {
  AuditEvent,
  AuthorizationRequest,
  Client,
  Consent,
  Grant,
  GrantOfToken,
  Interaction,
  OneTimeLink,
  PageRequest,
  Passkey,
  PendingSecondFactor,
  Rejection,
  SecondFactor,
  Session,
  StoredKey,
  Throttle,
  User,
} from '../domain/model.ts'
import { keptChallengeBytes } from '../domain/pkce.ts'
import type * as table from './sqlite/schema.ts'
import type { AuditFilter, Connections } from './store.ts'

/*
 * Row ↔ record, for both adapters. This is where null stops: an absent member is NULL in a row and is not there at
 * all in a record. Lists are one text separated by spaces, which none of their items can contain.
 */

export type ClientRow = Omit<typeof table.clients.$inferSelect, 'seq'>
export type UserRow = Omit<typeof table.accounts.$inferSelect, 'seq'>
export type PasskeyRow = typeof table.passkeys.$inferSelect
export type SecondFactorRow = typeof table.secondFactors.$inferSelect
export type LinkRow = typeof table.oneTimeLinks.$inferSelect
export type SessionRow = typeof table.sessions.$inferSelect
export type InteractionRow = typeof table.interactions.$inferSelect
export type ConsentRow = typeof table.consents.$inferSelect
/** A grant with the ids of its client and its user, which the statements turn into numbers. */
export type GrantRow = Omit<typeof table.grants.$inferSelect, 'clientSeq' | 'userSeq'> & {
  readonly clientId: string
  readonly userId: string
}
/** A grant as it is read, with the time its user was locked; without a client or a user that is gone. */
export type FoundGrantRow = Omit<GrantRow, 'clientId' | 'userId'> & {
  readonly clientId: string | null
  readonly userId: string | null
  readonly userLockedAt: number | null
}
/** The same with the id of the token it is read for, when that was revoked by itself. */
export type FoundGrantOfTokenRow = FoundGrantRow & { readonly revokedToken: string | null }
export type KeyRow = typeof table.keys.$inferSelect
export type ThrottleRow = typeof table.throttles.$inferSelect
export type RejectionRow = Omit<typeof table.rejections.$inferSelect, 'seq'>
export type AuditEventRow = Omit<typeof table.auditEvents.$inferSelect, 'seq'>

/** The row of a client. */
export function clientRow({ id, origin, issuedAt, usedAt, ...metadata }: Client): ClientRow {
  return { id, origin, issuedAt, usedAt, metadata: JSON.stringify(metadata) }
}

/** The client of a row. */
export function toClient({ id, origin, issuedAt, usedAt, metadata }: ClientRow): Client {
  return { id, origin, issuedAt, usedAt, ...metadataOf(metadata) }
}

type Metadata = Omit<Client, keyof ClientRow>

/** Metadata by its text: each request reads its client, and most clients are the same few. */
const knownMetadata = new Map<string, Metadata>()
const mostKnown = 500
/** In characters, so that large registrations cannot fill the memory. */
const longestKnown = 4000

function metadataOf(text: string): Metadata {
  const known = knownMetadata.get(text)
  if (known !== undefined) return known
  const metadata = JSON.parse(text) as Metadata
  if (text.length > longestKnown) return metadata
  if (knownMetadata.size >= mostKnown) knownMetadata.clear()
  knownMetadata.set(text, metadata)
  return metadata
}

/** The row of an account. */
export function userRow(user: User): UserRow {
  return {
    ...user,
    email: user.email ?? null,
    passwordHash: user.passwordHash ?? null,
    claims: JSON.stringify(user.claims),
    lockedAt: user.lockedAt ?? null,
  }
}

/** The account of a row. */
export function toUser(found: typeof table.accounts.$inferSelect): User {
  const { id, username, email, passwordHash, claims, seeded, lockedAt, createdAt, updatedAt } = found
  return {
    id,
    username,
    claims: JSON.parse(claims) as User['claims'],
    seeded,
    createdAt,
    updatedAt,
    // One by one, not through `present`: every UserInfo request comes this way.
    ...(email !== null && { email }),
    ...(passwordHash !== null && { passwordHash }),
    ...(lockedAt !== null && { lockedAt }),
  }
}

/** The row of a passkey. */
export function passkeyRow(passkey: Passkey): PasskeyRow {
  return {
    ...passkey,
    publicKey: Buffer.from(passkey.publicKey, 'base64url'),
    transports: joined(passkey.transports),
  }
}

/** The passkey of a row. */
export function toPasskey(row: PasskeyRow): Passkey {
  return { ...row, publicKey: row.publicKey.toString('base64url'), transports: words(row.transports) }
}

/** The row of a second factor. */
export function secondFactorRow({ recoveryHashes, ...factor }: SecondFactor): SecondFactorRow {
  const { confirmedAt = null, usedStep = null } = factor
  return { ...factor, confirmedAt, usedStep, recoveryHashes: joined(recoveryHashes) }
}

/** The second factor of a row. */
export function toSecondFactor({ confirmedAt, usedStep, ...row }: SecondFactorRow): SecondFactor {
  return { ...row, recoveryHashes: words(row.recoveryHashes), ...omitUndefined({ confirmedAt, usedStep }) }
}

/** The row of a one-time link. */
export function linkRow(link: OneTimeLink): LinkRow {
  return { ...link, userId: link.userId ?? null, email: link.email ?? null }
}

/** The one-time link of a row. */
export function toLink({ userId, email, ...row }: LinkRow): OneTimeLink {
  return { ...row, ...omitUndefined({ userId, email }) }
}

/** The row of a session. */
export function sessionRow(session: Session): SessionRow {
  const { browser = null, from = null } = session
  return { ...session, browser, from, ...sessionMethods(session.methods) }
}

/** The methods of a session, as its row has them. */
export function sessionMethods(methods: readonly string[]): Pick<SessionRow, 'methods'> {
  return { methods: joined(methods) }
}

/** The session of a row. */
export function toSession({ browser, from, ...row }: SessionRow): Session {
  return { ...row, methods: words(row.methods), ...omitUndefined({ browser, from }) }
}

/** The row of an interaction. */
export function interactionRow({ pendingSecondFactor, ...interaction }: Interaction): InteractionRow {
  return {
    ...interaction,
    request: JSON.stringify(interaction.request),
    pendingSecondFactor: pendingSecondFactor === undefined ? null : JSON.stringify(pendingSecondFactor),
    challenge: interaction.challenge ?? null,
    authenticatedSessionId: interaction.authenticatedSessionId ?? null,
  }
}

/** The interaction of a row. */
export function toInteraction({
  request,
  pendingSecondFactor,
  challenge,
  authenticatedSessionId,
  ...row
}: InteractionRow): Interaction {
  return {
    ...row,
    request: JSON.parse(request) as AuthorizationRequest | PageRequest,
    ...(pendingSecondFactor !== null && {
      pendingSecondFactor: JSON.parse(pendingSecondFactor) as PendingSecondFactor,
    }),
    ...omitUndefined({ challenge, authenticatedSessionId }),
  }
}

/** The row of a remembered consent. */
export function consentRow(consent: Consent): ConsentRow {
  return { ...consent, allowed: JSON.stringify(consent.allowed) }
}

/** The remembered consent of a row. */
export function toConsent(row: ConsentRow): Consent {
  return { ...row, allowed: JSON.parse(row.allowed) as Consent['allowed'] }
}

/** The two halves of `consentKey(userId, clientId)`. */
export function consentOfKey(key: string): { readonly userId: string; readonly clientId: string } {
  const at = key.indexOf(' ')
  return { userId: key.slice(0, at), clientId: key.slice(at + 1) }
}

/** The row of a grant; its revoked access tokens are rows of their own. */
export function grantRow({ acr, ...grant }: Grant): GrantRow {
  const { userinfo, idToken } = grant.claims
  const id = packed(grant.id, 12)
  const isPlain = userinfo.length + idToken.length === 0 && acr === undefined
  return {
    ...grant,
    id,
    secret: packed(grant.secret, 16),
    scope: joined(grant.scope),
    resource: joined(grant.resource),
    codeChallenge: grant.codeChallenge === undefined ? null : packedHash(grant.codeChallenge),
    nonce: grant.nonce === undefined ? null : Buffer.from(grant.nonce),
    methods: joined(grant.methods),
    claims: isPlain ? null : JSON.stringify([userinfo, idToken, ...(acr === undefined ? [] : [acr])]),
    approvedAt: grant.approvedAt === instantOf(id) ? null : grant.approvedAt,
    rotatedAt: grant.rotatedAt ?? null,
    ...grantEnds(grant),
    revokedAt: grant.revokedAt ?? null,
    revokedBy: grant.revokedBy ?? null,
  }
}

/** When a grant ends, in columns: mostly with its refresh token. */
export function grantEnds({ refreshExpiresAt, expiresAt }: Pick<Grant, 'refreshExpiresAt' | 'expiresAt'>) {
  return {
    refreshExpiresAt: refreshExpiresAt ?? null,
    expiresAt: expiresAt === refreshExpiresAt ? null : expiresAt,
  }
}

/**
 * The grant of a row; none, when its client or its user is gone. While its user is locked it reads as revoked by the
 * lock, whatever the row says.
 */
export function toGrant(row: FoundGrantRow): Grant | undefined {
  if (row.clientId === null || row.userId === null) return undefined
  const revokedAt = row.revokedAt ?? row.userLockedAt
  const revokedBy = row.revokedBy ?? (row.userLockedAt === null ? null : lockedRule)
  const [userinfo, idToken, acr] = (row.claims === null ? [[], []] : JSON.parse(row.claims)) as [
    string[],
    string[],
    string?,
  ]
  return {
    id: row.id.toString('base64url'),
    secret: row.secret.toString('base64url'),
    clientId: row.clientId,
    userId: row.userId,
    scope: words(row.scope),
    resource: words(row.resource),
    redirectUri: row.redirectUri,
    redirectUriSent: row.redirectUriSent,
    authenticatedAt: row.authenticatedAt,
    methods: words(row.methods),
    authTimeOwed: row.authTimeOwed,
    claims: { userinfo, idToken },
    approvedAt: row.approvedAt ?? instantOf(row.id),
    seq: row.seq,
    absoluteExpiresAt: row.absoluteExpiresAt,
    expiresAt: row.expiresAt ?? row.refreshExpiresAt ?? 0,
    // One by one, not through `present`: this is the hot read.
    ...(acr !== undefined && { acr }),
    ...(row.codeChallenge && { codeChallenge: unpackedHash(row.codeChallenge) }),
    ...(row.nonce && { nonce: row.nonce.toString() }),
    ...(row.rotatedAt !== null && { rotatedAt: row.rotatedAt }),
    ...(row.refreshExpiresAt !== null && { refreshExpiresAt: row.refreshExpiresAt }),
    ...(revokedAt !== null && { revokedAt }),
    ...(revokedBy !== null && { revokedBy }),
  }
}

/** The rule by which a lock ends grants, an id of the requirement ledger. */
const lockedRule = 'lychgate-account-locked'

/** The grant of a row that was read for one token. */
export function toGrantOfToken({ revokedToken, ...row }: FoundGrantOfTokenRow): GrantOfToken | undefined {
  const grant = toGrant(row)
  return grant && { ...grant, revokedTokens: revokedToken === null ? [] : [revokedToken] }
}

/** The two halves of `grantOfTokenKey(grantId, tokenId)`; undefined when the first is no key of a grant. */
export function grantOfTokenValues(
  key: string,
): { readonly key: Buffer; readonly tokenId: string } | undefined {
  const at = key.indexOf(' ')
  const grant = grantKey(key.slice(0, at))
  return grant && { key: grant, tokenId: key.slice(at + 1) }
}

interface ConnectionRow {
  readonly clientId: string
  readonly grants: number
  readonly remembered: number
  /** Of all pages, on each row. */
  readonly total: number
}

/** One page of connections. */
export function toConnections(rows: readonly ConnectionRow[]): Connections {
  return {
    count: rows[0]?.total ?? 0,
    page: rows.map(({ clientId, grants, remembered }) => ({
      clientId,
      grants,
      remembered: remembered === 1,
    })),
  }
}

/** The primary key of a grant, or undefined for a text that cannot be one. */
export function grantKey(id: string): Buffer | undefined {
  const bytes = Buffer.from(id, 'base64url')
  return bytes.length === 12 && bytes.toString('base64url') === id ? bytes : undefined
}

/** The instant a grant id begins with, see `mintGrantId`. */
function instantOf(id: Buffer): number {
  return id.readUInt32BE(0)
}

/** The row of a key of the key ring. */
export function keyRow(key: StoredKey): KeyRow {
  return { ...key, publicJwk: key.publicJwk ?? null, retiredAt: key.retiredAt ?? null }
}

/** The key of a row. */
export function toKey({ publicJwk, retiredAt, ...row }: KeyRow): StoredKey {
  return { ...row, ...omitUndefined({ publicJwk, retiredAt }) }
}

/** The primary key of a throttle. */
export function throttleKey(key: string): Buffer {
  return Buffer.from(key)
}

/** The row of a throttle. */
export function throttleRow(throttle: Throttle): ThrottleRow {
  return { ...throttle, key: throttleKey(throttle.key) }
}

/** The throttle of a row. */
export function toThrottle(row: ThrottleRow): Throttle {
  return { ...row, key: row.key.toString() }
}

/** The row of a rejection; the database numbers it. */
export function rejectionRow({ id, at, ...facts }: Rejection): RejectionRow {
  return { id, at, facts: JSON.stringify(facts) }
}

/** The rejection of a row. */
export function toRejection({ id, at, facts }: RejectionRow): Rejection {
  return { id, at, ...(JSON.parse(facts) as Omit<Rejection, 'id' | 'at'>) }
}

/** The row of an audit event; the database numbers it. */
export function auditEventRow({ name, at, userId, clientId, ...facts }: AuditEvent): AuditEventRow {
  return {
    name,
    at,
    userId: userId ?? null,
    clientId: clientId ?? null,
    facts: JSON.stringify([facts.by, facts.from ?? '', facts.facts]),
  }
}

/** The audit event of a row. */
export function toAuditEvent({ name, at, userId, clientId, facts: text }: AuditEventRow): AuditEvent {
  const [by, from, facts] = JSON.parse(text) as [AuditEvent['by'], string, AuditEvent['facts']]
  return { name, at, by, ...(from !== '' && { from }), ...omitUndefined({ userId, clientId }), facts }
}

/** The values of an audit filter, an absent member as NULL. */
export function auditFilterRow({ since, limit, name, userId, clientId }: AuditFilter) {
  return {
    since,
    limit,
    name: name ?? null,
    userId: userId ?? null,
    clientId: clientId ?? null,
  }
}

/** The members that are not null. */
function omitUndefined<T extends object>(members: T): { [K in keyof T]?: NonNullable<T[K]> } {
  const kept: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(members)) if (value !== null) kept[name] = value
  return kept as { [K in keyof T]?: NonNullable<T[K]> } // the names of T, and no other
}

function words(text: string): readonly string[] {
  return text === '' ? [] : text.split(' ')
}

function joined(list: readonly string[]): string {
  return list.join(' ')
}

/** Half the size of the text. Another text of the same bytes is rejected: it would come back different. */
function packed(text: string, size: number): Buffer {
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.length !== size || bytes.toString('base64url') !== text) {
    throw new TypeError(`not ${size} bytes of base64url`)
  }
  return bytes
}

/**
 * A SHA-256 in base64url, or what is kept of one, becomes its bytes. Any other text (a code challenge that is no hash,
 * say) stays as it is; it cannot be taken for a hash, because a code challenge has 43 characters or more, RFC 7636 §4.2.
 */
function packedHash(text: string): Buffer {
  const bytes = Buffer.from(text, 'base64url')
  if (isHash(bytes) && bytes.toString('base64url') === text) return bytes
  const characters = Buffer.from(text)
  if (isHash(characters)) throw new TypeError('neither a hash nor longer than one')
  return characters
}

function unpackedHash(bytes: Buffer): string {
  return bytes.toString(isHash(bytes) ? 'base64url' : 'utf8')
}

function isHash({ length }: Buffer): boolean {
  return length === 32 || length === keptChallengeBytes
}
