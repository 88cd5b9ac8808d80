import { setImmediate as nextTurn } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { everyGrant } from '../../clients/grants.ts'
import { type Attribute, attributesOf } from '../../domain/attributes.ts'
import { consentKind } from '../../domain/connections.ts'
import type { AuditEvent, Client, Grant, Passkey, Seconds, Session, User } from '../../domain/model.ts'
import type { AppDeps, Needs } from '../../feature/deps.ts'
import { isoInstant } from '../../system/system.ts'
import { groupsOf, inOrder } from '../../users/groups.ts'
import { passkeyKind } from '../../users/rules/passkey.ts'
import { type PersonalToken, personalTokenKind } from '../../users/rules/personal-token.ts'
import { secondFactorKind } from '../../users/rules/second-factor.ts'
import { upstreamLinkKind } from '../../users/rules/upstream-link.ts'
import { everyApp } from './apps.ts'

/** How many events are read at once, and how many clients. */
const [eventsAtOnce, clientsAtOnce] = [100, 20]

/**
 * Returns everything that is stored about a user, for JSON with ISO dates and without any secret or hash. Requests are
 * served between the pages of what a user may have much of; clients and events are read as the copy is sent.
 */
export async function copyOfData(
  app: FastifyInstance,
  { config, store }: Needs<'config' | 'store'>,
  user: User,
  now: Seconds,
) {
  const visible = config.accounts.attributes.filter((one) => one.visible === 'user')
  const { id } = user
  const grantsOf = new Map<string, Grant[]>()
  for await (const part of everyGrant(store, { userId: id })) {
    for (const grant of part) {
      const grants = grantsOf.get(grant.clientId) ?? []
      grants.push(grant)
      grantsOf.set(grant.clientId, grants)
    }
    await nextTurn()
  }
  const { page: connections } = await store.connections(id, { now, limit: everyApp, offset: 0 })
  const connected = new Set(connections.map(({ clientId }) => clientId))
  const consents = await store.listOf(consentKind, id)
  const codes = await store.find(secondFactorKind, id)
  const tokens = await store.listOf(personalTokenKind, id)
  const consentOf = new Map(consents.map((consent) => [consent.clientId, consent]))
  const describeApp = (clientId: string, client: Client | undefined) => {
    const consent = consentOf.get(clientId)
    const grants = grantsOf.get(clientId) ?? []
    return {
      client_id: clientId,
      name: client?.name,
      connected: connected.has(clientId),
      remembered: consent && { granted_at: isoInstant(consent.grantedAt), allowed: consent.allowed },
      grants: each(grants, describeGrant),
    }
  }
  const apps = async function* () {
    const clientIds = [...new Set([...grantsOf.keys(), ...consentOf.keys()])]
    for (let next = 0; next < clientIds.length; next += clientsAtOnce) {
      const some = clientIds.slice(next, next + clientsAtOnce)
      const clients = await Promise.all(some.map((clientId) => app.resolveClient(clientId)))
      yield some.map((clientId, index) => describeApp(clientId, clients[index]))
    }
  }
  return {
    made_at: isoInstant(now),
    account: { ...describeUser(user), attributes: attributesOf(visible, user) },
    sessions: (await store.listOf('session', id)).map(describeSession),
    passkeys: (await store.listOf(passkeyKind, id)).map(describePasskey),
    linked_accounts: (await store.listOf(upstreamLinkKind, id)).map(({ issuer, sub, createdAt }) => ({
      issuer,
      sub,
      linked_at: isoInstant(createdAt),
    })),
    ...(codes && {
      one_time_codes: {
        set_up_at: isoInstant(codes.createdAt),
        confirmed: codes.confirmedAt !== undefined,
        recovery_codes_left: codes.recoveryHashes.length,
      },
    }),
    ...(tokens.length > 0 && { personal_tokens: tokens.map(describePersonalToken) }),
    groups: inOrder(await groupsOf(store, id)).map(({ name, description }) => ({ name, description })),
    apps: apps(),
    activity: everyEvent(store, id, visible),
  }
}

/** Describes one after the other, when it is asked for. */
function* each<T, U>(all: Iterable<T>, describe: (one: T) => U) {
  for (const one of all) yield describe(one)
}

/** Reads and describes the events of a user page by page, oldest first. */
async function* everyEvent(store: AppDeps['store'], userId: string, visible: readonly Attribute[]) {
  let after: number | undefined
  do {
    const { events, next } = await store.auditFrom({ userId, after, limit: eventsAtOnce })
    yield events.map((event) => describeEvent(event, visible))
    after = next
  } while (after !== undefined)
}

function describeEvent({ name, at, by, from, clientId, facts }: AuditEvent, visible: readonly Attribute[]) {
  const seen = withoutHidden(facts, visible)
  return { at: isoInstant(at), event: name, by, from, client_id: clientId, facts: seen }
}

/** Leaves out the names of attributes that the user does not see. */
function withoutHidden(facts: AuditEvent['facts'], visible: readonly Attribute[]): AuditEvent['facts'] {
  const { changed } = facts
  if (typeof changed !== 'string') return facts
  const isSeen = (name: string) =>
    !name.startsWith('attributes.') || visible.some((one) => name === `attributes.${one.name}`)
  return { ...facts, changed: changed.split(' ').filter(isSeen).join(' ') }
}

function describeUser({ id, username, email, passwordHash, claims, createdAt, updatedAt }: User) {
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

function describePersonalToken({ name, scope, createdAt, expiresAt, usedAt }: PersonalToken) {
  return {
    name,
    scope,
    created_at: isoInstant(createdAt),
    expires_at: isoInstant(expiresAt),
    last_used_at: usedAt && isoInstant(usedAt),
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

function describeGrant(grant: Grant) {
  const { scope, resource, redirectUri, claims, exchangedFrom, approvedAt, rotatedAt, expiresAt, revokedAt } =
    grant
  return {
    granted_at: isoInstant(approvedAt),
    last_used_at: rotatedAt && isoInstant(rotatedAt),
    scope,
    resource,
    redirect_uri: redirectUri || undefined,
    through_client_id: exchangedFrom?.clientId,
    claims,
    ends_at: isoInstant(expiresAt),
    revoked_at: revokedAt && isoInstant(revokedAt),
  }
}
