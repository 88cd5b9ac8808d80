import type { FastifyInstance, FastifyRequest, preHandlerAsyncHookHandler } from 'fastify'
import { noteUse } from '../../clients/use.ts'
import { auditGrant } from '../../domain/audit.ts'
import { type Issued, redeemCode } from '../../domain/authorization-code.ts'
import { check } from '../../domain/check.ts'
import { type Condition, type Decision, reject, withWrites } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import { revokeGrant } from '../../domain/grant.ts'
import { handleBelongsTo, type OpenedHandle } from '../../domain/handle.ts'
import type { Client, Grant, Seconds } from '../../domain/model.ts'
import { every, type Parameters, single } from '../../domain/parameters.ts'
import { refresh } from '../../domain/refresh-token.ts'
import type { ProofUse, TokenResponse } from '../../feature/contributions.ts'
import type { Needs } from '../../feature/deps.ts'
import { addressPrefix } from '../../http/address-prefix.ts'
import { parametersOf } from '../../http/parameters.ts'
import { Overtaken, RecordExists } from '../../storage/store.ts'

interface GrantAhead {
  readonly handle: OpenedHandle
  readonly grant: Promise<Grant | undefined>
  /** The use of the request's proof, while it is to be stored. */
  use?: ProofUse | undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The opened code or refresh token of the request, and its grant, if that is read ahead. */
    ahead: GrantAhead | undefined
  }
  interface FastifyInstance {
    /**
     * Decides about a grant in a transaction, together with what the grant depends on, and issues tokens from it.
     * @throws {OAuthError} what `decide` rejects with; `invalid_grant` if what the grant depends on has ended.
     */
    issueFromGrant(
      grantId: string,
      client: Client,
      request: Pick<FastifyRequest, 'ip' | 'confirmation' | 'ahead'>,
      decide: (grant: Grant | undefined, now: Seconds) => Decision<Issued>,
    ): Promise<TokenResponse>
  }
}

/**
 * Adds the grant types `authorization_code` (RFC 6749 §4.1.3) and `refresh_token` (RFC 6749 §6), which rotates the
 * token on every use (RFC 9700 §4.14.2) unless a feature has another rule for the client.
 */
export function addGrantTypes(
  app: FastifyInstance,
  deps: Needs<'store' | 'keys' | 'clock' | 'service'>,
): void {
  const { service, store, keys, clock } = deps

  app.seams.grantTypes.add('authorization_code', async (client, parameters, request) => {
    const code = single(parameters, 'code')
    check(code !== undefined, 'rfc6749-4.1.3-code-required', 'invalid_request', 'code is missing', {
      passed: 'code is present',
    })
    const handle = request.ahead?.handle ?? (await keys.open(code, 'code'))
    check(handle !== undefined, 'rfc6749-4.1.3-code-valid', 'invalid_grant', 'the code is unknown', {
      passed: 'the code is genuine',
    })
    const redemption = {
      handle,
      client,
      redirectUri: single(parameters, 'redirect_uri'),
      codeVerifier: single(parameters, 'code_verifier'),
      resource: every(parameters, 'resource'),
    }
    return await issue(handle, client, request, (grant, now) =>
      redeemCode(grant, redemption, service, app.grantRulesOf(client), now),
    )
  })

  app.seams.grantTypes.add('refresh_token', async (client, parameters, request) => {
    const refreshToken = single(parameters, 'refresh_token')
    check(
      refreshToken !== undefined,
      'rfc6749-6-missing-refresh-param',
      'invalid_request',
      'refresh_token is missing',
      { passed: 'refresh_token is present' },
    )
    const handle = request.ahead?.handle ?? (await keys.open(refreshToken, 'refresh'))
    check(
      handle !== undefined,
      'rfc6749-6-invalid-refresh',
      'invalid_grant',
      'the refresh token is unknown',
      { passed: 'the refresh token is genuine' },
    )
    const scope = single(parameters, 'scope')
    const wanted = { handle, client, scope, resource: every(parameters, 'resource') }
    return await issue(handle, client, request, (grant, now) =>
      refresh(grant, wanted, service, app.grantRulesOf(client), now),
    )
  })

  /** Issues from the grant of a code or a refresh token, which may be bound to a key. */
  const issue = (
    handle: OpenedHandle,
    client: Client,
    request: FastifyRequest,
    decide: (grant: Grant | undefined, now: Seconds) => Decision<Issued>,
  ) =>
    app.issueFromGrant(handle.grantId, client, request, (grant, now) => {
      app.tokenBindings.assertKey(handle, grant, client, request.confirmation)
      return decide(grant, now)
    })

  app.decorateRequest('ahead', undefined)
  app.decorate('issueFromGrant', async (grantId, client, { ip, confirmation, ahead }, decide) => {
    const now = clock()
    const contextOf = () => ({ at: now, from: addressPrefix(ip) })
    const decideWithConditions = (grant: Grant | undefined) => {
      const decided = decide(grant, now)
      // The event has the scope that is issued, which may be less than the grant's.
      const subject = 'result' in decided ? decided.result.grant : grant
      const decision = noteUse(auditGrant(decided, subject, contextOf), client, now)
      if (grant === undefined || 'rejection' in decision) return decision
      const conditions = app.seams.tokenConditions.collect(grant, client, now)
      return conditions === undefined ? decision : withWrites(decision, ...conditions)
    }
    const use = ahead?.use
    if (ahead !== undefined) ahead.use = undefined
    const transact = (decide: DecideOnGrant, preread?: Promise<Grant | undefined>) =>
      use === undefined
        ? store.transact('grant', grantId, decide, preread)
        : using(use, () => store.transact('grant', grantId, withUse(use, decide), preread))
    let issued: Issued
    try {
      const known = ahead?.handle.grantId === grantId ? ahead.grant : undefined
      issued = await transact(decideWithConditions, known)
    } catch (error) {
      if (!(error instanceof Overtaken)) throw error
      issued = await transact((grant) =>
        auditGrant(rejectEnded(grant, error.condition ?? sessionEnded, now), grant, contextOf),
      )
    }
    return await app.issueTokens(issued, { client, now, confirmation })
  })
}

