import fp from 'fastify-plugin'
import { owesAuthTime } from '../../domain/authorization-request.ts'
import type { GrantInsertion, Write } from '../../domain/decision.ts'
import { approveGrant, mintGrantId } from '../../domain/grant.ts'
import { denialError, isBinding } from '../../domain/interaction.ts'
import type { AuthorizationRequest, Client, Grant, Scope, Seconds, Session } from '../../domain/model.ts'
import type { Needs } from '../../feature/deps.ts'
import { grantLimit } from '../../users/sessions.ts'

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * An approved grant and its code, RFC 6749 §4.1.2; `access_denied` for a user who may not use the client. The code
     * works once `inserts` has been written.
     * @param codeSeconds In which the grant can be redeemed; absent: the lifetime of codes.
     */
    approve(
      request: AuthorizationRequest,
      client: Client,
      session: Session,
      scope: Scope,
      now: Seconds,
      codeSeconds?: Seconds,
    ): Promise<Approval>
  }
}

export interface Approval {
  readonly grant: Grant
  readonly code: string
  /**
   * Returns all that is written to insert the grant, and what features store with it: the oldest grants beyond the limit
   * are deleted, and the request ends.
   * @param on What the decision to insert it depended on.
   */
  inserts(on?: Omit<GrantInsertion, 'op' | 'grant'>): readonly Write[]
}

/** Decorates `app.approve`, for the routes on which a user approves. */
export const approval = fp<Needs<'config' | 'keys' | 'random'>>(
  async (app, { config, keys, random }) => {
    const limitGrants = grantLimit(config)
    app.decorate('approve', async (request, client, session, scope, now, codeSeconds) => {
      // Pages check it before they ask. Here no other way to a grant can leave it out.
      const denying = app.seams.userChecks.collect(client, session)
      const denial = denying && (await denying)
      if (isBinding(denial)) throw denialError(denial)
      const fresh = {
        grantId: mintGrantId(random(8), now),
        grantSecret: random(16).toString('base64url'),
        authTimeOwed: owesAuthTime(request, client),
      }
      const usual = app.grantRulesOf(client)
      const rules = codeSeconds === undefined ? usual : { ...usual, codeSeconds }
      const plain = approveGrant(request, session, scope, fresh, rules, now)
      const adding = app.seams.approvals.collect({ request, grant: plain, client, session })
      // Most grants concern no feature, and then nothing waits.
      const { extra = {}, writes = [] } = (adding instanceof Promise ? await adding : adding) ?? {}
      const grant = Object.keys(extra).length === 0 ? plain : { ...plain, extra }
      const handle = {
        kind: 'code',
        grantId: grant.id,
        seq: 0,
        issuedAt: now,
        expiresAt: grant.expiresAt,
      } as const
      const inserts: Approval['inserts'] = (on) => [
        { op: 'insertGrant', grant, ...on },
        ...limitGrants(grant),
        ...writes,
        ...(app.seams.requestEnds.collect(request) ?? []),
      ]
      return { grant, code: keys.sealCode(handle, grant.secret), inserts }
    })
  },
  { name: 'approval', dependencies: ['grant-rules'] },
)
