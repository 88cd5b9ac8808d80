import type { FastifyInstance, FastifyRequest } from 'fastify'
import { currentGrant, isLoss } from '../domain/current-grant.ts'
import { put } from '../domain/decision.ts'
import { hmacText } from '../domain/hmac.ts'
import type { Client, GrantOfToken, Session } from '../domain/model.ts'
import { type AtSessionEnd, atSessionEndKind } from '../domain/session-end.ts'
import type { Needs } from '../feature/deps.ts'
import { grantOfTokenKey } from '../storage/store.ts'
import { extendedIdleEnd, isSessionLive } from '../users/rules/session.ts'
import { openCookie, readCookie, signedInCookie } from './cookies.ts'
import type { HostClient } from './hosts.ts'
import type { HostUser } from './identity.ts'
import { protectedHostOf } from './rules.ts'

type SessionDeps = Needs<'config' | 'store' | 'keys' | 'clock' | 'service'>

/** The member of `extra` of a grant of a protected host. `session` in it is what storage revokes grants by. */
const member = 'forwardAuth'
/** Begins the `sid` of a host, so that those of back-channel logout are others. */
const sidPrefix = 'host_'

/** Ties the grants of protected hosts to the session in which they were approved: they end together. */
export function endGrantsWithSession(app: FastifyInstance, { store }: Pick<SessionDeps, 'store'>): void {
  const addition = async ({ id: clientId }: Client, { id: sessionId, userId, expiresAt }: Session) => {
    const due = await store.listOf(atSessionEndKind, userId)
    const isOurs = (one: AtSessionEnd) => one.sessionId === sessionId && one.clientId === clientId
    const before = due.find((one) => isOurs(one) && one.sid.startsWith(sidPrefix))
    const sid = before?.sid ?? sidPrefix + hmacText(sessionId, clientId, 16)
    const fresh = { sid, sessionId, userId, clientId, expiresAt, revokes: 'lychgate-session-ended' }
    return {
      extra: { [member]: { session: sid } },
      ...(before === undefined && { writes: [put(atSessionEndKind, fresh)] }),
    }
  }
  app.seams.approvals.add(({ client, session }) =>
    protectedHostOf(client) === undefined || session.id === '' ? undefined : addition(client, session),
  )
  app.seams.tokenConditions.add((grant, client, at) => {
    const sid = sidOf(grant)
    return sid === undefined || protectedHostOf(client) === undefined
      ? undefined
      : [{ op: 'requireSession', sid, at }]
  })
}

function sidOf({ extra }: Pick<GrantOfToken, 'extra'>): string | undefined {
  // `as`: only endGrantsWithSession stores it.
  return (extra?.[member] as { readonly session: string } | undefined)?.session
}

/**
 * Returns a reader of who is signed in to a host, as its cookie says. It is asked for at each request, and so is all
 * that ends it: the session, the grant, the user, and what the client may have. The session is extended as it is by any
 * other use, which is written once in a twentieth of its idle time.
 */
export function signedInReader({ config, store, keys, clock, service }: SessionDeps) {
  return async (
    request: FastifyRequest,
    { client, protectedHost }: HostClient,
  ): Promise<HostUser | undefined> => {
    const cookie = openCookie(readCookie(request, signedInCookie) ?? '', protectedHost.host, keys)
    if (cookie === undefined) return undefined
    const { grantId } = cookie
    const [row, user] = await Promise.all([
      store.find('grantOfToken', grantOfTokenKey(grantId, '')),
      store.find('userOfGrant', grantId),
    ])
    const now = clock()
    const isLive = row?.revokedAt === undefined && now < (row?.expiresAt ?? 0)
    if (!isLive || row?.clientId !== client.id || !cookie.isOf(row.secret)) return undefined
    // A locked user has no live grant.
    if (user === undefined) return undefined
    const grant = currentGrant(row, row.client, service)
    if (isLoss(grant)) return undefined
    const due = await store.find(atSessionEndKind, sidOf(row) ?? '')
    const session = due && (await store.find('session', due.sessionId))
    if (session === undefined || !isSessionLive(session, now)) return undefined
    const idleExpiresAt = extendedIdleEnd(session, config.lifetimes, now)
    if (idleExpiresAt !== undefined)
      await store.write({ op: 'extendSession', sessionId: session.id, idleExpiresAt })
    const { scope, authenticatedAt, methods } = grant
    return { user, client, scope, grantId, authenticatedAt, methods }
  }
}
