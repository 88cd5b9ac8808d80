import { connectionsOf, consentKind } from '../../domain/connections.ts'
import type { AuditEvent, Consent, Grant, Passkey, Seconds, Session, User } from '../../domain/model.ts'
import type { Store } from '../../storage/store.ts'
import { isoInstant } from '../../system.ts'
import { passkeyKind } from '../../users/rules/passkey.ts'
import { secondFactorKind } from '../../users/rules/second-factor.ts'

/**
 * Everything that is kept of a user, as one JSON document they can read and take elsewhere. No secret is in it, not
 * even as a hash.
 */
export async function exportUserData(store: Store, user: User, now: Seconds) {
  const { id } = user
  const grants = await store.listOf('grant', id)
  const consents = await store.listOf(consentKind, id)
  const codes = await store.find(secondFactorKind, id)
  const events = await store.audit({ since: 0, userId: id, limit: everyEvent })
  const clients = [...new Set([...grants, ...consents].map(({ clientId }) => clientId))]
  const connected = new Set(connectionsOf(grants, consents, now).map(({ clientId }) => clientId))
  const grantsOf = Map.groupBy(grants, ({ clientId }) => clientId)
  const consentOf = new Map(consents.map((consent) => [consent.clientId, consent]))
  return {
    made_at: isoInstant(now),
    account: describeUserData(user),
    sessions: (await store.listOf('session', id)).map(describeSession),
    passkeys: (await store.listOf(passkeyKind, id)).map(describePasskey),
    ...(codes && {
      one_time_codes: {
        set_up_at: isoInstant(codes.createdAt),
        confirmed: codes.confirmedAt !== undefined,
        recovery_codes_left: codes.recoveryHashes.length,
      },
    }),
    apps: await Promise.all(
      clients.map(async (clientId) => {
        const consent = consentOf.get(clientId)
        return {
          client_id: clientId,
          name: (await store.find('client', clientId))?.name,
          connected: connected.has(clientId),
          remembered: consent && describeConsent(consent),
          approvals: (grantsOf.get(clientId) ?? []).map(describeGrant),
        }
      }),
    ),
    activity: events.map(describeEvent),
  }
}

/** `lychgate audit` knows no more either: older ones were swept. */
const everyEvent = 1_000_000

function describeUserData({ id, username, email, passwordHash, claims, createdAt, updatedAt }: User) {
  return {
    sub: id,
    username,
    email,
    has_password: passwordHash !== undefined,
    claims,
    created_at: isoInstant(createdAt),
    updated_at: isoInstant(updatedAt),
  }
}

function describeSession({ browser, from, methods, authenticatedAt, idleExpiresAt, expiresAt }: Session) {
  return {
    signed_in_at: isoInstant(authenticatedAt),
    browser,
    from,
    methods,
    ends_at: isoInstant(Math.min(idleExpiresAt, expiresAt)),
  }
}

function describePasskey({ id, name, transports, backedUp, createdAt, usedAt }: Passkey) {
  return {
    id,
    name,
    transports,
    backed_up: backedUp,
    created_at: isoInstant(createdAt),
    last_used_at: isoInstant(usedAt),
  }
}

function describeConsent({ allowed, grantedAt }: Consent) {
  return { granted_at: isoInstant(grantedAt), allowed }
}

function describeGrant(grant: Grant) {
  const { scope, resource, redirectUri, claims, approvedAt, rotatedAt, expiresAt, revokedAt } = grant
  return {
    granted_at: isoInstant(approvedAt),
    last_used_at: rotatedAt === undefined ? undefined : isoInstant(rotatedAt),
    scope,
    resource,
    redirect_uri: redirectUri,
    claims,
    ends_at: isoInstant(expiresAt),
    revoked_at: revokedAt === undefined ? undefined : isoInstant(revokedAt),
  }
}

function describeEvent({ name, at, by, from, clientId, facts }: AuditEvent) {
  return { at: isoInstant(at), event: name, by, from, client_id: clientId, facts }
}