type DecideOnGrant = (grant: Grant | undefined) => Decision<Issued>

/** Makes a decision that also writes down the use of a proof, where it rejects, too. */
function withUse({ write }: ProofUse, decide: DecideOnGrant): DecideOnGrant {
  return (grant) => {
    try {
      return withWrites(decide(grant), write)
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error
      return reject(error, write)
    }
  }
}

/** Commits the use of a proof together with a decision. */
async function using<T>(use: ProofUse, commit: () => Promise<T>): Promise<T> {
  try {
    const result = await commit()
    use.assertFirst(true)
    return result
  } catch (error) {
    if (error instanceof RecordExists) use.assertFirst(false)
    throw error
  }
}

/** Returns a hook that reads the grant of a code or a refresh token while the client is found and authenticated. */
export function readGrantAhead({ store, keys }: Needs<'store' | 'keys'>): preHandlerAsyncHookHandler {
  return async (request) => {
    const { grant_type: grantType, code, refresh_token: refreshToken } = parametersOf(request.body)
    const isRefresh = grantType === 'refresh_token'
    const token = isRefresh ? refreshToken : grantType === 'authorization_code' ? code : undefined
    if (typeof token !== 'string') return
    const handle = await keys.open(token, isRefresh ? 'refresh' : 'code')
    if (handle === undefined) return
    const grant = store.find('grant', handle.grantId)
    // The request that awaits it gets the error. For a rejected client none does.
    grant.catch(() => undefined)
    request.ahead = { handle, grant }
  }
}

/** What the grant depends on if no feature says more. */
const sessionEnded = { rule: 'lychgate-session-ended', why: 'the session of the user has ended' }

/** Revokes a grant whose condition does not hold any more, and rejects the request. */
function rejectEnded(
  grant: Grant | undefined,
  { rule, why }: Pick<Condition, 'rule' | 'why'>,
  now: Seconds,
): Decision<never> {
  const rejection = new OAuthError('invalid_grant', why, { rule })
  return reject(rejection, ...(grant === undefined ? [] : revokeGrant(grant, rule, now).writes))
}

/**
 * Returns the public client that a genuine refresh token was issued to, RFC 6749 §6: a refresh may leave out
 * `client_id`, which RFC 6749 §3.2.1 demands of the authorization_code request only. Spring Security 6 sends none.
 * @throws {OAuthError} `invalid_grant` for a genuine token whose grant is gone.
 */
export function clientOfRefreshToken({ store, keys }: Needs<'store' | 'keys'>) {
  return async (parameters: Parameters): Promise<string | undefined> => {
    const { grant_type: grantType, refresh_token: token } = parameters
    if (grantType !== 'refresh_token' || typeof token !== 'string') return undefined
    const handle = await keys.open(token, 'refresh')
    if (handle === undefined) return undefined
    const grant = await store.find('grant', handle.grantId)
    check(
      grant !== undefined && handleBelongsTo(handle, grant),
      'rfc6749-6-invalid-refresh',
      'invalid_grant',
      'the refresh token is unknown',
      { passed: 'the refresh token is genuine' },
    )
    const client = await store.find('client', grant.clientId)
    return client?.authenticationMethod === 'none' ? client.id : undefined
  }
}
