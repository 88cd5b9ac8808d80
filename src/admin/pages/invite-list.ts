import type { FastifyInstance } from 'fastify'
import { canonicalGroupName, groupKind, groupNameKind } from '../../domain/group.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { PageDeps } from '../../feature/deps.ts'
import type { DeliveredInvitation } from '../../pages/emails/invitation.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { inOrder } from '../../users/groups.ts'
import { inviteUsers } from '../operations/invitations.ts'
import { type AdminModel, type AdminPage, type AdminVisit, adminPath } from './admin-page.ts'
import { performAt } from './call.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/invite-list': AdminModel & {
      readonly typed: Readonly<Record<'list' | 'group', string>>
      /** The names of groups that are offered. */
      readonly groups: readonly string[]
      /** Whether the server can send the links itself. */
      readonly canSend: boolean
    }
    /** The links of the invited users, shown this once, or where they were sent. */
    'admin/invited': AdminModel & {
      readonly invited: readonly { readonly username: string; readonly invitation: DeliveredInvitation }[]
      readonly url: string
    }
  }
}

/** At most this many names are offered. */
const offeredGroups = 200

/** Invites the users of a list that is pasted: all of them or none. */
export function inviteListPage(app: FastifyInstance, deps: PageDeps): AdminPage {
  const { service, store } = deps
  const show = async ({ form, render }: AdminVisit, problem?: Text) => {
    const offered = await store.listKind(groupKind, {
      madeUntil: Number.MAX_SAFE_INTEGER,
      limit: offeredGroups,
    })
    const typed = { list: single(form, 'list') ?? '', group: single(form, 'group') ?? '' }
    const groups = inOrder(offered).map(({ name }) => name)
    return render('admin/invite-list', { typed, groups, canSend: app.emails.canSend }, problem)
  }
  return {
    path: '/users/invite-list',
    section: 'users',
    isForm: true,
    kept: { list: msg('admin.inviteList.list'), group: msg('admin.user.join'), show: undefined },
    show: (visit) => show(visit),
    submit: async (visit) => {
      const { form, render } = visit
      const groupName = (single(form, 'group') ?? '').trim()
      const group =
        groupName === '' ? undefined : await store.find(groupNameKind, canonicalGroupName(groupName))
      if (groupName !== '' && group === undefined) return show(visit, msg('admin.user.noGroup'))
      const body = {
        list: single(form, 'list') ?? '',
        ...(group && { group_id: group.id }),
        send: single(form, 'show') === undefined,
      }
      const { items } = await performAt(deps, visit, inviteUsers, {}, body)
      const invited = items as readonly {
        readonly username: string
        readonly invitation: DeliveredInvitation
      }[] // as the operation responds
      return render('admin/invited', { invited, url: service.prefix + adminPath('users') })
    },
  }
}
