import fp from 'fastify-plugin'
import type { AppDeps } from '../deps.ts'
import { owesAuthTime } from '../domain/authorization-request.ts'
import { approveGrant, mintGrantId } from '../domain/grant.ts'
import { sealHandle } from '../domain/handle.ts'
import type { AuthorizationRequest, Client, Grant, Scope, Seconds, Session } from '../domain/model.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /** An approved grant and its code, RFC 6749 §4.1.2. The code works once the grant has been inserted. */
    approve(
      request: AuthorizationRequest,
      client: Client,
      session: Session,
      scope: Scope,
      now: Seconds,
    ): Approval
  }
}

export interface Approval {
  readonly grant: Grant
  readonly code: string
}

/** Decorates `app.approve`, for the routes on which a user approves. */
export const approval = fp<Pick<AppDeps, 'config' | 'keys' | 'random'>>(
  async (app, { config, keys, random }) => {
    app.decorate('approve', (request, client, session, scope, now) => {
      const fresh = {
        grantId: mintGrantId(random(8), now),
        grantSecret: random(16).toString('base64url'),
        authTimeOwed: owesAuthTime(request, client),
      }
      const grant = approveGrant(request, session, scope, fresh, config.lifetimes, now)
      const handle = {
        kind: 'code',
        grantId: grant.id,
        seq: 0,
        issuedAt: now,
        expiresAt: grant.expiresAt,
      } as const
      return { grant, code: sealHandle(handle, keys.handles.current, grant.secret) }
    })
  },
  { name: 'approval' },
)
