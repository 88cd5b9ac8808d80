import type { FastifyPluginAsync, FastifyReply } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { errorOf } from '../../domain/interaction.ts'
import { formBodies } from '../../http/parameters.ts'
import { assertSameSite } from '../forgery.ts'
import { consentPage } from './consent.ts'
import { codeIssuer } from './issue-code.ts'
import { loginPage } from './login.ts'
import { deleteInteraction, type Pending } from './pending.ts'

/**
 * The pages between an authorization request and its answer. domain/interaction.ts says which comes next; each GET
 * goes where it says, each POST returns there.
 */
export const interaction: FastifyPluginAsync<AppDeps> = async (app, deps) => {
  const { config, service, clock } = deps
  await app.register(formBodies, { config })
  app.addHook('preValidation', assertSameSite)
  const issueCode = codeIssuer(app, deps)

  /** Goes where the pending request stands now: to a page, or to the client with the response. */
  const continueFlow = async (pending: Pending, reply: FastifyReply) => {
    const { interaction, session, step } = pending
    const { id } = interaction
    if (pending.client === undefined) {
      if (step !== 'respond') return reply.redirect(`${service.prefix}/login?interaction=${id}`, 303)
      await deleteInteraction(app, deps, pending)
      return reply.redirect(service.prefix + pending.request.page, 303)
    }
    if (step === 'reject') {
      await deleteInteraction(app, deps, pending)
      return reply.authorizationError(pending.request, errorOf(pending.request, session))
    }
    if (step === 'respond' && session !== undefined) {
      return issueCode(pending, { session, scope: pending.request.scope }, clock(), reply)
    }
    return reply.redirect(
      `${service.prefix}/${step === 'consent' ? 'consent' : 'login'}?interaction=${id}`,
      303,
    )
  }

  loginPage(app, deps, continueFlow)
  consentPage(app, deps, continueFlow)
}
