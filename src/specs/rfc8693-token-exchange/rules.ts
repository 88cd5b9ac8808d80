import { mayPresent, type TokenFacts } from '../../domain/access-token.ts'
import { auditEvent } from '../../domain/audit.ts'
import type { Issued } from '../../domain/authorization-code.ts'
import { check } from '../../domain/check.ts'
import type { Confirmation } from '../../domain/confirmation.ts'
import { currentGrant, isLoss, type ScopePolicy } from '../../domain/current-grant.ts'
import { accept, type Decision } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import { issueGrant } from '../../domain/grant.ts'
import type { Client, Grant, Scope, Seconds } from '../../domain/model.ts'
import { every, type Parameters, single } from '../../domain/parameters.ts'
import { accessTokenTerms, type Resources } from '../../domain/resource.ts'
import { formatScope, parseScope } from '../../domain/scope.ts'
import { type Actor, accessTokenType } from './schema.ts'

/** A token request of this grant type, RFC 8693 §2.1. */
export interface ExchangeRequest {
  readonly subjectToken: string
  readonly scope: string | undefined
  /** The values of `resource` and of `audience`. */
  readonly targets: readonly string[]
}

/** Who exchanges, and how that was proven. */
export interface Exchanger {
  readonly client: Client
  /** The key that the request proved. */
  readonly confirmation: Confirmation | undefined
  readonly from: string
}

/** How many clients may have acted, so that a token is never too long for a header field. */
const mostActors = 8

/**
 * Reads the request, RFC 8693 §2.1. An actor token is not accepted: the actor is the client that authenticated.
 * @throws {OAuthError} `invalid_request`
 */
export function readExchange(parameters: Parameters): ExchangeRequest {
  const subjectToken = single(parameters, 'subject_token')
  const type = single(parameters, 'subject_token_type')
  const requested = single(parameters, 'requested_token_type') ?? accessTokenType
  check(
    subjectToken !== undefined,
    'rfc8693-2.1-subject-token',
    'invalid_request',
    'subject_token is missing',
  )
  check(
    type === accessTokenType,
    'rfc8693-2.1-subject-token-type',
    'invalid_request',
    `subject_token_type must be ${accessTokenType}`,
    { received: type },
  )
  check(
    single(parameters, 'actor_token') === undefined && single(parameters, 'actor_token_type') === undefined,
    'rfc8693-2.1-actor-token-type',
    'invalid_request',
    'actor_token and actor_token_type are not accepted: the actor is the client that authenticates',
  )
  check(
    requested === accessTokenType,
    'rfc8693-2.1-requested-token-type',
    'invalid_request',
    `requested_token_type must be ${accessTokenType}`,
    { received: requested },
  )
  return {
    subjectToken,
    scope: single(parameters, 'scope'),
    targets: [...every(parameters, 'resource'), ...every(parameters, 'audience')],
  }
}

/** The error for a subject token that is not accepted. It does not disclose whether that is valid (RFC 7662 §4). */
export function unacceptable(why: string): OAuthError {
  const description = 'subject_token is not a valid access token that this client was issued or received'
  return new OAuthError('invalid_request', description, {
    rule: 'rfc8693-2.2.2-invalid-subject',
    stored: why,
  })
}

/**
 * Exchanges a token: a grant of the client for the same user, with one access token that may do no more than the subject
 * token, lives no longer, ends with it, and names who acts, RFC 8693 §1.1.
 * @param subject The facts of the subject token in this transaction.
 * @param mayAct What its claims say about who may exchange it, RFC 8693 §4.4.
 * @throws {OAuthError} `invalid_request`, `invalid_scope`, `invalid_target` or `unauthorized_client`, RFC 8693 §2.2.2.
 */
