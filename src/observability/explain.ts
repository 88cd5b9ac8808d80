import { setImmediate as nextTurn } from 'node:timers/promises'
import { type Ending, whyInactive } from '../domain/access-token.ts'
import { currentGrant, isLoss, type ScopePolicy } from '../domain/current-grant.ts'
import { handleBelongsTo, type OpenedHandle, openHandle } from '../domain/handle.ts'
import { endingOf, grantIdOfJwt, tokenIdOfJwt } from '../domain/jwt-access-token.ts'
import type { Client, GrantOfToken, Rejection, Seconds } from '../domain/model.ts'
import { omitUndefined } from '../domain/omit-undefined.ts'
import { hashSecret, secretMatches, secretPrefix } from '../domain/secret.ts'
import { type Service, tokenClaimsOf } from '../feature/service.ts'
import { leftOfSubjects } from '../http/token-reader.ts'
import type { KeyRing } from '../keys/key-ring.ts'
import { grantOfTokenKey, type Store } from '../storage/store.ts'
import { findLink } from '../users/one-time-links.ts'
import { personalTokenKind, personalTokenRule, verifyPersonalToken } from '../users/rules/personal-token.ts'
import { type Clause, clauseOf } from './clause-of-rule.ts'

/** The explanation of a token: whether it works now and why not, its own contents, and those of the store. */
export interface ExplainedToken {
  readonly kind: string
  readonly active: boolean
  readonly why?: string
  /** The rule that ends it, an id of the requirement ledger. */
  readonly rule?: string
  readonly received: Facts
  readonly stored: Facts
}

/** Names to facts; a number is an instant or a count. */
export type Facts = Readonly<Record<string, string | number | readonly string[] | undefined>>

type Sources = {
  readonly store: Store
  readonly keys: KeyRing
  readonly service: ScopePolicy & Pick<Service, 'tokenClaims'>
  readonly now: Seconds
}

const kinds = { access: 'access token', refresh: 'refresh token', code: 'authorization code' } as const

/** Why a request was rejected, or the state of a token: `json` has all of it, the rest the same for lines of text. */
export interface Explanation {
  readonly headline: string
  readonly why?: string
  readonly rule?: string
  readonly clause?: Clause
  readonly json: object
  readonly sections: Readonly<Record<string, Facts>>
}

/** Explains a rejected request by its record. */
export function explainRejection(rejection: Rejection): Explanation {
  const { id, at, method, path, status, error, why, rule, stored, received, client } = rejection
  const clause = clauseOf(rule)
  return {
    headline: `${method} ${path} was rejected with ${status} ${error}`,
    why,
    rule,
    clause,
    json: omitUndefined({
      ...{ id, at, method, path, status, error, why, rule, clause },
      stored,
      received,
      client,
    }),
    sections: { '': { stored, received, client, at, request: id } },
  }
}

/** Explains anything this server ever issued; any other text is reported as foreign. */
export async function explainToken(text: string, sources: Sources): Promise<Explanation> {
  return explanationOf(await examineToken(text, sources))
}

/** Returns the explanation of what was found out about a token, here or by a server. */
export function explanationOf(token: ExplainedToken): Explanation {
  const { kind, active, why, rule, received, stored } = token
  const clause = rule === undefined ? undefined : clauseOf(rule)
  return {
    headline: `${kind}, ${active ? 'active' : 'not active'}`,
    ...(why !== undefined && { why }),
    ...(rule !== undefined && { rule }),
    ...(clause && { clause }),
    json: omitUndefined({ kind, active, why, rule, clause, received, stored }),
    sections: { received, stored },
  }
}

async function examineToken(text: string, sources: Sources): Promise<ExplainedToken> {
  const handle = openHandle(sources.keys.handles, text, 'access', 'refresh', 'code')
  if (handle !== undefined) return explainHandle(handle, sources)
  const accessClaims = await sources.keys.verify(text, 'at+jwt')
  if (accessClaims !== undefined) return explainJwt(accessClaims, sources)
  const idClaims = await sources.keys.verify(text, 'JWT')
  if (idClaims !== undefined) return explainIdToken(idClaims, sources.now)
  if (text.startsWith(secretPrefix.link)) return explainLink(text, sources)
  if (text.startsWith(secretPrefix.personalToken)) return explainPersonalToken(text, sources)
  return (await explainSecret(text, sources)) ?? foreign(text)
}

