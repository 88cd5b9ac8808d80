import { contextClassOf, lacksAcr } from './authentication-context.ts'
import { check, recordCheck } from './check.ts'
import { accept, type Decision, reject, type Write } from './decision.ts'
import { OAuthError } from './errors.ts'
import type { AuthorizationRequest, Grant, Scope, Seconds, Session, SigningAlgorithm } from './model.ts'

/*
 * The state machine of one grant. One row, from the code to the last refresh token.
 *
 *     state      meaning                          redeem         refresh(current)  refresh(older)      revoke
 *     approved   a code is issued, seq 0          → active       –                 –                   → revoked
 *     active     seq n > 0, token n is current    → revoked (1)  → active, n + 1   → revoked (2)       → revoked
 *       of a client that keeps its token          → revoked (1)  → active, n (4)   → revoked (2)       → revoked
 *     revoked    everything issued is invalid     rejected       rejected          rejected            rejected
 *     expired    past its expiry                  rejected (3)   rejected          rejected            → revoked
 *
 * (1) a second use of a code, RFC 6749 §4.1.2. (2) reuse of a rotated token, RFC 9700 §4.14.2, unless it is the one
 * just rotated, sent again in time while its successor is unused: then the same successor is returned. (3) a code
 * redeemed before revokes the grant even when it has expired in the meantime. (4) the token stays the current one,
 * FAPI 2.0 Security Profile §5.3.2.1. A grant follows the rule that its client has now: token n is the current one
 * under both, so that a change of the rule revokes nothing.
 *
 * A grant without a user begins as active, with one access token.
 */

/** Lifetimes of the code and tokens of a grant. */
export interface GrantLifetimes {
  readonly codeSeconds: Seconds
  readonly refreshTokenIdleSeconds: Seconds
  readonly refreshTokenAbsoluteSeconds: Seconds
  readonly refreshReuseSeconds: Seconds
}

/** The lifetimes of a grant, and what is particular to its client. */
export interface GrantRules extends GrantLifetimes {
  /** Its refresh token stays the same when it is used; absent: each use rotates it. */
  readonly keepsRefreshToken?: true
}

/** What a feature demands of the grants of a client. */
export interface GrantRule {
  readonly mostCodeSeconds?: Seconds
  readonly keepsRefreshToken?: true
  /** What its JWT access tokens are signed with. Absent: RS256, which every API can verify (RFC 9068 §4). */
  readonly accessTokenAlgorithm?: SigningAlgorithm
  /** What its ID Tokens may be signed with; a client that registered another algorithm gets none. Absent: any. */
  readonly idTokenAlgorithms?: readonly SigningAlgorithm[]
  /** Its ID Tokens have claims of scopes only if an operator says so of the client. */
  readonly thinIdToken?: true
}

/** What is issued along with a transition. */
export interface Issue {
  /** Lifetime of the access token issued now: the grant lives at least as long. */
  readonly accessTokenSeconds: Seconds
  /** Whether the client gets a refresh token. */
  readonly refreshable: boolean
}

/**
 * Creates a grant (RFC 6749 §4.1.2), from which one code may be issued, bound to the redirect URI and to the code
 * challenge (RFC 7636 §4.4).
 * @param scope The scope that the user approved.
 */
export function approveGrant(
  request: AuthorizationRequest,
  session: Session,
  scope: Scope,
  fresh: { readonly grantId: string; readonly grantSecret: string; readonly authTimeOwed: boolean },
  lifetimes: GrantLifetimes,
  now: Seconds,
): Grant {
  return {
    id: fresh.grantId,
    secret: fresh.grantSecret,
    clientId: request.clientId,
    userId: session.userId,
    scope,
    resource: request.resource,
    redirectUri: request.redirectUri,
    redirectUriSent: request.redirectUriSent,
    ...(request.codeChallenge !== undefined && { codeChallenge: request.codeChallenge }),
    ...(request.nonce !== undefined && { nonce: request.nonce }),
    authenticatedAt: session.authenticatedAt,
    methods: session.methods,
    ...metContext(request, session),
    authTimeOwed: fresh.authTimeOwed,
    claims: request.claims,
    approvedAt: now,
    seq: 0,
    absoluteExpiresAt: now + lifetimes.refreshTokenAbsoluteSeconds,
    expiresAt: now + lifetimes.codeSeconds,
  }
}

