import type { Issued } from '../../../domain/authorization-code.ts'
import { type AuthorizationPolicy, parseScopeAndResource } from '../../../domain/authorization-request.ts'
import { check, recordCheck } from '../../../domain/check.ts'
import { requireCurrent, type ScopePolicy } from '../../../domain/current-grant.ts'
import { accept, type Decision, reject, update, type Write, withWrites } from '../../../domain/decision.ts'
import { OAuthError } from '../../../domain/errors.ts'
import { type GrantLifetimes, redeemGrant } from '../../../domain/grant.ts'
import type { AuthorizationRequest, Client, Grant, Hash, Seconds } from '../../../domain/model.ts'
import { assertNoneRepeated, type Parameters, single } from '../../../domain/parameters.ts'
import { requireCodeChallenge, verifyCodeVerifier } from '../../../domain/pkce.ts'
import { recordKind } from '../../../domain/record.ts'
import { accessTokenTerms } from '../../../domain/resource.ts'
import { hashSecret, secretMatches } from '../../../domain/secret.ts'
import { deviceCodePrefix, grantType, mintUserCode } from './codes.ts'

/**
 * A device that waits for its user, RFC 8628 §3.1. `pending` → `approved` | `denied`, `approved` → `redeemed`. A
 * grant is inserted when the user approves; its own state decides which of several polls redeems it.
 */
export interface DeviceAuthorization {
  /** What the user types, without the dash. */
  readonly userCode: string
  readonly deviceHash: Hash
  readonly clientId: string
  readonly request: AuthorizationRequest
  /** A link with the code is not enough: the user has to type it. */
  readonly mustBeTyped?: true
  /** The network that the request came from, see address-prefix.ts. */
  readonly from: string
  readonly state: 'pending' | 'approved' | 'denied' | 'redeemed'
  /** The least time between two polls; each early poll lengthens it. */
  readonly intervalSeconds: Seconds
  readonly polledAt?: Seconds
  /** The browsers in which the code was typed, as hashes of their secrets. */
  readonly browsers: readonly Hash[]
  /** Who approved it, and the grant that was inserted then. */
  readonly userId?: string
  readonly grantId?: string
  readonly createdAt: Seconds
  readonly expiresAt: Seconds
}

/** For how long a late poll still learns that the code has expired. */
const keptSeconds: Seconds = 3600

export const deviceKind = recordKind<DeviceAuthorization>('deviceAuthorization', {
  id: ({ userCode }) => userCode,
  userId: ({ userId }) => userId,
  clientId: ({ clientId }) => clientId,
  madeAt: ({ createdAt }) => createdAt,
  expiresAt: ({ expiresAt }) => expiresAt + keptSeconds,
})

/**
 * Checks that the client may use device codes at all: anyone can register a client, start a device with it, and send
 * its code around, with no software on the computer of the user (RFC 8628 §5.4).
 * @param closedBy The option that keeps them from clients that no operator added.
 * @throws {OAuthError} `unauthorized_client`
 */
export function assertOpenTo({ origin }: Client, closedBy: string | undefined): void {
  check(
    origin !== 'registered' || closedBy === undefined,
    'lychgate-grant-type-open',
    'unauthorized_client',
    `clients that no operator added get no device codes here (${closedBy}, or lychgate client add)`,
    { stored: origin, passed: 'the client may use device codes' },
  )
}

/** Whether a device of this client gets a refresh token. One that no operator added gets none. */
export function isRefreshable({ origin, grantTypes }: Client): boolean {
  return origin !== 'registered' && grantTypes.includes('refresh_token')
}

/**
 * Starts a device authorization, RFC 8628 §3.1. PKCE is the client's choice.
 * @param fresh 32 random bytes for each code.
 * @throws {OAuthError} `invalid_request`, `unauthorized_client`, `invalid_scope` or `invalid_target`.
 */
