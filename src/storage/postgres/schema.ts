import { bigint, bigserial, boolean, customType, index, pgTable, primaryKey, text } from 'drizzle-orm/pg-core'
import { sql } from 'drizzle-orm/sql'
import type { AuditEvent, Client, OneTimeLink, StoredKey } from '../../domain/model.ts'

/*
 * The tables of sqlite/schema.ts in PostgreSQL's dialect: same tables, same columns, same JavaScript types, so that
 * rows.ts serves both. A test compares them.
 */
const bytes = customType<{ data: Buffer }>({ dataType: () => 'bytea' })
const bool = boolean
const integer = (name: string) => bigint(name, { mode: 'number' })

export const clients = pgTable(
  'clients',
  {
    seq: bigserial('seq', { mode: 'number' }).primaryKey(),
    id: text('id').notNull().unique('clients_id'),
    origin: text('origin').$type<Client['origin']>().notNull(),
    issuedAt: integer('issued_at').notNull(),
    usedAt: integer('used_at').notNull(),
    /** JSON of every other member. */
    metadata: text('metadata').notNull(),
  },
  (table) => [
    // They hold only what the sweep looks for: the first use takes a client out of one and into the other.
    index('clients_never_used').on(table.issuedAt).where(sql`origin = 'registered' and used_at = issued_at`),
    index('clients_idle').on(table.usedAt).where(sql`origin = 'registered' and used_at > issued_at`),
  ],
)

export const accounts = pgTable(
  'accounts',
  {
    seq: bigserial('seq', { mode: 'number' }).primaryKey(),
    id: text('id').notNull().unique('accounts_id'),
    username: text('username').notNull().unique('accounts_username'),
    email: text('email').unique('accounts_email'),
    passwordHash: text('password_hash'),
    claims: text('claims').notNull(),
    seeded: bool('seeded').notNull(),
    lockedAt: integer('locked_at'),
    createdAt: integer('created_at').notNull(),
    updatedAt: integer('updated_at').notNull(),
  },
  // Empty where users are real: a start asks it whether they all are.
  (table) => [index('accounts_seeded').on(table.username).where(sql`seeded`)],
)

export const passkeys = pgTable(
  'passkeys',
  {
    id: text('id').primaryKey(),
    userId: text('account_id').notNull(),
    publicKey: bytes('public_key').notNull(),
    counter: integer('counter').notNull(),
    transports: text('transports').notNull(),
    name: text('name').notNull(),
    backedUp: bool('backed_up').notNull(),
    createdAt: integer('created_at').notNull(),
    usedAt: integer('used_at').notNull(),
  },
  (table) => [index('passkeys_account_id').on(table.userId)],
)

export const secondFactors = pgTable('second_factors', {
  userId: text('account_id').primaryKey(),
  sealedSecret: text('sealed_secret').notNull(),
  confirmedAt: integer('confirmed_at'),
  usedStep: integer('used_step'),
  recoveryHashes: text('recovery_hashes').notNull(),
  createdAt: integer('created_at').notNull(),
})

export const oneTimeLinks = pgTable(
  'one_time_links',
  {
    id: text('id').primaryKey(),
    purpose: text('purpose').$type<OneTimeLink['purpose']>().notNull(),
    userId: text('account_id'),
    email: text('email'),
    createdAt: integer('created_at').notNull(),
    expiresAt: integer('expires_at').notNull(),
  },
  (table) => [
    index('one_time_links_account_id').on(table.userId),
    index('one_time_links_expires_at').on(table.expiresAt),
  ],
)

export const sessions = pgTable(
  'sessions',
  {
    id: text('id').primaryKey(),
    userId: text('account_id').notNull(),
    authenticatedAt: integer('authenticated_at').notNull(),
    methods: text('methods').notNull(),
    browser: text('browser'),
    from: text('signed_in_from'),
    createdAt: integer('created_at').notNull(),
    idleExpiresAt: integer('idle_expires_at').notNull(),
    expiresAt: integer('expires_at').notNull(),
  },
  (table) => [
    index('sessions_account_id').on(table.userId),
    // The idle end never lies behind the absolute one, so it alone decides when the row can go.
    index('sessions_idle_expires_at').on(table.idleExpiresAt),
  ],
)

