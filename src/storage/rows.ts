import { consentKind } from '../domain/connections.ts'
import type { GrantOwners } from '../domain/decision.ts'
import { clientLocked } from '../domain/grant.ts'
import type {
  AuditEvent,
  Client,
  ClientOrigin,
  Grant,
  GrantOfToken,
  Rejection,
  Session,
  StoredKey,
  User,
  UserAttributes,
} from '../domain/model.ts'
import { keptChallengeBytes } from '../domain/pkce.ts'
import type { RecordRow } from '../domain/record.ts'
import type { Tables } from './tables.ts'

/*
 * Row ↔ record, for both adapters. An absent member is NULL in a row that is read and not there at all in a record;
 * the adapters bind a member that a row leaves out as NULL. Lists are one text separated by spaces, which none of their
 * items can contain.
 */

/** A row without the number that the database gives it. */
type Row<T extends Exclude<keyof Tables, 'grants'>> = Omit<Tables[T]['$inferSelect'], 'seq'>

/** A grant that is written. The numbers of its client and its user are looked up by their ids. */
type GrantRow = Omit<Tables['grants']['$inferSelect'], 'clientSeq' | 'userSeq'> & {
  readonly clientSeq: number | null
  readonly userSeq: number | null
}
/** A grant with the time its user was locked. Its client or user is absent if it was deleted. */
type FoundGrantRow = Omit<GrantRow, 'clientSeq' | 'userSeq'> & {
  readonly clientId: string | null
  /** NULL: no user approved it. */
  readonly userSeq: number | null
  readonly userId: string | null
  readonly userLockedAt: number | null
  readonly clientLockedAt: number | null
}
/** What is read of it for one token, with the id of that token when it was revoked by itself. */
type FoundGrantOfTokenRow = Omit<FoundGrantRow, 'id' | MemberOfCode> & {
  readonly revokedToken: string | null
  readonly clientOrigin: ClientOrigin | null
  readonly clientMetadata: string | null
}

/** The members of a grant that only its code and its next tokens need. */
type MemberOfCode = 'redirectUriSent' | 'codeChallenge' | 'nonce' | 'authTimeOwed' | 'absoluteExpiresAt'

/** A row to write. A member that may be NULL may be left out. */
type Values<R> = {
  [M in keyof R as null extends R[M] ? never : M]: R[M]
} & { [M in keyof R as null extends R[M] ? M : never]?: R[M] | undefined }

type Mutable<T> = { -readonly [M in keyof T]: T[M] }

/** Converts a client to its row. */
export function clientRow({
  id,
  origin,
  issuedAt,
  usedAt,
  lockedAt,
  ...metadata
}: Client): Values<Row<'clients'>> {
  return { id, origin, issuedAt, usedAt, lockedAt, metadata: JSON.stringify(metadata) }
}

/** Converts a row to a client. */
export function toClient({ id, origin, issuedAt, usedAt, lockedAt, metadata }: Row<'clients'>): Client {
  return { id, origin, issuedAt, usedAt, ...(lockedAt !== null && { lockedAt }), ...metadataOf(metadata) }
}

type Metadata = Omit<Client, keyof Row<'clients'>>

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

/** Converts a user to its row. */
export function userRow({ claims, attributes, ...user }: User): Values<Row<'users'>> {
  return {
    ...user,
    claims: JSON.stringify(claims),
    ...(attributes !== undefined && { attributes: JSON.stringify(attributes) }),
  }
}

/** Converts a row to a user. */
export function toUser(row: Row<'users'>): User {
  const { id, username, email, passwordHash, claims, attributes, seeded } = row
  const { lockedAt, createdAt, updatedAt } = row
  return {
    id,
    username,
    claims: JSON.parse(claims) as User['claims'],
    seeded,
    createdAt,
    updatedAt,
    // One by one, not through `omitNull`: every UserInfo request comes this way.
    ...(email !== null && { email }),
    ...(passwordHash !== null && { passwordHash }),
    ...(attributes !== null && { attributes: JSON.parse(attributes) as UserAttributes }),
    ...(lockedAt !== null && { lockedAt }),
  }
}

/** Converts a record to its row. */
export function recordRow({ id, ...row }: RecordRow) {
  return { ...row, id: recordKey(id) }
}

/** Converts the id of a record to the key of its row. */
export function recordKey(id: string): Buffer {
  return Buffer.from(id)
}

/** Returns the range of the keys that begin with a text. No text in UTF-8 has the byte 0xff. */
export function rangeOf(prefix: string, after = prefix): { readonly after: Buffer; readonly end: Buffer } {
  return { after: recordKey(after), end: Buffer.concat([recordKey(prefix), Buffer.from([0xff])]) }
}