export function startDevice(
  parameters: Parameters,
  client: Client,
  policy: AuthorizationPolicy,
  limits: {
    readonly seconds: Seconds
    readonly intervalSeconds: Seconds
    readonly closedBy?: string | undefined
  },
  fresh: { readonly userCode: Buffer; readonly secret: Buffer; readonly from: string },
  now: Seconds,
): { readonly device: DeviceAuthorization; readonly deviceCode: string } {
  const { seconds, intervalSeconds } = limits
  assertNoneRepeated(parameters)
  assertOpenTo(client, limits.closedBy)
  check(
    client.grantTypes.includes(grantType),
    'rfc8628-3.1-request',
    'unauthorized_client',
    `this client is not registered for the grant type ${grantType}`,
    { stored: client.grantTypes, passed: 'the client is registered for device codes' },
  )
  const codeChallenge = requireCodeChallenge(
    {
      codeChallenge: single(parameters, 'code_challenge'),
      codeChallengeMethod: single(parameters, 'code_challenge_method'),
    },
    { optional: true },
  )
  const userCode = mintUserCode(fresh.userCode)
  const deviceCode = `${deviceCodePrefix}${userCode}${fresh.secret.toString('base64url')}`
  const device: DeviceAuthorization = {
    userCode,
    deviceHash: hashSecret(deviceCode),
    clientId: client.id,
    request: {
      clientId: client.id,
      redirectUri: '',
      redirectUriSent: false,
      responseMode: 'query',
      // Where it gets no refresh token, offline_access is ignored.
      ...parseScopeAndResource(
        parameters,
        isRefreshable(client) ? client : { ...client, grantTypes: [grantType] },
        policy,
      ),
      prompt: [],
      claims: { userinfo: [], idToken: [] },
      ...(codeChallenge !== undefined && { codeChallenge }),
    },
    ...(client.origin === 'registered' && { mustBeTyped: true }),
    from: fresh.from,
    state: 'pending',
    intervalSeconds,
    browsers: [],
    createdAt: now,
    expiresAt: now + seconds,
  }
  return { device, deviceCode }
}

/** A token request of a device, RFC 8628 §3.4. */
export interface Poll {
  readonly deviceCode: string
  readonly client: Client
  readonly codeVerifier: string | undefined
}

/** Every early poll lengthens the interval by this, RFC 8628 §3.5. */
const slowDownSeconds: Seconds = 5
/** What a poll may be early by: clocks of whole seconds, and networks that deliver one poll later than the next. */
const toleratedSeconds: Seconds = 1

/**
 * Responds to a poll, RFC 8628 §3.5: with the approved device, or with an error.
 * @throws {OAuthError} `invalid_grant`, `access_denied`, `expired_token`; rejects with `authorization_pending` or
 * `slow_down`.
 */
export function pollDevice(
  device: DeviceAuthorization | undefined,
  { deviceCode, client, codeVerifier }: Poll,
  now: Seconds,
): Decision<DeviceAuthorization & { readonly grantId: string }> {
  check(
    device !== undefined && secretMatches(deviceCode, device.deviceHash),
    'rfc8628-3.4-grant',
    'invalid_grant',
    'device_code is unknown',
    { passed: 'device_code is known' },
  )
  check(
    device.clientId === client.id,
    'rfc8628-3.4-grant',
    'invalid_grant',
    'device_code was issued to another client',
    { stored: device.clientId, received: client.id, passed: 'device_code was issued to this client' },
  )
  verifyCodeVerifier(codeVerifier, device.request.codeChallenge)
  assertNotRedeemed(device.state === 'redeemed')
  check(
    device.state !== 'denied',
    'rfc8628-3.5-denied-expired',
    'access_denied',
    'the user denied the request',
    { status: 400, passed: 'the user did not deny the request' },
  )
  check(
    now < device.expiresAt,
    'rfc8628-3.5-denied-expired',
    'expired_token',
    'device_code has expired; start a new device authorization',
    { stored: device.expiresAt, received: now, passed: 'device_code has not expired' },
  )
  const { grantId } = device
  if (grantId === undefined) return rejectPoll(device, now)
  recordCheck('rfc8628-3.3-interaction', 'the user approved')
  return accept({ ...device, grantId })
}