/**
 * Creates a grant without a user (RFC 6749 §4.4.3): active at once, with one access token and no refresh token.
 * @param seconds Lifetime of the access token.
 */
export function issueGrant(
  about: Pick<Grant, 'clientId' | 'scope' | 'resource'>,
  fresh: { readonly id: string; readonly secret: string },
  now: Seconds,
  seconds: Seconds,
): Grant {
  const end = now + seconds
  return {
    ...fresh,
    ...about,
    redirectUri: '',
    redirectUriSent: false,
    authenticatedAt: now,
    methods: [],
    authTimeOwed: false,
    claims: { userinfo: [], idToken: [] },
    approvedAt: now,
    seq: 1,
    absoluteExpiresAt: end,
    expiresAt: end,
  }
}

/** Whether anything issued from it may still work: its code, a refresh token or an access token. */
export function isGrantAlive(grant: Grant, now: Seconds): boolean {
  return grant.revokedAt === undefined && now < grant.expiresAt
}

/** The rule by which a grant reads as revoked while its client is locked. */
export const clientLocked = 'lychgate-client-locked'

/** Whether a grant is alive, or will be when its client is unlocked: that can be revoked. */
export function canGrantLive(grant: Grant, now: Seconds): boolean {
  return (grant.revokedAt === undefined || grant.revokedBy === clientLocked) && now < grant.expiresAt
}

/** Returns the requested context class that the sign-in satisfies, for the grant to keep. */
function metContext({ acr }: AuthorizationRequest, { methods }: Session): Pick<Grant, 'acr'> {
  const met = lacksAcr(methods, acr) ? undefined : contextClassOf(methods, acr)
  return acr === undefined || met === undefined ? {} : { acr: met }
}

/** 12 bytes ordered by time: rows are inserted side by side. `fresh` is 8 random bytes. */
export function mintGrantId(fresh: Buffer, now: Seconds): string {
  const bytes = Buffer.alloc(12)
  bytes.writeUInt32BE(now)
  fresh.copy(bytes, 4, 0, 8)
  return bytes.toString('base64url')
}

/**
 * approved → active. A second use is rejected and revokes the grant, RFC 6749 §4.1.2.
 * @throws {OAuthError} `invalid_grant` when the code has expired or the grant was revoked.
 */
export function redeemGrant(
  grant: Grant,
  issue: Issue,
  lifetimes: GrantLifetimes,
  now: Seconds,
): Decision<Grant> {
  if (grant.revokedAt !== undefined) throw gone(grant, 'rfc6749-4.1.2-code-replay-revokes')
  if (grant.seq > 0) {
    const replayed = new OAuthError(
      'invalid_grant',
      'the code was already redeemed; what was issued from it is revoked now',
      {
        rule: 'rfc6749-4.1.2-code-replay-revokes',
        stored: `redeemed, seq ${grant.seq}`,
      },
    )
    return reject(replayed, revocation(grant, 'rfc6749-4.1.2-code-replay-revokes', now))
  }
  recordCheck('rfc6749-4.1.2-code-single-use', 'the code was not used before')
  check(now < grant.expiresAt, 'rfc6749-4.1.2-code-short-lived', 'invalid_grant', 'the code has expired', {
    stored: grant.expiresAt,
    received: now,
    passed: 'the code has not expired',
  })
  const active = { ...grant, seq: 1, rotatedAt: now, ...ends(grant, issue, lifetimes, now) }
  return accept(active, {
    op: 'redeemGrant',
    grantId: grant.id,
    at: now,
    expiresAt: active.expiresAt,
    ...(active.refreshExpiresAt !== undefined && { refreshExpiresAt: active.refreshExpiresAt }),
  })
}

/**
 * active → active: rotates the refresh token (RFC 9700 §2.2.2, §4.14.2), or extends it for a client that keeps it.
 * The result's `seq` is the number of the token to issue: the next one, or the current one again when the client
 * keeps it or when this is the retry after a lost response.
 * @param seq The number in the refresh token presented.
 * @throws {OAuthError} `invalid_grant` when the token has expired or the grant was revoked.
 */
