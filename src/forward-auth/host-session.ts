import type { FastifyInstance, FastifyRequest } from 'fastify'
import { currentGrant, isLoss } from '../domain/current-grant.ts'
import { put } from '../domain/decision.ts'
import { hmacText } from '../domain/hmac.ts'
import type { Client, GrantOfToken, Seconds, Session, User } from '../domain/model.ts'
import { type AtSessionEnd, atSessionEndKind } from '../domain/session-end.ts'
import type { Needs } from '../feature/deps.ts'
import type { Seams } from '../feature/seams.ts'
import { grantOfTokenKey } from '../storage/store.ts'
import { extendedIdleEnd, isSessionLive, type SessionEnds } from '../users/rules/session.ts'
import { openCookie, readCookie, signedInCookie } from './cookies.ts'
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

/** How many are remembered. */
const mostSessions = 10_000

/** The grant that a cookie of a host is of, and its user. */
interface OpenedCookie {
  readonly grant: GrantOfToken
  readonly user: User
}

/**
 * Returns a reader of who is signed in to a host, as its cookie says. It is asked for at each request, and so is all
 * that ends it: the grant, which ends with its session, the user, and what the client may have.
 */
export function signedInReader(deps: SessionDeps, seams: Pick<Seams, 'tokenConditions'>) {
  const { store, keys, clock, service } = deps
  const isInTime = sessionTimer(deps)
  return {
    /** Reads the grant and the user. It needs no client, so both are read at once. */
    async open(request: FastifyRequest, host: string): Promise<OpenedCookie | undefined> {
      const cookie = openCookie(readCookie(request, signedInCookie) ?? '', host, keys)
      if (cookie === undefined) return undefined
      const [grant, user] = await Promise.all([
        store.find('grantOfToken', grantOfTokenKey(cookie.grantId, '')),
        store.find('userOfGrant', cookie.grantId),
      ])
      // A locked user has no live grant.
      const isLive = grant?.revokedAt === undefined && clock() < (grant?.expiresAt ?? 0)
      return isLive && grant && user && cookie.isOf(grant.secret) ? { grant, user } : undefined
    },
    /** Returns who is signed in to the host of this client. */
    async read(opened: OpenedCookie | undefined, client: Client): Promise<HostUser | undefined> {
      if (opened?.grant.clientId !== client.id) return undefined
      const { grant: row, user } = opened
      const grant = currentGrant(row, row.client, service)
      if (isLoss(grant) || !(await isInTime(row, clock()))) return undefined
      const { scope, authenticatedAt, methods } = grant
      return { user, client, scope, grantId: row.id, authenticatedAt, methods }
    },
    /**
     * Whether all holds that a refresh of the grant would require: the upstream that the user came from is still
     * enabled, say. That of its session is known already: its end revokes the grant.
     */
    async wouldRefresh({ grant }: OpenedCookie, client: Client): Promise<boolean> {
      for (const write of seams.tokenConditions.collect(grant, client, clock()) ?? [])
        if (write.op === 'require' && !(await store.holds(write.condition.holds))) return false
      return true
    },
  }
}

/**
 * Returns whether the session of a grant is within its time, and extends it as any other use does, which is written once
 * in a twentieth of its idle time. Only then the session is read: until then its ends can only have moved away, and a
 * session that was ended has revoked the grant.
 */
function sessionTimer({ config, store }: Pick<SessionDeps, 'config' | 'store'>) {
  const lastEnds = new Map<string, SessionEnds>()
  return async (grant: GrantOfToken, now: Seconds): Promise<boolean> => {
    const last = lastEnds.get(grant.id)
    const isFresh = last !== undefined && isSessionLive(last, now)
    if (isFresh && extendedIdleEnd(last, config.lifetimes, now) === undefined) return true
    const due = await store.find(atSessionEndKind, sidOf(grant) ?? '')
    const session = due && (await store.find('session', due.sessionId))
    if (session === undefined || !isSessionLive(session, now)) return false
    const idleExpiresAt = extendedIdleEnd(session, config.lifetimes, now)
    if (idleExpiresAt !== undefined)
      await store.write({ op: 'extendSession', sessionId: session.id, idleExpiresAt })
    if (lastEnds.size >= mostSessions) lastEnds.clear()
    lastEnds.set(grant.id, {
      idleExpiresAt: idleExpiresAt ?? session.idleExpiresAt,
      expiresAt: session.expiresAt,
    })
    return true
  }
}
