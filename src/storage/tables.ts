import { sql } from 'drizzle-orm'
import { blob, index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import type { AuditEvent, Client, StoredKey } from '../domain/model.ts'

/** The parts of a table in SQLite's dialect. */
export const sqliteColumns = {
  table: sqliteTable,
  text,
  /** Text in the order of its bytes, so that a range of it is what begins with a text. */
  orderedText: (name: string) => text(name),
  integer: (name: string) => integer(name),
  bool: (name: string) => integer(name, { mode: 'boolean' }),
  bytes: (name: string) => blob(name, { mode: 'buffer' }),
  /** Numbers rows in the order of writing. */
  seq: () => integer('seq').primaryKey(),
  /** The same, and no number is given again. */
  lastingSeq: () => integer('seq').primaryKey({ autoIncrement: true }),
  index,
  primaryKey,
}

export type Columns = typeof sqliteColumns

export type Tables = ReturnType<typeof defineTables>

/**
 * The tables, for both databases. After a change run `npm run generate -- migrations`.
 *
 * There are no foreign keys: a grant of a removed client or user is not found any more and is swept when it expires,
 * where a cascade would need two more indexes on the hottest table.
 */
export function defineTables({
  table,
  text,
  orderedText,
  integer,
  bool,
  bytes,
  seq,
  lastingSeq,
  index,
  primaryKey,
}: Columns) {
  const clients = table(
    'clients',
    {
      seq: lastingSeq(),
      id: text('id').notNull().unique('clients_id'),
      origin: text('origin').$type<Client['origin']>().notNull(),
      issuedAt: integer('issued_at').notNull(),
      usedAt: integer('used_at').notNull(),
      /** JSON of every other member. */
      metadata: text('metadata').notNull(),
      lockedAt: integer('locked_at'),
    },
    (row) => [
      // They hold only what the sweep looks for: the first use moves a client from one to the other.
      index('clients_never_used').on(row.issuedAt).where(sql`origin = 'registered' and used_at = issued_at`),
      index('clients_idle').on(row.usedAt).where(sql`origin = 'registered' and used_at > issued_at`),
    ],
  )

  const users = table(
    'users',
    {
      seq: lastingSeq(),
      id: text('id').notNull().unique('users_id'),
      username: orderedText('username').notNull().unique('users_username'),
      email: orderedText('email').unique('users_email'),
      passwordHash: text('password_hash'),
      claims: text('claims').notNull(),
      attributes: text('attributes'),
      seeded: bool('seeded').notNull(),
      lockedAt: integer('locked_at'),
      createdAt: integer('created_at').notNull(),
      updatedAt: integer('updated_at').notNull(),
    },
    (row) => [
      // Empty in production: a start reads it to reject a database with development users.
      index('users_seeded').on(row.username).where(sql`seeded`),
      // A list of either kind reads nothing of the other, however many there are.
      index('users_locked').on(row.seq).where(sql`locked_at is not null`),
      index('users_unlocked').on(row.seq).where(sql`locked_at is null`),
    ],
  )

  const sessions = table(
    'sessions',
    {
      id: text('id').primaryKey(),
      userId: text('user_id').notNull(),
      authenticatedAt: integer('authenticated_at').notNull(),
      methods: text('methods').notNull(),
      browser: text('browser'),
      from: text('signed_in_from'),
      createdAt: integer('created_at').notNull(),
      idleExpiresAt: integer('idle_expires_at').notNull(),
      expiresAt: integer('expires_at').notNull(),
    },
    (row) => [
      index('sessions_user_id').on(row.userId),
      // The idle end is never after the absolute one, so it alone decides when the row can go.
      index('sessions_idle_expires_at').on(row.idleExpiresAt),
    ],
  )

  /**
   * The hot table: one row a grant, absent members NULL, and nothing stored that follows from other columns, because
   * there may be millions. Client and user by their numbers, which are never given again; 0 for one that is gone.
   * In addition to its key it has one index, by which an account page finds them: no redemption, rotation or revocation
   * touches it.
   */
  const grants = table(
    'grants',
    {
      id: bytes('id').primaryKey(),
      secret: bytes('secret').notNull(),
      clientSeq: integer('client_seq').notNull(),
      /** NULL: no user approved it; the client acts for itself. */
      userSeq: integer('user_seq'),
      scope: text('scope').notNull(),
      resource: text('resource').notNull(),
      redirectUri: text('redirect_uri').notNull(),
      redirectUriSent: bool('redirect_uri_sent').notNull(),
      /** Until the redemption; its first bytes after. */
      codeChallenge: bytes('code_challenge'),
      /** Until the redemption. Bytes, because a client may send what PostgreSQL rejects in text (U+0000). */
      nonce: bytes('nonce'),
      authenticatedAt: integer('authenticated_at').notNull(),
      methods: text('methods').notNull(),
      authTimeOwed: bool('auth_time_owed').notNull(),
      /** JSON of the members that most grants do not have. One column for all: each column is a byte in every row. */
      extra: text('extra'),
      /** NULL: the instant in its id. */
      approvedAt: integer('approved_at'),
      seq: integer('seq').notNull(),
      rotatedAt: integer('rotated_at'),
      refreshExpiresAt: integer('refresh_expires_at'),
      absoluteExpiresAt: integer('absolute_expires_at').notNull(),
      /** NULL: with its refresh token. */
      expiresAt: integer('expires_at'),
      revokedAt: integer('revoked_at'),
      revokedBy: text('revoked_by'),
    },
    (row) => [index('grants_user_seq').on(row.userSeq)],
  )

  const revokedAccessTokens = table(
    'revoked_access_tokens',
    {
      grantId: bytes('grant_id').notNull(),
      tokenId: text('token_id').notNull(),
      expiresAt: integer('expires_at').notNull(),
    },
    (row) => [
      primaryKey({ columns: [row.grantId, row.tokenId] }),
      index('revoked_access_tokens_expires_at').on(row.expiresAt),
    ],
  )

  const keys = table('keys', {
    id: text('id').primaryKey(),
    kind: text('kind').$type<StoredKey['kind']>().notNull(),
    algorithm: text('algorithm').$type<StoredKey['algorithm']>().notNull(),
    publicJwk: text('public_jwk'),
    sealedPrivate: text('sealed_private').notNull(),
    createdAt: integer('created_at').notNull(),
    activeAt: integer('active_at').notNull(),
    retiredAt: integer('retired_at'),
  })

  /** Everything that is not hot: see domain/record.ts. */
  const records = table(
    'records',
    {
      kind: text('kind').notNull(),
      /** Bytes, because it may contain what a user typed. */
      id: bytes('id').notNull(),
      userId: text('user_id'),
      clientId: text('client_id'),
      madeAt: integer('made_at'),
      expiresAt: integer('expires_at'),
      body: text('body').notNull(),
    },
    (row) => [
      primaryKey({ columns: [row.kind, row.id] }),
      index('records_user_id').on(row.userId, row.kind).where(sql`user_id is not null`),
      index('records_client_id').on(row.clientId).where(sql`client_id is not null`),
      index('records_expires_at').on(row.expiresAt).where(sql`expires_at is not null`),
    ],
  )

  /** A ring: the sweep keeps the newest by number. A table, because records have no order of writing. */
  const rejections = table('rejections', {
    seq: seq(),
    id: text('id').notNull().unique('rejections_id'),
    at: integer('at').notNull(),
    /** JSON of every other member. */
    facts: text('facts').notNull(),
  })

  /** Append-only, numbered in the order of writing. */
  const auditEvents = table(
    'audit_events',
    {
      seq: seq(),
      at: integer('at').notNull(),
      name: text('name').$type<AuditEvent['name']>().notNull(),
      userId: text('user_id'),
      clientId: text('client_id'),
      /** JSON of every other member. */
      facts: text('facts').notNull(),
    },
    (row) => [index('audit_events_user_id').on(row.userId, row.seq)],
  )

  return { clients, users, sessions, grants, revokedAccessTokens, keys, records, rejections, auditEvents }
}
