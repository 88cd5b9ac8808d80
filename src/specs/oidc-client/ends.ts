import type { FastifyInstance } from 'fastify'
import type { RecordReads } from '../../domain/decision.ts'
import type { GrantOfToken, Session } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import type { Needs } from '../../feature/deps.ts'
import { signInElsewhereId, signInElsewhereKind } from '../../users/rules/upstream-link.ts'
import { type UpstreamOrigin, upstreamsOf } from '../../users/upstreams.ts'

/** Ends what came through an upstream with it: sessions at their next request, grants at their next refresh. */
export function endWithUpstream(
  { seams }: Pick<FastifyInstance, 'seams'>,
  deps: Needs<'config' | 'store'>,
): void {
  const { store } = deps
  const upstreams = upstreamsOf(deps)
  /** It is enabled as of the transaction. */
  const stillEnabled = (origin: UpstreamOrigin) => ({
    rule: 'lychgate-upstream-enabled',
    why: 'the upstream of the sign-in is not enabled any more',
    holds: (read: RecordReads) => upstreams.isEnabled(read, origin),
  })
  /** Returns where a session began; undefined if that was here, as with a passkey. */
  const originOf = async (session: Session): Promise<UpstreamOrigin | undefined> => {
    const noted = await store.find(signInElsewhereKind, signInElsewhereId(session))
    return noted && { id: noted.upstream, issuer: noted.issuer }
  }

  seams.tokenConditions.add(({ extra }) => {
    const origin = originOfGrant(extra)
    return origin === undefined ? undefined : [{ op: 'require', condition: stillEnabled(origin) }]
  })
  const isOver = async (session: Session) => {
    const origin = await originOf(session)
    if (origin === undefined) return undefined
    return (await store.holds(stillEnabled(origin).holds)) ? undefined : true
  }
  seams.sessionEnds.add((session) => (mayBeginElsewhere(session) ? isOver(session) : undefined))
  // Whether it is enabled is asked for when the code is redeemed.
  seams.approvals.add(async ({ session }) => {
    const origin = mayBeginElsewhere(session) ? await originOf(session) : undefined
    if (origin === undefined) return undefined
    const { id: upstream, issuer: upstreamIssuer } = origin
    return { extra: omitUndefined({ upstream, upstreamIssuer }) }
  })
}

/** Whether a session can have begun elsewhere. A token of the development server's page has no session. */
function mayBeginElsewhere({ id, methods }: Session): boolean {
  return id !== '' && !methods.includes('pwd')
}

/** Returns the upstream that a grant came through; undefined: none. */
function originOfGrant(extra: GrantOfToken['extra']): UpstreamOrigin | undefined {
  const { upstream: id, upstreamIssuer: issuer } = extra ?? {}
  if (id === undefined) return undefined
  return { id: String(id), ...(typeof issuer === 'string' && { issuer }) }
}