/** Explains a personal token of the admin API. Who may administer is asked at each call, and not here. */
async function explainPersonalToken(text: string, { store, now }: Sources): Promise<ExplainedToken> {
  const record = await store.find(personalTokenKind, hashSecret(text))
  const owner = record && (await store.find('user', record.userId))
  const token = verifyPersonalToken(record, owner, now)
  const { name, scope, createdAt, expiresAt, usedAt } = record ?? {}
  const stored = { username: owner?.username, name, scope, createdAt, expiresAt, usedAt }
  const explained = { kind: 'personal token', received: {}, stored }
  if (!('rejected' in token)) return { ...explained, active: true }
  return { ...explained, active: false, why: token.rejected, rule: personalTokenRule }
}

/** What was used or swept is gone, and cannot be distinguished from what never existed. */
async function explainLink(text: string, { store, now }: Sources): Promise<ExplainedToken> {
  const link = await findLink(store, text)
  const kind = 'one-time link'
  const rule = 'lychgate-link-open'
  if (link === undefined) {
    const why = 'no link has it: it was used, it expired, or a part of it is missing'
    return { kind, active: false, why, rule, received: {}, stored: {} }
  }
  const { purpose, userId, createdAt, expiresAt } = link
  const user = userId === undefined ? undefined : await store.find('user', userId)
  const stored = { purpose, username: user?.username, sent: link.email, createdAt, expiresAt }
  if (now < expiresAt) return { kind, active: true, received: {}, stored }
  return { kind, active: false, why: 'it expired', rule, received: {}, stored }
}

async function explainHandle(handle: OpenedHandle, sources: Sources): Promise<ExplainedToken> {
  const { kind, grantId, seq, issuedAt, expiresAt, narrowing, tokenId } = handle
  const grantOfToken = await sources.store.find('grantOfToken', grantOfTokenKey(grantId, tokenId))
  const received = { grant: grantId, number: seq, issuedAt, expiresAt, ...narrowing }
  if (grantOfToken !== undefined && !handleBelongsTo(handle, grantOfToken)) {
    const why = 'its grant exists, with another secret: it was made for another copy of this database'
    return { kind: kinds[kind], active: false, why, rule: 'lychgate-grant-exists', received, stored: {} }
  }
  const stored = await factsOf(grantOfToken, sources)
  return { kind: kinds[kind], ...(await verdict(handle, grantOfToken, sources)), received, stored }
}

async function explainJwt(
  claims: Readonly<Record<string, unknown>>,
  sources: Sources,
): Promise<ExplainedToken> {
  const grant = await sources.store.find(
    'grantOfToken',
    grantOfTokenKey(grantIdOfJwt(claims) ?? '', tokenIdOfJwt(claims)),
  )
  const stored = await factsOf(grant, sources)
  const ended = await verdict(endingOf(claims), grant, sources)
  return { kind: 'JWT access token', ...ended, received: claimFacts(claims), stored }
}

function explainIdToken(claims: Readonly<Record<string, unknown>>, now: Seconds): ExplainedToken {
  const received = claimFacts(claims)
  const live = now < Number(claims['exp'])
  const why = live
    ? 'it tells its client who signed in; as an access token no API takes it'
    : `it expired at ${claims['exp']}; as id_token_hint it still counts`
  return {
    kind: 'ID Token',
    active: live,
    why,
    rule: live ? 'rfc6750-3.1-invalid-token-401' : 'oidc-core-2-exp-iat',
    received,
    stored: {},
  }
}

/** How many clients are compared with a secret at a time: other requests are served in between. */
const clientsAtOnce = 200

async function findClient(store: Store, isWanted: (client: Client) => boolean): Promise<Client | undefined> {
  for (let after = 0; ; ) {
    const page = await store.page('client', { after, limit: clientsAtOnce })
    const found = page.find(({ row }) => isWanted(row))
    if (found !== undefined || page.length < clientsAtOnce) return found?.row
    after = page.at(-1)?.seq ?? 0
    await nextTurn()
  }
}