export function exchangeToken(
  subject: TokenFacts,
  mayAct: readonly unknown[],
  request: ExchangeRequest,
  { client, confirmation, from }: Exchanger,
  policy: ScopePolicy,
  fresh: { readonly id: string; readonly secret: string },
  now: Seconds,
): Decision<Issued> {
  const { grant: of } = subject
  check(
    client.authenticationMethod !== 'none',
    'rfc8693-2.1-client-authentication',
    'unauthorized_client',
    'only a confidential client may exchange tokens',
  )
  if (subject.kind !== 'access') throw unacceptable('it is a refresh token')
  if (!mayPresent(client, subject, policy.resources)) throw unacceptable('it is meant for others')
  check(
    of.userId !== undefined,
    'lychgate-exchange-has-user',
    'invalid_request',
    'subject_token has no user: its client acts for itself',
  )
  for (const allowed of mayAct) assertActor(allowed, client.id)
  check(
    subject.confirmation === undefined || confirmation !== undefined,
    'lychgate-exchange-stays-bound',
    'invalid_request',
    'subject_token is bound to a key, so the request must prove one',
  )
  const act = actorOf(client, of.extra?.['act'] as Actor | undefined) // only this function stores it
  const derived = { userId: of.userId, redirectUri: '', exchangedFrom: originOf(subject) }
  const wide = { ...derived, scope: subject.scope, resource: subject.resource, claims: of.claims }
  const left = currentGrant(wide, client, policy)
  if (isLoss(left)) throw new OAuthError('invalid_scope', left.why, { rule: left.rule })
  const scope = scopeWithin(left.scope, request.scope)
  const resource = targetsWithin(left.resource, request.targets, policy.resources)
  const terms = accessTokenTerms({ resource }, scope, [], policy.resources, client)
  const seconds = Math.min(terms.seconds, subject.expiresAt - now)
  const about = { clientId: client.id, scope: terms.scope, resource: terms.resource }
  const grant: Grant = {
    ...issueGrant(about, fresh, now, seconds),
    ...derived,
    authenticatedAt: of.authenticatedAt,
    methods: of.methods,
    ...(of.acr !== undefined && { acr: of.acr }),
    extra: { act },
  }
  const context = { by: 'client', at: now, from } as const
  const issued = { clientId: client.id, grant: grant.id, scope: formatScope(grant.scope) }
  return accept(
    { grant, terms: { ...terms, seconds } },
    { op: 'insertGrant', grant },
    auditEvent('grant', context, { userId: of.userId, ...issued, exchanged: of.id }),
  )
}

/** The token that a grant is tied to, and the client that its chain began with. */
function originOf({ grant, tokenId }: TokenFacts) {
  return { grantId: grant.id, tokenId, clientId: grant.exchangedFrom?.clientId ?? grant.clientId }
}

/** RFC 8693 §4.1: the client is the current actor, and contains those before it. */
function actorOf({ id }: Client, before: Actor | undefined): Actor {
  let actors = 1
  for (let one = before; one !== undefined; one = one.act) actors += 1
  check(
    actors <= mostActors,
    'lychgate-exchange-chain',
    'invalid_request',
    'subject_token was exchanged too many times',
    { stored: mostActors, received: actors },
  )
  return { sub: id, ...(before && { act: before }) }
}

/** RFC 8693 §4.4: a token with `may_act` is exchanged by that party only. */
function assertActor(allowed: unknown, clientId: string): void {
  const { sub } = Object(allowed)
  check(
    sub === clientId,
    'rfc8693-4.4-may-act',
    'invalid_request',
    'may_act of subject_token names another client',
    { stored: String(sub), received: clientId },
  )
}

function scopeWithin(allowed: Scope, requested: string | undefined): Scope {
  if (requested === undefined) return allowed
  const scope = parseScope(requested)
  const beyond = scope.find((name) => !allowed.includes(name))
  check(
    beyond === undefined,
    'rfc8693-2.1-scope-within',
    'invalid_scope',
    'scope exceeds that of subject_token, or what the client may have',
    { stored: allowed, received: beyond },
  )
  return scope
}

function targetsWithin(
  allowed: readonly string[],
  requested: readonly string[],
  resources: Resources,
): readonly string[] {
  if (requested.length === 0) return allowed
  const identifiers = requested.map((text) => resources.find(text)?.identifier ?? text)
  const beyond = identifiers.find((identifier) => !allowed.includes(identifier))
  check(
    beyond === undefined,
    'rfc8693-2.2.2-invalid-target',
    'invalid_target',
    'resource or audience names an API that subject_token is not for, or that the client may not have',
    { stored: allowed, received: beyond },
  )
  return [...new Set(identifiers)]
}
