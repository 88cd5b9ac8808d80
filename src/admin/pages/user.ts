import type { FastifyInstance } from 'fastify'
import { check } from '../../domain/check.ts'
import { consentKey, consentKind } from '../../domain/connections.ts'
import {
  canonicalGroupName,
  type Group,
  groupKind,
  groupNameKind,
  membershipKind,
} from '../../domain/group.ts'
import { clientWords } from '../../domain/localized.ts'
import type { Seconds, User } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { type AttributeField, attributeField } from '../../pages/attributes.ts'
import { ago, displayName, type NamedUser } from '../../pages/describe.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { countFailures, userCredentials } from '../../users/factors.ts'
import { groupsOf, inOrder } from '../../users/groups.ts'
import { personalTokenKind } from '../../users/rules/personal-token.ts'
import { isSessionLive } from '../../users/rules/session.ts'
import { revokeGrants } from '../operations/grants.ts'
import { joinGroup, leaveGroup } from '../operations/groups.ts'
import { changeUser } from '../operations/user-changes.ts'
import { requireFound } from './act-page.ts'
import { type AdminModel, type AdminPage, type AdminVisit, adminPath } from './admin-page.ts'
import { performAt, wasFound } from './call.ts'
import { outdatedForm } from './version.ts'

declare module '../../pages/pages.ts' {
  interface Pages {
    'admin/user': AdminModel & {
      readonly user: NamedUser & {
        readonly id: string
        readonly email?: string
        readonly emailVerified: boolean
      }
      readonly addedAgoSeconds: Seconds
      readonly lockedAgoSeconds?: Seconds
      /** Failed sign-ins that are counted. */
      readonly failures: number
      readonly waysIn: { readonly password: boolean; readonly passkeys: number; readonly codes: boolean }
      /** Those that the user was added to, and the parents of these. */
      readonly groups: readonly (Pick<Group, 'id' | 'name'> & {
        readonly url: string
        readonly isDirect: boolean
      })[]
      /** Names to choose from. */
      readonly otherGroups: readonly string[]
      readonly typedGroup: string
      readonly sessions: readonly {
        readonly browser?: string
        readonly from?: string
        readonly agoSeconds: Seconds
      }[]
      readonly apps: readonly { readonly id: string; readonly name: string; readonly grants: number }[]
      /** How many apps there are together. */
      readonly appCount: number
      /** Custom attributes that have a value. */
      readonly attributes: readonly AttributeField[]
      /** Whether there are personal tokens, or the user is the one who looks and may create some. */
      readonly hasTokens: boolean
      readonly url: string
    }
  }
}

/** At most this many names are offered. */
const offeredGroups = 200
const shownApps = 20

