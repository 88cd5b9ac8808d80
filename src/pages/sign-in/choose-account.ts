import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { accept, update } from '../../domain/decision.ts'
import { interactionKind } from '../../domain/interaction.ts'
import type { Seconds } from '../../domain/model.ts'
import { displayName, type LoginForms } from './login-forms.ts'
import { formActionOf, interactionExpired, type Pending } from './pending.ts'

/** The choice between the users signed in in this browser, OpenID Connect Core §3.1.2.1, or another one. */
export function accountChooser(app: FastifyInstance, { store, clock }: AppDeps, forms: LoginForms) {
  const usersHere = async (request: FastifyRequest, now: Seconds) => {
    const sessions = await app.browser.sessions(request, now)
    const accounts = await Promise.all(sessions.map(({ userId }) => store.find('user', userId)))
    return accounts.flatMap((user) => (user === undefined ? [] : [user]))
  }

  return {
    /** Whether there is anybody but the one who is signed in now. */
    hasOthers: async ({ session }: Pending, request: FastifyRequest): Promise<boolean> => {
      const sessions = await app.browser.sessions(request, clock())
      return sessions.some(({ id }) => id !== session?.id)
    },

    show: async (pending: Pending, reply: FastifyReply) => {
      const accounts = await usersHere(reply.request, clock())
      if (accounts.length === 0) return forms.showLogin(pending, reply)
      const people = accounts.map((user) => ({ id: user.id, ...displayName(user) }))
      return reply.page('select-account', { ...forms.frameOf(pending), people }, formActionOf(pending))
    },

    /** The one on the button; who was signed out in the meantime is not on the page that comes then. */
    choose: async (pending: Pending, userId: string, reply: FastifyReply) => {
      const { interaction } = pending
      const sessions = await app.browser.sessions(reply.request, clock())
      const session = sessions.find((each) => each.userId === userId)
      if (session === undefined) return reply.redirect(`${forms.pageUrl(pending)}&switch=1`, 303)
      await store.transact(interactionKind, interaction.id, (current) => {
        if (current === undefined) throw interactionExpired()
        const { pendingSecondFactor: _, ...rest } = current
        return accept(undefined, update(interactionKind, { ...rest, userChosen: true }))
      })
      app.browser.switchSession(reply, session, sessions)
      return forms.continueFlow(pending, reply)
    },
  }
}