export const interactions = pgTable(
  'interactions',
  {
    id: text('id').primaryKey(),
    browserHash: text('browser_hash').notNull(),
    request: text('request').notNull(),
    /** JSON. */
    pendingSecondFactor: text('half_sign_in'),
    challenge: text('challenge'),
    authenticatedSessionId: text('authenticated_session_id'),
    userChosen: bool('account_chosen').notNull(),
    createdAt: integer('created_at').notNull(),
    expiresAt: integer('expires_at').notNull(),
  },
  (table) => [index('interactions_expires_at').on(table.expiresAt)],
)

export const consents = pgTable(
  'consents',
  {
    userId: text('account_id').notNull(),
    clientId: text('client_id').notNull(),
    allowed: text('allowed').notNull(),
    grantedAt: integer('granted_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.userId, table.clientId] }),
    index('consents_client_id').on(table.clientId),
  ],
)

/**
 * The hot table: one row a grant, absent members NULL, and nothing kept that other rows or members tell, for there
 * may be millions. Client and user by their numbers, which are never given again; 0 for one that is gone already.
 * Beside its key one index, by which an account page finds them: no redemption, rotation or revocation touches it.
 */
export const grants = pgTable(
  'grants',
  {
    id: bytes('id').primaryKey(),
    secret: bytes('secret').notNull(),
    clientSeq: integer('client_seq').notNull(),
    userSeq: integer('account_seq').notNull(),
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
    claims: text('claims'),
    /** NULL: at the instant in its id. */
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
  (table) => [index('grants_account_seq').on(table.userSeq)],
)

export const revokedAccessTokens = pgTable(
  'revoked_access_tokens',
  {
    grantId: bytes('grant_id').notNull(),
    tokenId: text('token_id').notNull(),
    expiresAt: integer('expires_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.grantId, table.tokenId] }),
    index('revoked_access_tokens_expires_at').on(table.expiresAt),
  ],
)

export const keys = pgTable('keys', {
  id: text('id').primaryKey(),
  kind: text('kind').$type<StoredKey['kind']>().notNull(),
  algorithm: text('algorithm').$type<StoredKey['algorithm']>().notNull(),
  publicJwk: text('public_jwk'),
  sealedPrivate: text('sealed_private').notNull(),
  createdAt: integer('created_at').notNull(),
  activeAt: integer('active_at').notNull(),
  retiredAt: integer('retired_at'),
})

export const throttles = pgTable(
  'throttles',
  {
    /** Bytes, because it may contain what a user typed. */
    key: bytes('key').primaryKey(),
    failures: integer('failures').notNull(),
    expiresAt: integer('expires_at').notNull(),
  },
  (table) => [index('throttles_expires_at').on(table.expiresAt)],
)

/** A ring: the sweep keeps the last so many by their number. */
export const rejections = pgTable('refusals', {
  seq: bigserial('seq', { mode: 'number' }).primaryKey(),
  id: text('id').notNull().unique('refusals_id'),
  at: integer('at').notNull(),
  /** JSON of every other member. */
  facts: text('facts').notNull(),
})

/** Append-only, numbered in the order of writing: operators read all of it, a user what it tells of them. */
export const auditEvents = pgTable(
  'audit_events',
  {
    seq: bigserial('seq', { mode: 'number' }).primaryKey(),
    at: integer('at').notNull(),
    name: text('name').$type<AuditEvent['name']>().notNull(),
    userId: text('account_id'),
    clientId: text('client_id'),
    /** JSON of every other member. */
    facts: text('facts').notNull(),
  },
  (table) => [index('audit_events_account_id').on(table.userId, table.seq)],
)
