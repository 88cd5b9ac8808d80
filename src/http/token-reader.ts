import {
  type Ending,
  type TokenFacts,
  verifyAccessToken,
  verifyRefreshToken,
  whyInactive,
  withinSubject,
} from '../domain/access-token.ts'
import { currentGrant, isLoss, type Loss, type ScopePolicy } from '../domain/current-grant.ts'
import type { Reading, RecordReads } from '../domain/decision.ts'
import type { OpenedHandle } from '../domain/handle.ts'
import { endingOf, grantIdOfJwt, tokenIdOfJwt, verifyJwtAccessToken } from '../domain/jwt-access-token.ts'
import type { ExchangedToken, Grant, GrantOfToken, Seconds } from '../domain/model.ts'
import type { Needs } from '../feature/deps.ts'
import { grantOfTokenKey, type Store } from '../storage/store.ts'

/** An invalid token, and why: only for the log, never for the response. */
export interface DeadToken {
  readonly kind: 'dead'
  readonly why: string
}

/** Returns the current state of a token. */
export interface TokenReader {
  (token: string, now: Seconds, finding?: Promise<FoundToken | undefined>): Promise<TokenFacts | DeadToken>
  /**
   * Reads what the state depends on, and judges nothing: it may begin before it is known who asks.
   * @param alongside Begins other reads about the grant, for the same trip to the database.
   */
  find(token: string, alongside?: (grantId: string) => void): Promise<FoundToken | undefined>
}

/** A token with its grant. */
interface FoundToken {
  readonly opened: OpenedToken
  readonly grant: GrantOfToken | undefined
}

/** A token that this server made: an opened handle, or the claims of a JWT. Under its key is whether it is valid. */
export type OpenedToken = { readonly key: string; readonly grantId: string } & (
  | { readonly handle: OpenedHandle; readonly claims?: never }
  | { readonly handle?: never; readonly claims: Readonly<Record<string, unknown>> }
)

/** Opens every kind of token this server issues; undefined for any other text. */
export function tokenOpener({ keys, service: { issuer } }: Needs<'keys' | 'service'>) {
  return async (token: string): Promise<OpenedToken | undefined> => {
    const handle = await keys.open(token, 'access', 'refresh')
    if (handle !== undefined) {
      const { grantId, tokenId } = handle
      return { key: grantOfTokenKey(grantId, tokenId), grantId, handle }
    }
    const claims = looksSigned(token) ? await keys.verify(token, 'at+jwt') : undefined
    const grantId = claims && grantIdOfJwt(claims)
    if (claims === undefined || grantId === undefined || claims['iss'] !== issuer) return undefined
    return { key: grantOfTokenKey(grantId, tokenIdOfJwt(claims)), grantId, claims }
  }
}

/** Returns the state of a token by its grant; what it was exchanged for is not looked at. */
export function stateOfToken(
  { handle, claims }: OpenedToken,
  grant: GrantOfToken | undefined,
  policy: ScopePolicy,
  now: Seconds,
): TokenFacts | DeadToken {
  if (handle === undefined)
    return verifyJwtAccessToken(claims, grant, policy, now) ?? dead(endingOf(claims), grant, policy, now)
  const verify = handle.kind === 'access' ? verifyAccessToken : verifyRefreshToken
  return verify(handle, grant, policy, now) ?? dead(handle, grant, policy, now)
}

/**
 * A reader of every kind of token this server issues, whatever a hint says, RFC 7662 §2.1: authenticated first, then
 * one point read, and one more for each token that it was exchanged for.
 */
export function tokenReader(deps: Needs<'keys' | 'store' | 'service'>): TokenReader {
  const { store, service } = deps
  const open = tokenOpener(deps)
  const find: TokenReader['find'] = async (token, alongside) => {
    const opened = await open(token)
    if (opened === undefined) return undefined
    alongside?.(opened.grantId)
    return { opened, grant: await store.find('grantOfToken', opened.key) }
  }
  const read = async (
    token: string,
    now: Seconds,
    finding = find(token),
  ): Promise<TokenFacts | DeadToken> => {
    const found = await finding
    if (found === undefined) return foreign
    const facts = stateOfToken(found.opened, found.grant, service, now)
    if (facts.kind === 'dead' || facts.grant.exchangedFrom === undefined) return facts
    const part = await leftOfSubjects(facts.grant.exchangedFrom, facts, deps)
    if (isLoss(part)) return { kind: 'dead', why: part.why }
    return { ...facts, ...part, grant: { ...facts.grant, ...part } }
  }
  return Object.assign(read, { find })
}

/** Limits what an exchanged token may do to what is left of each token that it was exchanged for. */
export async function leftOfSubjects(
  exchangedFrom: ExchangedToken,
  part: Pick<TokenFacts, 'scope' | 'resource'>,
  { store, service }: { readonly store: Pick<Store, 'find'>; readonly service: ScopePolicy },
): Promise<Pick<TokenFacts, 'scope' | 'resource'> | Loss> {
  let left: Pick<TokenFacts, 'scope' | 'resource'> | Loss = part
  for (let from: ExchangedToken | undefined = exchangedFrom; from !== undefined && !isLoss(left); ) {
    const key = grantOfTokenKey(from.grantId, from.tokenId)
    const subject: GrantOfToken | undefined = await store.find('grantOfToken', key)
    left = withinSubject(left, from, subject, service)
    from = subject?.exchangedFrom
  }
  return left
}

/** Whether an exchanged grant may have all of this now: of its client, and of each token in its chain, so much is left. */
export function* isWholeNow(read: RecordReads, grant: Grant, policy: ScopePolicy): Reading<boolean> {
  const client = yield* read.find('client', grant.clientId)
  if (client === undefined || client.lockedAt !== undefined) return false
  if (currentGrant(grant, client, policy) !== grant) return false
  for (let from = grant.exchangedFrom; from !== undefined; ) {
    const key = grantOfTokenKey(from.grantId, from.tokenId)
    const subject: GrantOfToken | undefined = yield* read.find('grantOfToken', key)
    const left = withinSubject(grant, from, subject, policy)
    if (isLoss(left) || left.scope !== grant.scope || left.resource !== grant.resource) return false
    from = subject?.exchangedFrom
  }
  return true
}

const foreign: DeadToken = { kind: 'dead', why: 'no access token of this server reads like this' }

function dead(token: Ending, grant: GrantOfToken | undefined, policy: ScopePolicy, now: Seconds): DeadToken {
  const { why } = whyInactive(token, grant, policy, now) ?? { why: 'its grant does not know it' }
  return { kind: 'dead', why }
}

function looksSigned(token: string): boolean {
  return token.startsWith('eyJ') && token.length < 8192
}
