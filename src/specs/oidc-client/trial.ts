import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { check } from '../../domain/check.ts'
import { OAuthError } from '../../domain/errors.ts'
import type { Session } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { recordRejection } from '../../http/errors.ts'
import { findSignedIn } from '../../pages/kit.ts'
import { isAdministrator } from '../../users/administrators.ts'
import { groupsOf } from '../../users/groups.ts'
import { upstreamLinkId, upstreamLinkKind } from '../../users/rules/upstream-link.ts'
import type { AnyUpstream } from '../../users/upstreams.ts'
import { mappedNames, newUserOf } from './rules/first-sign-in.ts'
import type { UpstreamClaims } from './rules/id-token.ts'
import type { Attempt } from './rules/requests.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    /** What an upstream says about an administrator who tries it. */
    'upstream-tried': {
      readonly name: string
      readonly claims: readonly { readonly name: string; readonly value: string }[]
      /** What a sign-in would do; absent: it failed. */
      readonly outcome?: 'linked' | 'new' | 'exists' | 'unknown'
      /** The user that it would sign in or add. */
      readonly username?: string
      /** The groups here that it would give. */
      readonly groups: readonly string[]
      /** Why it does not work, in English. */
      readonly fault?: string
      readonly url: string
    }
  }
}

/**
 * Lets an administrator try an upstream, enabled or not. The sign-in is checked as that of a user is, and then only
 * shown: it links no one, begins no session, and keeps no token.
 */
export function trialPage(app: FastifyInstance, deps: PageDeps) {
  const { config, store, clock, service } = deps

  const requireAdministrator = async (request: FastifyRequest): Promise<Session> => {
    const signedIn = await findSignedIn(app, deps, request, clock())
    const groups = signedIn === undefined ? [] : await groupsOf(store, signedIn.user.id)
    check(
      signedIn !== undefined && isAdministrator(groups, config.admin.group),
      'lychgate-upstream-trial',
      'access_denied',
      'only an administrator tries an upstream',
    )
    return signedIn.session
  }

  const outcomeOf = async (upstream: AnyUpstream, claims: UpstreamClaims) => {
    const link = await store.find(upstreamLinkKind, upstreamLinkId(upstream.issuer, claims.sub))
    const user = link && (await store.find('user', link.userId))
    if (user !== undefined) return { outcome: 'linked', username: user.username } as const
    const described = newUserOf(claims, upstream, '…')
    if (described === undefined) return { outcome: 'unknown' } as const
    const { username } = described
    const isTaken = (await store.find('userByLogin', username)) !== undefined
    return isTaken ? ({ outcome: 'exists' } as const) : ({ outcome: 'new', username } as const)
  }

  const render = (
    reply: FastifyReply,
    { id, name }: AnyUpstream,
    shown: Partial<Parameters<typeof reply.page<'upstream-tried'>>[1]>,
    status = 200,
  ) => {
    const url = `${service.prefix}/admin/upstreams/${id}`
    return reply.page(
      'upstream-tried',
      { claims: [], groups: [], ...shown, name, url },
      { status, isOnce: true },
    )
  }

  const showFault = (reply: FastifyReply, upstream: AnyUpstream, error: unknown): FastifyReply => {
    if (!(error instanceof OAuthError)) throw error
    recordRejection(error, reply)
    const { rule, received } = error.detail
    const fault = [error.message, rule, received].filter((part) => part !== undefined).join('; ')
    return render(reply, upstream, { fault }, error.status)
  }

  return {
    begin: async (
      reply: FastifyReply,
      upstream: AnyUpstream,
      begin: (session: Session) => Promise<FastifyReply>,
    ): Promise<FastifyReply> => {
      const session = await requireAdministrator(reply.request)
      try {
        return await begin(session)
      } catch (error) {
        return showFault(reply, upstream, error)
      }
    },
    show: async (
      reply: FastifyReply,
      upstream: AnyUpstream,
      { sessionId }: NonNullable<Attempt['tries']>,
      claimsOf: () => Promise<UpstreamClaims>,
    ): Promise<FastifyReply> => {
      const session = await requireAdministrator(reply.request)
      try {
        check(
          session.id === sessionId,
          'lychgate-upstream-trial',
          'access_denied',
          'another session began to try the upstream',
        )
        const claims = await claimsOf()
        return render(reply, upstream, {
          claims: shownClaims(claims),
          groups: mappedNames(claims, upstream),
          ...(await outcomeOf(upstream, claims)),
        })
      } catch (error) {
        return showFault(reply, upstream, error)
      }
    },
  }
}

/** The claims that a sign-in uses, under their names on the wire. */
function shownClaims(claims: UpstreamClaims) {
  const { sub, name, givenName, familyName, username, email, emailVerified, methods, groups } = claims
  const wire = omitUndefined({
    sub,
    name,
    given_name: givenName,
    family_name: familyName,
    preferred_username: username,
    email,
    email_verified: emailVerified,
    amr: methods.length === 0 ? undefined : methods,
    groups,
    auth_time: claims.authenticatedAt,
  })
  return Object.entries(wire).map(([claim, value]) => ({
    name: claim,
    value: typeof value === 'string' ? value : JSON.stringify(value),
  }))
}