function rejectPoll(device: DeviceAuthorization, now: Seconds): Decision<never> {
  const { polledAt, intervalSeconds } = device
  const isEarly = polledAt !== undefined && now - polledAt < intervalSeconds - toleratedSeconds
  if (!isEarly) {
    const pending = new OAuthError('authorization_pending', 'the user has not decided yet', {
      rule: 'rfc8628-3.5-pending',
      isRoutine: true,
    })
    return reject(pending, update(deviceKind, { ...device, polledAt: now }))
  }
  const slower = intervalSeconds + slowDownSeconds
  const tooFast = new OAuthError(
    'slow_down',
    `the device polls too often; from now on wait ${slower} seconds between two polls`,
    { rule: 'rfc8628-3.5-slow-down', stored: intervalSeconds, received: now - polledAt, isRoutine: true },
  )
  return reject(tooFast, update(deviceKind, { ...device, polledAt: now, intervalSeconds: slower }))
}

/**
 * Redeems the grant that a user approved. Of several polls one gets the tokens; the others change nothing.
 * @param resource The requested resources, RFC 8707 §2.2.
 * @throws {OAuthError} `invalid_grant` or `invalid_target`.
 */
export function redeemDevice(
  grant: Grant | undefined,
  device: DeviceAuthorization,
  client: Client,
  resource: readonly string[],
  policy: ScopePolicy,
  lifetimes: GrantLifetimes,
  now: Seconds,
): Decision<Issued> {
  check(grant !== undefined, 'rfc8628-3.4-grant', 'invalid_grant', 'the user who approved no longer exists')
  assertNotRedeemed(grant.revokedAt === undefined && grant.seq > 0)
  const current = requireCurrent(grant, client, policy)
  const terms = accessTokenTerms(current, current.scope, resource, policy.resources, client)
  const issue = {
    accessTokenSeconds: terms.seconds,
    refreshable: isRefreshable(client),
  }
  const decision = redeemGrant(current, issue, lifetimes, now)
  if ('rejection' in decision) return decision
  const issued = accept({ grant: decision.result, terms }, ...decision.writes)
  return withWrites(issued, update(deviceKind, { ...device, state: 'redeemed' }))
}

function assertNotRedeemed(isRedeemed: boolean): void {
  check(
    !isRedeemed,
    'rfc8628-3.5-success-once',
    'invalid_grant',
    'device_code was already used: its tokens are issued once',
    { passed: 'device_code was not used before' },
  )
}

/** A code that more browsers than these opened without a decision was sent around. */
const mostBrowsers = 5

/**
 * Opens a device in the browser in which its code was typed; undefined if there is none with this code that waits. A
 * code that too many browsers opened ends: someone sends it around (RFC 8628 §5.4).
 * @param isLinked The code came with a link.
 */
export function openDevice(
  authorization: DeviceAuthorization | undefined,
  browser: Hash,
  now: Seconds,
  isLinked = false,
): Decision<DeviceAuthorization | undefined> {
  if (authorization === undefined || !isWaiting(authorization, now)) return accept(undefined)
  if (isLinked && authorization.mustBeTyped) return accept(undefined)
  if (authorization.browsers.includes(browser)) return accept(authorization)
  if (authorization.browsers.length >= mostBrowsers) {
    recordCheck('rfc8628-5.4-phishing', 'too many browsers opened this code: it ends')
    return accept(undefined, update(deviceKind, { ...authorization, expiresAt: now }))
  }
  const opened = { ...authorization, browsers: [...authorization.browsers, browser] }
  return accept(opened, update(deviceKind, opened))
}

/** Whether the user can still decide. */
export function isWaiting({ state, expiresAt }: DeviceAuthorization, now: Seconds): boolean {
  return state === 'pending' && now < expiresAt
}

/** Ends the wait of a device; false if it was over. `writes` are committed with it. */
export function decideDevice(
  authorization: DeviceAuthorization | undefined,
  decision: Pick<DeviceAuthorization, 'state' | 'userId' | 'grantId'>,
  now: Seconds,
  ...writes: readonly Write[]
): Decision<boolean> {
  if (authorization === undefined || !isWaiting(authorization, now)) return accept(false)
  return accept(true, update(deviceKind, { ...authorization, ...decision }), ...writes)
}