/** Converts a session to its row. */
export function sessionRow(session: Session): Values<Row<'sessions'>> {
  return { ...session, ...sessionMethods(session.methods) }
}

/** Converts the methods of a session to their column. */
export function sessionMethods(methods: readonly string[]): Pick<Row<'sessions'>, 'methods'> {
  return { methods: joined(methods) }
}

/** Converts a row to a session. */
export function toSession({ browser, from, ...row }: Row<'sessions'>): Session {
  return {
    ...row,
    methods: words(row.methods),
    ...(browser !== null && { browser }),
    ...(from !== null && { from }),
  }
}

/** The members of a grant that are stored together, because few grants have any of them. */
type RareMembers = Partial<Pick<Grant, 'claims' | 'acr' | 'extra' | 'exchangedFrom'>>

const noClaims: Grant['claims'] = { userinfo: [], idToken: [] }

/**
 * The row of a grant, with a place for the numbers of its client and its user; its revoked access tokens are rows of
 * their own. One literal, because a copy that grows member by member takes twice as long.
 */
export function grantRow(grant: Grant, owners?: GrantOwners): Values<GrantRow> {
  const { claims, acr, extra, exchangedFrom, codeChallenge, nonce } = grant
  const id = packed(grant.id, 12)
  const isPlain = claims.userinfo.length + claims.idToken.length === 0
  const hasRare = !isPlain || acr !== undefined || extra !== undefined || exchangedFrom !== undefined
  const { refreshExpiresAt, expiresAt } = grantEnds(grant)
  return {
    id,
    secret: packed(grant.secret, 16),
    clientSeq: owners?.clientSeq,
    userSeq: owners?.userSeq,
    scope: joined(grant.scope),
    resource: joined(grant.resource),
    redirectUri: grant.redirectUri,
    redirectUriSent: grant.redirectUriSent,
    codeChallenge: codeChallenge === undefined ? undefined : packedHash(codeChallenge),
    nonce: nonce === undefined ? undefined : Buffer.from(nonce),
    authenticatedAt: grant.authenticatedAt,
    methods: joined(grant.methods),
    authTimeOwed: grant.authTimeOwed,
    extra: hasRare
      ? JSON.stringify({ claims: isPlain ? undefined : claims, acr, extra, exchangedFrom })
      : null,
    approvedAt: grant.approvedAt === instantOf(id) ? null : grant.approvedAt,
    seq: grant.seq,
    rotatedAt: grant.rotatedAt,
    refreshExpiresAt,
    absoluteExpiresAt: grant.absoluteExpiresAt,
    expiresAt,
    revokedAt: grant.revokedAt,
    revokedBy: grant.revokedBy,
  }
}

/** When a grant ends, in columns: mostly with its refresh token. */
export function grantEnds({ refreshExpiresAt, expiresAt }: Pick<Grant, 'refreshExpiresAt' | 'expiresAt'>) {
  return {
    refreshExpiresAt: refreshExpiresAt ?? null,
    expiresAt: expiresAt === refreshExpiresAt ? null : expiresAt,
  }
}

/** The grant of a row; none, when its client or its user is gone. */
export function toGrant(row: FoundGrantRow): Grant | undefined {
  return toGrantOfKey(row, row.id)
}

/** The grant of a row that was read by the key of the grant. */
export function toGrantOfKey(row: Omit<FoundGrantRow, 'id'>, key: Buffer): Grant | undefined {
  const grant = commonMembers(row, key) as Mutable<Grant> | undefined // the others follow
  if (grant === undefined) return undefined
  grant.redirectUriSent = row.redirectUriSent
  grant.authTimeOwed = row.authTimeOwed
  grant.absoluteExpiresAt = row.absoluteExpiresAt
  if (row.codeChallenge !== null) grant.codeChallenge = unpackedHash(row.codeChallenge)
  if (row.nonce !== null) grant.nonce = row.nonce.toString()
  return grant
}

/** The grant of a row that was read for one token, by the key of the grant. */
export function toGrantOfToken(row: FoundGrantOfTokenRow, key: Buffer): GrantOfToken | undefined {
  const grant = commonMembers(row, key) as Mutable<GrantOfToken> | undefined // the last one follows
  if (grant === undefined || row.clientOrigin === null || row.clientMetadata === null) return undefined
  grant.revokedTokens = row.revokedToken === null ? [] : [row.revokedToken]
  const { scope, resources, grantTypes, extra } = metadataOf(row.clientMetadata)
  grant.client = { origin: row.clientOrigin, scope, resources, grantTypes, extra }
  return grant
}

type CommonMembers = Mutable<Omit<GrantOfToken, 'revokedTokens' | 'client'>>

