import type { FastifyInstance, FastifyReply } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { accept, remove, type Write } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import { interactionKind } from '../../domain/interaction.ts'
import type { ClaimsRequest, Scope, Seconds, Session } from '../../domain/model.ts'
import { toOAuthError } from '../../http/errors.ts'
import { RecordExists } from '../../storage/store.ts'
import { basisOf, grantLimit, whileSignedIn } from '../../users/sessions.ts'
import { interactionExpired, type PendingAuthorization } from './pending.ts'

/** What was agreed to, by the user or by what they agreed to before. */
export interface Agreement {
  readonly session: Session
  readonly scope: Scope
  /** Absent: all that were asked for one by one. */
  readonly claims?: ClaimsRequest
  /** Written with the grant, or not at all. */
  readonly writes?: readonly Write[]
}

/** Answers a pending request with a code, RFC 6749 §4.1.2; only once, however often and in how many tabs it is asked for. */
export function codeIssuer(
  app: FastifyInstance,
  { config, service, store }: Pick<AppDeps, 'config' | 'service' | 'store'>,
) {
  const limitGrants = grantLimit(config)
  return async (
    { interaction, client, request, consent }: PendingAuthorization,
    { session, scope, claims = request.claims, writes = [] }: Agreement,
    now: Seconds,
    reply: FastifyReply,
  ): Promise<FastifyReply> => {
    const { grant, code } = app.approve({ ...request, claims }, client, session, scope, now)
    const basis = basisOf(session, client, consent)
    const insert = () =>
      store.transact(interactionKind, interaction.id, (current) => {
        if (current === undefined) throw interactionExpired()
        return accept(
          undefined,
          remove(interactionKind, interaction.id),
          { op: 'insertGrant', grant, basis },
          ...limitGrants(grant),
          ...writes,
          ...app.authorizationRequests.endWrites(request),
        )
      })
    try {
      // Its page finds out what has ended, and asks for that again.
      if (!(await whileSignedIn(store, session, insert)))
        return reply.redirect(`${service.prefix}/login?interaction=${interaction.id}`, 303)
    } catch (error) {
      if (error instanceof OAuthError) throw error
      if (error instanceof RecordExists) throw interactionExpired()
      // The user has done their part: a failure of ours is for the client to learn, RFC 6749 §4.1.2.1.
      return reply.authorizationError(request, toOAuthError(error, reply.request))
    }
    return reply.authorizationResponse(request, { code })
  }
}
