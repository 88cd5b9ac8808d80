import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Write } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { ClaimsRequest, Scope, Session } from '../../domain/model.ts'
import type { Needs } from '../../feature/deps.ts'
import { toOAuthError } from '../../http/errors.ts'
import { whileSignedIn } from '../../users/sessions.ts'
import { interactionUrl, type PendingAuthorization, removeInteraction } from './pending.ts'

/** What the user approved, now or before. */
export interface Agreement {
  readonly session: Session
  readonly scope: Scope
  /** Absent: every individually requested claim. */
  readonly claims?: ClaimsRequest
  /** Written with the grant, or not at all. */
  readonly writes?: readonly Write[]
}

/** Completes a pending request with a code, RFC 6749 §4.1.2: once, in however many tabs the user approves it. */
export function codeIssuer(app: FastifyInstance, { service, store }: Needs<'service' | 'store'>) {
  return async (
    pending: PendingAuthorization,
    { session, scope, claims = pending.request.claims, writes = [] }: Agreement,
  ): Promise<FastifyReply> => {
    const { interaction, client, request, consent, reply, now } = pending
    const { inserts, code } = await app.approve({ ...request, claims }, client, session, scope, now)
    // A client that remembers consent depends on the consent, too.
    const basis = { sessionId: session.id, ...(client.consent === 'remember' && { consent }) }
    const ending = () => removeInteraction(store, pending, ...inserts({ basis }), ...writes)
    try {
      // The page finds out what has ended, and asks for that again.
      if (!(await whileSignedIn(store, session, now, ending)))
        return reply.redirect(interactionUrl(service.prefix, 'login', interaction), 303)
    } catch (error) {
      if (error instanceof OAuthError) throw error
      // The user has done their part: the client learns of an internal error, RFC 6749 §4.1.2.1.
      return reply.authorizationError(request, client, toOAuthError(error, reply.request))
    }
    return reply.authorizationResponse(request, client, { code })
  }
}