/** While its user or its client is locked a grant reads as revoked by the lock. */
function commonMembers(
  row: Omit<FoundGrantRow, 'id' | MemberOfCode>,
  key: Buffer,
): CommonMembers | undefined {
  if (row.clientId === null || (row.userId === null && row.userSeq !== null)) return undefined
  const grant: CommonMembers = {
    id: key.toString('base64url'),
    secret: row.secret.toString('base64url'),
    clientId: row.clientId,
    scope: words(row.scope),
    resource: words(row.resource),
    redirectUri: row.redirectUri,
    authenticatedAt: row.authenticatedAt,
    methods: words(row.methods),
    claims: noClaims,
    approvedAt: row.approvedAt ?? instantOf(key),
    seq: row.seq,
    expiresAt: row.expiresAt ?? row.refreshExpiresAt ?? 0,
  }
  // One by one: this is the hot read, and each `...(is && { member })` would copy what is there already.
  if (row.userId !== null) grant.userId = row.userId
  if (row.rotatedAt !== null) grant.rotatedAt = row.rotatedAt
  if (row.refreshExpiresAt !== null) grant.refreshExpiresAt = row.refreshExpiresAt
  const revokedAt = row.revokedAt ?? row.userLockedAt ?? row.clientLockedAt
  if (revokedAt !== null) {
    grant.revokedAt = revokedAt
    grant.revokedBy = row.revokedBy ?? lockRule(row)
  }
  if (row.extra !== null) Object.assign(grant, JSON.parse(row.extra) as RareMembers)
  return grant
}

/** The rule by which a lock ends grants. */
function lockRule({ userLockedAt }: Pick<FoundGrantRow, 'userLockedAt'>): string {
  return userLockedAt === null ? clientLocked : 'lychgate-account-locked'
}

/** Splits `grantOfTokenKey(grantId, tokenId)`; undefined when the first part is no key of a grant. */
export function grantOfTokenValues(
  key: string,
): { readonly key: Buffer; readonly tokenId: string } | undefined {
  const at = key.indexOf(' ')
  const grant = grantKey(key.slice(0, at))
  return grant && { key: grant, tokenId: key.slice(at + 1) }
}

/** Splits `sessionConsentKey(session, clientId)`. */
export function sessionConsentValues(key: string) {
  const [sessionId = '', userId = ''] = key.split(' ', 2)
  const consentId = key.slice(sessionId.length + 1)
  const clientId = consentId.slice(userId.length + 1)
  return { sessionId, userId, clientId, kind: consentKind.name, consentId: recordKey(consentId) }
}

/** Converts the id of a grant to its primary key; undefined for a text that cannot be one. */
export function grantKey(id: string): Buffer | undefined {
  const bytes = Buffer.from(id, 'base64url')
  return bytes.length === 12 && bytes.toString('base64url') === id ? bytes : undefined
}

/** The instant a grant id begins with, see `mintGrantId`. */
function instantOf(id: Buffer): number {
  return id.readUInt32BE(0)
}

/** Converts a row to a key. */
export function toKey({ publicJwk, retiredAt, ...row }: Row<'keys'>): StoredKey {
  return { ...row, ...omitNull({ publicJwk, retiredAt }) }
}

/** Converts a rejection to its row, which the database numbers. */
export function rejectionRow({ id, at, ...facts }: Rejection): Row<'rejections'> {
  return { id, at, facts: JSON.stringify(facts) }
}

/** Converts a row to a rejection. */
export function toRejection({ id, at, facts }: Row<'rejections'>): Rejection {
  return { id, at, ...(JSON.parse(facts) as Omit<Rejection, 'id' | 'at'>) }
}

/** Converts an audit event to its row, which the database numbers. */
export function auditEventRow({
  by,
  from = '',
  facts,
  userAgent: _,
  ...event
}: AuditEvent): Values<Row<'auditEvents'>> {
  return { ...event, facts: JSON.stringify([by, from, facts]) }
}

/** Converts a row to an audit event. */
export function toAuditEvent({ name, at, userId, clientId, facts: text }: Row<'auditEvents'>): AuditEvent {
  const [by, from, facts] = JSON.parse(text) as [AuditEvent['by'], string, AuditEvent['facts']]
  return { name, at, by, ...(from !== '' && { from }), ...omitNull({ userId, clientId }), facts }
}

/** The members that are not null. */
function omitNull<T extends object>(members: T): { [K in keyof T]?: NonNullable<T[K]> } {
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
 * A SHA-256 in base64url, or what is kept of one, becomes its bytes. Any other text (a code challenge that is no
 * hash, say) stays as it is; it cannot be taken for a hash, because a code challenge has 43 characters or more, RFC
 * 7636 §4.2.
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