/** A user: how they sign in, their groups, sessions and apps. Its forms change the groups and disconnect apps. */
export function userPage(app: FastifyInstance, deps: PageDeps): AdminPage {
  const { config, service, store } = deps
  const declared = config.accounts.attributes
  const show = async ({ param, form, request, now, render, ...visit }: AdminVisit, problem?: Text) => {
    const id = param('id')
    const { user, passkeys, secondFactor, sessions } = requireFound(
      await store.find(userCredentials, id),
      'user',
    )
    const direct = new Set((await store.listOf(membershipKind, id)).map(({ groupId }) => groupId))
    const groups = inOrder(await groupsOf(store, id))
    const offered = await store.listKind(groupKind, {
      madeUntil: Number.MAX_SAFE_INTEGER,
      limit: offeredGroups,
    })
    const { count, page } = await store.connections(id, { now, limit: shownApps, offset: 0 })
    const apps = await Promise.all(
      page.map(async ({ clientId, grants }) => {
        const client = await app.resolveClient(clientId)
        const { name = clientId } = client ? clientWords(client, request.language) : {}
        return { id: clientId, name, grants }
      }),
    )
    return render(
      'admin/user',
      {
        user: {
          ...displayName(user),
          id,
          ...(user.email !== undefined && { email: user.email }),
          emailVerified: user.claims['email_verified'] === true,
        },
        addedAgoSeconds: ago(user.createdAt, now),
        ...(user.lockedAt !== undefined && { lockedAgoSeconds: ago(user.lockedAt, now) }),
        failures: await countFailures(store, id, now),
        waysIn: {
          password: user.passwordHash !== undefined,
          passkeys: passkeys.length,
          codes: secondFactor?.confirmedAt !== undefined,
        },
        groups: groups.map((group) => ({
          id: group.id,
          name: group.name,
          url: `${service.prefix}/admin/groups/${group.id}`,
          isDirect: direct.has(group.id),
        })),
        otherGroups: inOrder(offered).flatMap((group) => (direct.has(group.id) ? [] : [group.name])),
        typedGroup: single(form, 'join') ?? '',
        sessions: sessions
          .filter((session) => isSessionLive(session, now))
          .map(({ browser, from, authenticatedAt }) => ({
            ...(browser !== undefined && { browser }),
            ...(from !== undefined && { from }),
            agoSeconds: ago(authenticatedAt, now),
          })),
        apps,
        appCount: count,
        attributes: declared
          .map((one) =>
            attributeField(one, user, { texts: {}, language: request.language, isEditable: false }),
          )
          .filter(({ value }) => value !== ''),
        hasTokens: id === visit.user.id || (await store.listOf(personalTokenKind, id)).length > 0,
        url: `${service.prefix}${adminPath('users')}/${encodeURIComponent(id)}`,
      },
      problem,
    )
  }

  const addGroup = async (visit: AdminVisit, user: User, typed: string) => {
    const named = await store.find(groupNameKind, canonicalGroupName(typed.trim()))
    const params = { group_id: named?.id ?? '' }
    const isFound = await wasFound(performAt(deps, visit, joinGroup, params, { sub: user.id }))
    return isFound ? visit.done('group-added', backTo(user)) : show(visit, msg('admin.user.noGroup'))
  }
  const leave = async (visit: AdminVisit, user: User, groupId: string) => {
    const isRemoved = await wasFound(performAt(deps, visit, leaveGroup, { group_id: groupId, sub: user.id }))
    return visit.done(isRemoved ? 'group-removed' : 'gone', backTo(user))
  }
  /** The address is in the form: another one that came since is not meant. */
  const verify = async (visit: AdminVisit, { id: sub }: User, email: string) => {
    await performAt(deps, visit, changeUser, { sub }, { email_verified: true }, (record) =>
      check(
        'email' in record && record.email === email,
        outdatedForm,
        'conflict',
        'the email address was changed after the page was opened; nothing was saved',
        { status: 409 },
      ),
    )
    return visit.done('saved', `/users/${encodeURIComponent(sub)}`)
  }
  const disconnect = async (visit: AdminVisit, user: User, clientId: string) => {
    const isConnected =
      (await store.find(consentKind, consentKey(user.id, clientId))) !== undefined ||
      (await store.grantsOf(user.id, [clientId], { now: visit.now, limit: 1 })).length > 0
    if (!isConnected) return visit.done('gone', backTo(user))
    await performAt(deps, visit, revokeGrants, { sub: user.id, client_id: clientId })
    return visit.done('app-disconnected', backTo(user))
  }

  return {
    path: '/users/:id',
    section: 'users',
    kept: { join: msg('admin.user.join') },
    show,
    submit: async (visit) => {
      const { form, param } = visit
      const user = requireFound(await store.find('user', param('id')), 'user')
      const [joins, leaves, client, email] = ['join', 'leave', 'client', 'verify'].map((name) =>
        single(form, name),
      )
      if (joins !== undefined) return addGroup(visit, user, joins)
      if (leaves !== undefined) return leave(visit, user, leaves)
      if (email !== undefined) return verify(visit, user, email)
      return client === undefined ? visit.done('gone', backTo(user)) : disconnect(visit, user, client)
    },
  }
}

function backTo({ id }: User): string {
  return `/users/${encodeURIComponent(id)}`
}
