import type { FastifyInstance } from 'fastify'
import { auditEvent } from '../../domain/audit.ts'
import { endConnections } from '../../domain/connections.ts'
import { accept, type Decision, withWrites } from '../../domain/decision.ts'
import type { User } from '../../domain/model.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import type { PageDeps } from '../../feature/deps.ts'
import { recordNotSignedIn } from '../../users/failed-sign-ins.ts'
import { hashPassword } from '../../users/passwords.ts'
import { changePassword } from '../../users/rules/user.ts'
import { changeCounters, passwordAttempts } from '../../users/throttling.ts'
import { busyProblem, newPasswordProblem } from '../forms.ts'
import { msg } from '../i18n/i18n.ts'
import type { AccountModel, AccountPage, Visit } from './account-page.ts'
import { everyApp } from './apps.ts'

declare module '../pages.ts' {
  interface Pages {
    'account-password': AccountModel & {
      /** For password managers. */
      readonly username: string
      /** False for the first password of the user. */
      readonly hasPassword: boolean
    }
  }
}

/** The rule by which a new password disconnects the apps. */
const revocationRule = 'rfc9700-4.14.2-revoke-on-event'

/**
 * Sets another password, or the first. That ends every other session and every link to a new password, and, if the user
 * wants, disconnects all apps, RFC 9700 §4.14.2.
 */
export function passwordPage(app: FastifyInstance, deps: PageDeps): AccountPage {
  const { store, random } = deps
  const currentPasswordProblem = currentPasswordCheck(app, deps)

  const show = ({ user: { username, passwordHash }, render }: Visit, problem?: Text) =>
    render('account-password', { username, hasPassword: passwordHash !== undefined }, problem)

  /** Returns undefined if the password was changed in the meantime: the one that was typed then proves nothing. */
  const change = async ({ user, session, form, now, context }: Visit, disconnects: boolean) => {
    const userId = user.id
    const passwordHash = await hashPassword(single(form, 'password') ?? '', random)
    const { page: connections } = await store.connections(userId, { now, limit: everyApp, offset: 0 })
    return store.transact('user', userId, (current): Decision<User | undefined> => {
      if (current === undefined || current.passwordHash !== user.passwordHash) return accept(undefined)
      return withWrites(
        changePassword(current, passwordHash, context, { stays: session.id }),
        ...(disconnects ? endConnections(connections, { userId, ...context }, revocationRule) : []),
      )
    })
  }

  return {
    path: '/account/password',
    section: 'security',
    requires: 'recent',
    show,
    submit: async (visit) => {
      const { form, reply, done } = visit
      const problem = newPasswordProblem(form) ?? (await currentPasswordProblem(visit))
      if (problem !== undefined) return show(visit, problem)
      const disconnects = single(form, 'disconnect') !== undefined
      const changed = await change(visit, disconnects)
      if (changed === undefined) return show(visit, msg('password.overtaken'))
      // The previous cookie was bound to the old password.
      await app.browser.keepKnownBrowser(reply, await app.browser.knownBrowserOwner(changed))
      return done(disconnects ? 'password-changed-disconnected' : 'password-changed', 'security')
    },
  }
}

/**
 * Checks the current password in a form, counted and throttled like a sign-in. Returns the problem with it; undefined
 * when it is right, or the user has none. A wrong one is an event that the user can see.
 */
export function currentPasswordCheck(app: FastifyInstance, deps: PageDeps) {
  const checkPassword = passwordAttempts(app, deps)

  return async ({ user, form, now, context, request, reply }: Visit): Promise<Text | undefined> => {
    if (user.passwordHash === undefined) return undefined
    try {
      const password = single(form, 'current') ?? ''
      const right = await checkPassword(request, { user, password }, now)
      if (right !== undefined) {
        await changeCounters(deps.store, right)
        return undefined
      }
    } catch (error) {
      return busyProblem(error, reply, 'password.throttled')
    }
    await deps.store.write(auditEvent('sign-in-failed', context, { userId: user.id }))
    const wrong = msg('password.wrong')
    recordNotSignedIn({ reply }, wrong)
    return wrong
  }
}
