import type { FastifyReply } from 'fastify'
import type { Seconds } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { PageDeps } from '../../feature/deps.ts'
import type { AccountModel, AccountPage, Visit } from '../../pages/account/account-page.ts'
import { ago } from '../../pages/describe.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { waysToSignIn } from '../../users/factors.ts'
import { mapGroups } from '../../users/mapped-groups.ts'
import { removeUpstreamLink, upstreamLinkKind } from '../../users/rules/upstream-link.ts'
import type { Upstream } from '../../users/upstream-members.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'account-upstreams': AccountModel & {
      readonly links: readonly {
        /** What a form sends to name it. */
        readonly handle: string
        readonly name: string
        readonly linkedAgoSeconds: Seconds
      }[]
      /** The upstreams that can be linked. */
      readonly others: readonly Pick<Upstream, 'id' | 'name'>[]
    }
  }
}

/** The accounts elsewhere with which a user signs in: links one, or removes the link. */
export function upstreamsPage(
  { store }: Pick<PageDeps, 'store'>,
  listEnabled: () => Promise<readonly Upstream[]>,
  path: string,
  begin: (visit: Visit, upstream: Upstream) => Promise<FastifyReply>,
): AccountPage {
  const show = async (visit: Visit, problem?: Text) => {
    const { user, now, handleOf, request } = visit
    const links = await store.listOf(upstreamLinkKind, user.id)
    const enabled = await listEnabled()
    // The form that links one ends at the upstream.
    request.leadsToClient = true
    const content = {
      links: links.map(({ id, issuer, createdAt }) => ({
        handle: handleOf(id),
        name: nameOf(enabled, issuer),
        linkedAgoSeconds: ago(createdAt, now),
      })),
      others: enabled.filter(({ issuer }) => !links.some((link) => link.issuer === issuer)),
    }
    return visit.render('account-upstreams', content, problem)
  }
  /** A link to an upstream that is configured no more has the name of its host. */
  const nameOf = (enabled: readonly Upstream[], issuer: string) =>
    enabled.find((one) => one.issuer === issuer)?.name ?? URL.parse(issuer)?.host ?? issuer

  const unlink = async (visit: Visit, handle: string) => {
    const { user, session, context, handleOf } = visit
    const links = await store.listOf(upstreamLinkKind, user.id)
    const link = links.find(({ id }) => handleOf(id) === handle)
    if (link === undefined) return visit.done('gone')
    const upstream = nameOf(await listEnabled(), link.issuer)
    const outcome = await store.transact(waysToSignIn, user.id, (current) =>
      removeUpstreamLink(current, { id: link.id, upstream }, context, session.id),
    )
    // What it gave goes with it.
    if (outcome === 'removed')
      await mapGroups(store, { userId: user.id, issuer: link.issuer, names: [] }, context)
    if (outcome === 'last') return show(visit, msg('upstreams.last', { upstream }))
    return visit.done(outcome === 'removed' ? 'upstream-unlinked' : 'gone')
  }

  return {
    path,
    section: 'security',
    requires: 'every-factor',
    show,
    submit: async (visit) => {
      const handle = single(visit.form, 'unlink')
      if (handle !== undefined) return unlink(visit, handle)
      const upstream = (await listEnabled()).find(({ id }) => id === single(visit.form, 'link'))
      return upstream === undefined ? visit.done('gone') : begin(visit, upstream)
    },
  }
}