/** Explains a secret of a client. Secrets are found by their hash, so every client is compared. */
async function explainSecret(text: string, { store, now }: Sources): Promise<ExplainedToken | undefined> {
  const isClientSecret = text.startsWith(secretPrefix.clientSecret)
  if (!isClientSecret && !text.startsWith(secretPrefix.registration)) return undefined
  const kind = isClientSecret ? 'client secret' : 'registration access token'
  const hashesOf = ({ secretHash, previousSecret, registrationTokenHash }: Client) =>
    isClientSecret ? [secretHash, previousSecret?.hash] : [registrationTokenHash]
  const client = await findClient(store, (each) => hashesOf(each).some((hash) => secretMatches(text, hash)))
  const ended = client === undefined ? noSecret : endOfSecret(client, text, isClientSecret, now)
  const stored = client && { client: client.id, name: client.name, method: client.authenticationMethod }
  return { kind, active: ended === undefined, ...ended, received: {}, stored: stored ?? {} }
}

const noSecret = {
  rule: 'rfc6749-5.2-invalid-client-400-or-401',
  why: 'no client has it: it was replaced, or its client was removed',
}

function endOfSecret(
  { lockedAt, secretHash, previousSecret }: Client,
  text: string,
  isClientSecret: boolean,
  now: Seconds,
): { readonly rule: string; readonly why: string } | undefined {
  if (!isClientSecret) return undefined
  if (lockedAt !== undefined)
    return { rule: 'lychgate-client-locked', why: `an operator locked the client at ${lockedAt}` }
  if (secretMatches(text, secretHash) || previousSecret === undefined || now < previousSecret.expiresAt)
    return undefined
  return { ...noSecret, why: `it was replaced, and accepted until ${previousSecret.expiresAt}` }
}

function foreign(text: string): ExplainedToken {
  const looksLikeOurs = /^lyc_[a-z]+_/.test(text)
  const why = looksLikeOurs
    ? 'no key of this store made it: it was altered or cut short, comes from another server, or its key is retired'
    : 'nothing this server issues reads like this'
  return {
    kind: 'unknown token',
    active: false,
    why,
    rule: 'rfc6750-3.1-invalid-token-401',
    received: { characters: text.length },
    stored: {},
  }
}

async function verdict(token: Ending, grant: GrantOfToken | undefined, sources: Sources) {
  const { service, now } = sources
  const from = grant?.exchangedFrom
  let ended = whyInactive(token, grant, service, now)
  if (ended === undefined && grant !== undefined && from !== undefined) {
    const left = await leftOfSubjects(from, grant, sources)
    if (isLoss(left)) ended = left
  }
  return { active: ended === undefined, ...ended }
}

async function factsOf(grant: GrantOfToken | undefined, { store, service }: Sources): Promise<Facts> {
  if (grant === undefined) return {}
  const current = currentGrant(grant, grant.client, service)
  const { scope, resource } = isLoss(current) ? nothing : current
  const { exchangedFrom: from } = grant
  const [client, approvedClient, user] = await Promise.all([
    store.find('client', grant.clientId),
    from && store.find('client', from.clientId),
    grant.userId === undefined ? undefined : store.find('user', grant.userId),
  ])
  return {
    client: [grant.clientId, client?.name].filter(Boolean).join(' '),
    user: grant.userId === undefined ? 'none: the client acts for itself' : user?.username,
    ...(from && {
      through: [from.clientId, approvedClient?.name].filter(Boolean).join(' '),
      exchangedFrom: from.grantId,
    }),
    scope: grant.scope,
    ...(scope !== grant.scope && { scopeNow: scope }),
    resource: grant.resource,
    ...(resource !== grant.resource && { resourceNow: resource }),
    approvedAt: grant.approvedAt,
    number: grant.seq,
    replacedAt: grant.rotatedAt,
    refreshExpiresAt: grant.refreshExpiresAt,
    revokedAt: grant.revokedAt,
    revokedBy: grant.revokedBy,
    ...textsOf(tokenClaimsOf(service, grant, grant.client) ?? {}),
  }
}

/** Writes claims that are objects as JSON. */
function textsOf(claims: Readonly<Record<string, unknown>>): Facts {
  const texts = Object.entries(claims).map(([name, value]) => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ])
  return Object.fromEntries(texts)
}

const nothing = { scope: [], resource: [] }

function claimFacts(claims: Readonly<Record<string, unknown>>): Facts {
  const { iss, sub, aud, client_id: client, scope, iat, exp, jti } = claims
  const texts = { iss, sub, aud, client_id: client, scope, jti }
  const present = Object.entries(texts).filter(([, value]) => value !== undefined)
  const issuedAt = typeof iat === 'number' ? iat : undefined
  const expiresAt = typeof exp === 'number' ? exp : undefined
  return { ...Object.fromEntries(present.map(([name, value]) => [name, String(value)])), issuedAt, expiresAt }
}
