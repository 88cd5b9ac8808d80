import { type AuditContext, auditEvent } from '../../domain/audit.ts'
import { check } from '../../domain/check.ts'
import { accept, type Decision, insert, put, remove, type Write } from '../../domain/decision.ts'
import type { Seconds } from '../../domain/model.ts'
import { recordKind } from '../../domain/record.ts'
import { isLoopbackUri } from '../../domain/redirect-uri.ts'
import { hashSecret } from '../../domain/secret.ts'
import { malformedMember, type Upstream } from '../upstream-members.ts'

/** An upstream that an operator added to the store. */
export interface StoredUpstream extends Upstream {
  /** The client secret, as `KeyRing.seal` returned it. */
  readonly sealedSecret?: string
  readonly createdAt: Seconds
  readonly updatedAt: Seconds
}

export const upstreamKind = recordKind<StoredUpstream>('upstream', {
  id: ({ id }) => id,
  madeAt: ({ createdAt }) => createdAt,
  sealed: 'sealedSecret',
})

/** That an upstream has an issuer: a second one with it cannot be inserted. */
export const upstreamIssuerKind = recordKind<Pick<Upstream, 'id' | 'issuer'>>('upstreamIssuer', {
  id: ({ issuer }) => upstreamIssuerKey(issuer),
})

function upstreamIssuerKey(issuer: string): string {
  return hashSecret(issuer)
}

/** Microsoft's metadata of all tenants has no issuer that a token could have: each tenant is an issuer. */
const ofEveryTenant =
  /^https:\/\/login\.microsoftonline\.com\/(?:common|organizations|consumers|TENANT)(?:\/|$)/

/** Returns what keeps an upstream from working, each with the member in front. */
export function upstreamFaults(
  { issuer, clientAuthentication, firstSignIn, domains }: Upstream,
  hasSecret: boolean,
): readonly string[] {
  const isIssuer = /^https:\/\/[^?#\s]+$/.test(issuer) || isLoopbackUri(issuer)
  return [
    ...(ofEveryTenant.test(issuer)
      ? ['issuer must name one tenant of Microsoft, by the id of your directory']
      : []),
    ...(isIssuer && URL.canParse(issuer) ? [] : ['issuer must be an https URL without query and fragment']),
    ...(clientAuthentication === 'private_key_jwt' || hasSecret ? [] : ['the client secret is missing']),
    ...(firstSignIn === 'domain' && domains.length === 0
      ? ['the first sign-in is for domains, and there are no domains']
      : []),
  ]
}

/** @throws {OAuthError} `invalid_request` for an upstream that cannot work. */
function assertUsable(upstream: StoredUpstream): void {
  // A form is not compared with a schema before.
  const malformed = malformedMember(upstream)
  check(
    malformed === undefined,
    'lychgate-upstream-usable',
    'invalid_request',
    `${malformed} is missing or malformed`,
  )
  const [fault = ''] = upstreamFaults(upstream, upstream.sealedSecret !== undefined)
  check(fault === '', 'lychgate-upstream-usable', 'invalid_request', fault)
}

/**
 * Returns the writes that add an upstream; inserting fails if another one has its id or issuer.
 * @throws {OAuthError} `invalid_request`
 */
export function createUpstream(upstream: StoredUpstream, context: AuditContext): readonly Write[] {
  assertUsable(upstream)
  const { id, issuer } = upstream
  return [
    insert(upstreamKind, upstream),
    insert(upstreamIssuerKind, { id, issuer }),
    auditEvent('upstream-added', context, { upstream: id, issuer }),
  ]
}

/** What can change about an upstream: users are linked to its issuer, and its redirect URI has its id. */
export type UpstreamChange = Partial<Omit<StoredUpstream, 'id' | 'issuer' | 'createdAt' | 'updatedAt'>>

/** Changes an upstream. A secret that it does not use any more is forgotten. */
export function changeUpstream(
  upstream: StoredUpstream,
  change: UpstreamChange,
  context: AuditContext,
): Decision<StoredUpstream> {
  const { sealedSecret, ...rest } = { ...upstream, ...change }
  const usesSecret = rest.clientAuthentication !== 'private_key_jwt' && sealedSecret !== undefined
  const changed: StoredUpstream = { ...rest, ...(usesSecret && { sealedSecret }), updatedAt: context.at }
  assertUsable(changed)
  const members = changedMembers(upstream, changed)
  if (members.length === 0) return accept(upstream)
  // When it was disabled says why what came through it ended.
  const facts = { upstream: upstream.id, changed: members.join(' '), enabled: String(changed.enabled) }
  return accept(changed, put(upstreamKind, changed), auditEvent('upstream-changed', context, facts))
}

/** Deletes an upstream. The links of its users stay: one with the same issuer may be added again. */
export function deleteUpstream({ id, issuer }: StoredUpstream, context: AuditContext): Decision<void> {
  return accept(
    undefined,
    remove(upstreamKind, id),
    remove(upstreamIssuerKind, upstreamIssuerKey(issuer)),
    auditEvent('upstream-deleted', context, { upstream: id, issuer }),
  )
}

/** Returns the members of an upstream under their names in the admin API. */
export function membersOf(upstream: Upstream) {
  return {
    upstream_id: upstream.id,
    name: upstream.name,
    issuer: upstream.issuer,
    client_id: upstream.clientId,
    client_authentication: upstream.clientAuthentication,
    signing_algorithm: upstream.signingAlgorithm,
    scope: upstream.scope,
    first_sign_in: upstream.firstSignIn,
    domains: upstream.domains,
    multi_factor: upstream.multiFactor,
    groups_claim: upstream.groupsClaim,
    groups: upstream.groups,
    max_age_seconds: upstream.maxAgeSeconds,
    enabled: upstream.enabled,
  }
}

function changedMembers(before: StoredUpstream, after: StoredUpstream): readonly string[] {
  const [was, is] = [before, after].map((upstream) => ({
    ...membersOf(upstream),
    client_secret: upstream.sealedSecret,
  }))
  return Object.keys({ ...is }).filter(
    (name) => JSON.stringify(Object(was)[name]) !== JSON.stringify(Object(is)[name]),
  )
}
