import type { FastifyInstance, FastifyReply } from 'fastify'
import { check } from '../../domain/check.ts'
import { accept } from '../../domain/decision.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { Needs } from '../../feature/deps.ts'
import { userContext } from '../../http/address-prefix.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { findSignedIn } from '../../pages/kit.ts'
import { RecordExists } from '../../storage/store.ts'
import { insertUpstreamLink } from '../../users/rules/upstream-link.ts'
import { whileSignedIn } from '../../users/sessions.ts'
import type { Upstream } from '../../users/upstream-members.ts'
import type { UpstreamClaims } from './rules/id-token.ts'
import type { Attempt } from './rules/requests.ts'

/**
 * Links an upstream to the user who began it on the account page, in the session that began it.
 * @param url The page to return to.
 */
export function linker(app: FastifyInstance, deps: Needs<'store' | 'clock'>, url: string) {
  const { store, clock } = deps
  return async (
    reply: FastifyReply,
    upstream: Upstream,
    links: NonNullable<Attempt['links']>,
    claimsOf: () => Promise<UpstreamClaims>,
  ): Promise<FastifyReply> => {
    const { request } = reply
    const now = clock()
    const back = { url, label: msg('error.outdated.again') }
    const title = msg('upstreams.notLinked', { upstream: upstream.name })
    const signedIn = await findSignedIn(app, deps, request, now)
    try {
      check(
        signedIn?.session.id === links.sessionId,
        'lychgate-upstream-link',
        'access_denied',
        'another session began to link the upstream, or it has ended',
      )
      const { session } = signedIn
      const { sub } = await claimsOf()
      const owned = { userId: session.userId, issuer: upstream.issuer, sub }
      const writes = insertUpstreamLink(owned, upstream.name, userContext(request, now))
      const isDone = await whileSignedIn(store, session, now, () =>
        store.transact('session', session.id, (current) => accept(undefined, ...(current ? writes : []))),
      )
      return reply.redirect(`${url}?done=${isDone ? 'upstream-linked' : 'again'}`, 303)
    } catch (error) {
      const isTaken = error instanceof RecordExists
      if (!isTaken && !(error instanceof OAuthError)) throw error
      const detail = isTaken ? { rule: 'lychgate-upstream-link' } : error.detail
      const description = isTaken ? 'the user of the upstream is linked to a user already' : error.message
      const page = { title, advice: msg(isTaken ? 'upstreams.taken' : 'upstreams.failed'), link: back }
      throw new OAuthError(isTaken ? 'access_denied' : error.code, description, { ...detail, page })
    }
  }
}
