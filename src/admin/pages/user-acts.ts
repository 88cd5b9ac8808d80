import type { FastifyInstance } from 'fastify'
import { auditEvent } from '../../domain/audit.ts'
import { check } from '../../domain/check.ts'
import { accept, type Decision, removeUser, withWrites } from '../../domain/decision.ts'
import type { User, UserCredentials } from '../../domain/model.ts'
import type { AppDeps } from '../../feature/deps.ts'
import { msg } from '../../pages/i18n/i18n.ts'
import { keepAdministrator } from '../../users/administrators.ts'
import { userCredentials } from '../../users/factors.ts'
import {
  endAllAccess,
  endSessions,
  everyConnection,
  removeCodes,
  removePasskeys,
} from '../../users/rules/access.ts'
import { lockUser, unlockUser } from '../../users/rules/user.ts'
import { type Act, actPage, requireFound } from './act-page.ts'
import { type AdminPage, type AdminVisit, adminPath } from './admin-page.ts'

/** What an administrator does to a user, a page each. */
export function userActPages(_app: FastifyInstance, deps: AppDeps): readonly AdminPage[] {
  const { config, service, store } = deps
  const find = async (id: string) => {
    const subject = requireFound(await store.find('user', id), 'user')
    const url = `${service.prefix}${adminPath('users')}/${encodeURIComponent(id)}`
    return { subject, name: subject.username, url }
  }
  const base = { section: 'users', find } as const
  /** Decides under the lock of the user, with what they can sign in with. */
  const decide = async (
    { id }: User,
    visit: AdminVisit,
    decision: (current: UserCredentials) => Decision<unknown>,
  ): Promise<void> => {
    await visit.store.transact(userCredentials, id, (current) => decision(requireFound(current, 'user')))
  }
  const backTo = ({ id }: User) => `/users/${encodeURIComponent(id)}`

  const lock: Act<User> = {
    ...base,
    path: '/users/:id/lock',
    title: msg('admin.user.lock'),
    about: msg('admin.user.lock.about'),
    isTyped: true,
    perform: async (user, visit) => {
      assertOther(user, visit)
      const { context } = visit
      await decide(user, visit, (current) =>
        keepAdministrator(
          withWrites(lockUser(current.user, context.at), eventOf('user-locked', user, visit)),
          config.admin.group,
          context.at,
        ),
      )
      return visit.done('user-locked', backTo(user))
    },
  }
  const unlock: Act<User> = {
    ...base,
    path: '/users/:id/unlock',
    title: msg('admin.user.unlock'),
    about: msg('admin.user.unlock.about'),
    isTyped: false,
    perform: async (user, visit) => {
      const { context } = visit
      await decide(user, visit, (current) => unlockUser(current.user, context))
      return visit.done('user-unlocked', backTo(user))
    },
  }
  const signOut: Act<User> = {
    ...base,
    path: '/users/:id/sign-out',
    title: msg('admin.user.signOut'),
    about: msg('admin.user.signOut.about'),
    isTyped: false,
    perform: async (user, visit) => {
      const sessions = await store.listOf('session', user.id)
      await decide(user, visit, (current) => endSessions(current.user, sessions, visit.context))
      return visit.done('user-signed-out', backTo(user))
    },
  }
  const revoke: Act<User> = {
    ...base,
    path: '/users/:id/revoke',
    title: msg('admin.user.revoke'),
    about: msg('admin.user.revoke.about'),
    isTyped: true,
    perform: async (user, visit) => {
      const { context, now } = visit
      const { page } = await store.connections(user.id, { now, limit: everyConnection, offset: 0 })
      const sessions = await store.listOf('session', user.id)
      await decide(user, visit, (current) => endAllAccess(current.user, sessions, page, context))
      return visit.done('user-revoked', backTo(user))
    },
  }
  const codes: Act<User> = {
    ...base,
    path: '/users/:id/remove-codes',
    title: msg('admin.user.removeCodes'),
    about: msg('admin.user.removeCodes.about'),
    isTyped: true,
    perform: async (user, visit) => {
      await decide(user, visit, (current) => removeCodes(current.user, visit.context))
      return visit.done('factor-removed', backTo(user))
    },
  }
  const passkeys: Act<User> = {
    ...base,
    path: '/users/:id/remove-passkeys',
    title: msg('admin.user.removePasskeys'),
    about: msg('admin.user.removePasskeys.about'),
    isTyped: true,
    perform: async (user, visit) => {
      const { context } = visit
      await decide(user, visit, (current) =>
        keepAdministrator(removePasskeys(current, context), config.admin.group, context.at),
      )
      return visit.done('factor-removed', backTo(user))
    },
  }
  const remove: Act<User> = {
    ...base,
    path: '/users/:id/remove',
    title: msg('admin.user.remove'),
    about: msg('admin.user.remove.about'),
    isTyped: true,
    perform: async (user, visit) => {
      assertOther(user, visit)
      const { context } = visit
      await decide(user, visit, () => {
        const removal = accept(
          undefined,
          removeUser(user.id, context.at),
          eventOf('user-removed', user, visit),
        )
        return keepAdministrator(removal, config.admin.group, context.at)
      })
      return visit.done('user-removed', '/users')
    },
  }
  const acts = [lock, unlock, signOut, revoke, codes, passkeys, remove]
  return acts.map(actPage)
}

/** Checks that administrators do not lock themselves out. */
function assertOther({ id }: User, { user }: AdminVisit): void {
  check(
    id !== user.id,
    'lychgate-admin-not-oneself',
    'conflict',
    'administrators cannot lock or delete themselves; another one can',
    { status: 409 },
  )
}

function eventOf(name: 'user-locked' | 'user-removed', { id }: User, visit: AdminVisit) {
  return auditEvent(name, visit.context, { userId: id })
}
