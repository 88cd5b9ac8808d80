import type { FastifyInstance } from 'fastify'
import type { Needs } from '../../feature/deps.ts'
import { displayName, type NamedUser } from '../describe.ts'
import type { LoginForms, SignInModel } from './login-forms.ts'
import { changeInteraction, type Pending } from './pending.ts'

declare module '../pages.ts' {
  interface Pages {
    'select-account': SignInModel & {
      /** The users signed in in this browser; the active one first. */
      readonly users: readonly (NamedUser & { readonly id: string })[]
    }
  }
}

/** Lets the user choose between the users signed in in this browser, or another one, OpenID Connect Core §3.1.2.1. */
export function accountChooser(app: FastifyInstance, { store }: Needs<'store'>, forms: LoginForms) {
  const sessionsOf = ({ reply, now }: Pending) => app.browser.sessions(reply.request, now)

  return {
    /** Whether another user than the active one is signed in. */
    hasOthers: async (pending: Pending): Promise<boolean> =>
      (await sessionsOf(pending)).some(({ id }) => id !== pending.session?.id),

    show: async (pending: Pending) => {
      const sessions = await sessionsOf(pending)
      const found = await Promise.all(sessions.map(({ userId }) => store.find('user', userId)))
      const users = found.flatMap((user) => (user ? [{ id: user.id, ...displayName(user) }] : []))
      if (users.length === 0) return forms.showLogin(pending)
      return pending.reply.page('select-account', { ...forms.frameOf(pending), users })
    },

    /** Activates the session of the chosen user. If it has ended, shows the page again without it. */
    choose: async (pending: Pending, userId: string) => {
      const { reply } = pending
      const sessions = await sessionsOf(pending)
      const session = sessions.find((each) => each.userId === userId)
      if (session === undefined) return reply.redirect(`${forms.pageUrl(pending)}&switch=1`, 303)
      await changeInteraction(store, pending, ({ pendingSecondFactor: _, ...rest }) => ({
        ...rest,
        userChosen: true,
      }))
      app.browser.switchSession(reply, session, sessions)
      return forms.continueFlow(pending)
    },
  }
}
