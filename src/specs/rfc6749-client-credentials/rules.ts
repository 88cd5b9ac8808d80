import { auditEvent } from '../../domain/audit.ts'
import type { Issued } from '../../domain/authorization-code.ts'
import { check, recordCheck } from '../../domain/check.ts'
import { mayHaveItself, type ScopePolicy } from '../../domain/current-grant.ts'
import { accept, type Decision, type GrantOwners } from '../../domain/decision.ts'
import { issueGrant } from '../../domain/grant.ts'
import type { Client, Scope, Seconds } from '../../domain/model.ts'
import { accessTokenTerms, parseResource, type Resources } from '../../domain/resource.ts'
import { formatScope, parseScope } from '../../domain/scope.ts'

/** A token request of grant type `client_credentials`, RFC 6749 §4.4.2. */
export interface ClientCredentialsRequest {
  readonly scope: string | undefined
  readonly resource: readonly string[]
  /** The network that it came from, for the audit log. */
  readonly from: string
}

/**
 * Issues an access token to a client that acts for itself, RFC 6749 §4.4.3, and never a refresh token.
 * @param client The current record: a client that was deleted or changed after it authenticated gets no token.
 * @param fresh The id and secret of the grant.
 * @param owners Of the grant, if the client was read in this transaction; otherwise it is compared.
 * @throws {OAuthError} `invalid_client`, `unauthorized_client`, `invalid_scope` or `invalid_target`.
 */
export function issueToClient(
  client: Client | undefined,
  request: ClientCredentialsRequest,
  policy: Pick<ScopePolicy, 'resources' | 'scopes' | 'userScopes'>,
  fresh: { readonly id: string; readonly secret: string },
  now: Seconds,
  owners?: GrantOwners,
): Decision<Issued> {
  check(
    client !== undefined && client.lockedAt === undefined,
    'rfc6749-4.4.2-client-must-authenticate',
    'invalid_client',
    'the client was removed or locked in the meantime',
  )
  check(
    client.grantTypes.includes('client_credentials') && client.authenticationMethod !== 'none',
    'rfc6749-4.4-client-credentials-confidential',
    'unauthorized_client',
    'only a confidential client that an operator added may act for itself',
    { stored: client.authenticationMethod, passed: 'the client is confidential and may act for itself' },
  )
  const scope = scopeFor(client, request.scope, policy)
  const resource = resourceFor(client, request.resource, policy.resources)
  const about = { clientId: client.id, scope, resource }
  const terms = accessTokenTerms(about, scope, [], policy.resources, client)
  const grant = issueGrant(about, fresh, now, terms.seconds)
  return accept(
    { grant, terms },
    { op: 'insertGrant', grant, ...(owners === undefined ? { client } : { owners }) },
    auditEvent(
      'grant',
      { by: 'client', at: now, from: request.from },
      { clientId: client.id, grant: grant.id, scope: formatScope(scope) },
    ),
  )
}

/** RFC 6749 §3.3 and §4.4.2: within what the operator allowed, all of that if the request names none. */
function scopeFor(
  client: Client,
  requested: string | undefined,
  policy: Pick<ScopePolicy, 'scopes' | 'userScopes'>,
): Scope {
  const own = (client.scope ?? []).filter((name) => mayHaveItself(name, client, policy))
  if (requested === undefined) {
    recordCheck('rfc6749-4.4.2-scope-preapproved', 'no scope: what the operator allowed', own)
    return own
  }
  const scope = parseScope(requested)
  const beyond = scope.find((name) => !own.includes(name))
  check(
    beyond === undefined,
    'rfc6749-4.4.2-scope-preapproved',
    'invalid_scope',
    beyond !== undefined && policy.userScopes.has(beyond)
      ? `scope ${beyond} is about a user, and this grant type has none`
      : 'scope exceeds what the operator allowed this client',
    { stored: own, received: beyond ?? scope, passed: 'scope is within what the operator allowed' },
  )
  return scope
}

/** RFC 8707 §2.2: the requested resources, else the ones the operator named, else the API of this server. */
function resourceFor(
  { resources: allowed }: Client,
  requested: readonly string[],
  resources: Resources,
): readonly string[] {
  const named = requested.length === 0 ? (allowed ?? []) : requested
  const identifiers = parseResource(named, resources)
  const beyond = allowed && identifiers.find((identifier) => !allowed.includes(identifier))
  check(
    beyond === undefined,
    'rfc8707-2.2-not-granted',
    'invalid_target',
    'resource is not one that the operator allowed this client',
    { stored: allowed, received: beyond, passed: 'resource is one that the client may get tokens for' },
  )
  return identifiers
}