export function rotateGrant(
  grant: Grant,
  seq: number,
  issue: Issue,
  rules: GrantRules,
  now: Seconds,
): Decision<Grant> {
  if (grant.revokedAt !== undefined) throw gone(grant, 'rfc6749-6-invalid-refresh')
  check(
    now < (grant.refreshExpiresAt ?? 0),
    'rfc9700-4.14.2-inactive-expiry',
    'invalid_grant',
    'the refresh token has expired',
    { stored: grant.refreshExpiresAt, received: now, passed: 'the refresh token has not expired' },
  )
  if (seq === grant.seq) {
    recordCheck(reuse, 'the refresh token is the current one', grant.seq, seq)
    const next = ends(grant, issue, rules, now)
    const { refreshExpiresAt = now, expiresAt } = next
    if (rules.keepsRefreshToken) {
      const extended = { op: 'extendGrant', grantId: grant.id, seq, refreshExpiresAt, expiresAt } as const
      return accept({ ...grant, ...next }, extended)
    }
    const rotated = { ...grant, seq: seq + 1, rotatedAt: now, ...next }
    return accept(rotated, {
      op: 'rotateGrant',
      grantId: grant.id,
      fromSeq: seq,
      at: now,
      refreshExpiresAt,
      expiresAt,
    })
  }
  if (seq === grant.seq - 1 && isRetry(grant, rules, now)) {
    recordCheck(reuse, 'the refresh token was just rotated: the same successor again', grant.seq, seq)
    return accept(grant)
  }
  const reused = new OAuthError(
    'invalid_grant',
    seq > grant.seq
      ? 'the refresh token is newer than its grant, as after a restore; the grant is revoked now'
      : 'the refresh token was used before; the grant is revoked now',
    {
      rule: reuse,
      stored: `seq ${grant.seq}`,
      received: `seq ${seq}`,
    },
  )
  return reject(reused, revocation(grant, reuse, now))
}

const reuse = 'rfc9700-4.14.2-reuse-revokes-family'

/**
 * any → revoked: revokes the code, the refresh token and every access token. Revoking twice changes nothing.
 * @param rule The reason, for `lychgate explain`.
 */
export function revokeGrant(
  grant: Pick<Grant, 'id' | 'revokedAt'>,
  rule: string,
  now: Seconds,
): Decision<void> {
  return grant.revokedAt === undefined ? accept(undefined, revocation(grant, rule, now)) : accept(undefined)
}

function revocation(grant: Pick<Grant, 'id'>, rule: string, now: Seconds): Write {
  return { op: 'revokeGrant', grantId: grant.id, at: now, rule }
}

function isRetry(grant: Grant, lifetimes: GrantLifetimes, now: Seconds): boolean {
  // As far before as after: a clock that was set back must not leave the window open for as long.
  return Math.abs(now - (grant.rotatedAt ?? 0)) < lifetimes.refreshReuseSeconds
}

function ends(
  grant: Grant,
  issue: Issue,
  lifetimes: GrantLifetimes,
  now: Seconds,
): { readonly refreshExpiresAt?: Seconds; readonly expiresAt: Seconds } {
  const earlier = grant.seq > 0 ? grant.expiresAt : 0
  if (!issue.refreshable) return { expiresAt: Math.max(now + issue.accessTokenSeconds, earlier) }
  const refreshExpiresAt = Math.min(now + lifetimes.refreshTokenIdleSeconds, grant.absoluteExpiresAt)
  // A retry within the window is given an access token of its own: the row must not end before it.
  const accessTokenEnds = now + lifetimes.refreshReuseSeconds + issue.accessTokenSeconds
  return { refreshExpiresAt, expiresAt: Math.max(refreshExpiresAt, accessTokenEnds, earlier) }
}

function gone({ revokedAt, revokedBy }: Grant, rule: string): OAuthError {
  const stored = `revoked at ${revokedAt} by ${revokedBy}`
  return new OAuthError('invalid_grant', 'the grant was revoked', { rule, stored })
}
