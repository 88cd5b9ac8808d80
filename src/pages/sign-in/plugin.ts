import { errorOf } from '../../domain/interaction.ts'
import type { Plugin } from '../../feature/deps.ts'
import { toOAuthError } from '../../http/errors.ts'
import { acceptOwnForms } from '../forms.ts'
import { errorPage } from '../page-errors.ts'
import { consentPage } from './consent.ts'
import { codeIssuer } from './issue-code.ts'
import { loginPage } from './login.ts'
import { endInteraction, interactionUrl, type Pending } from './pending.ts'
import { wayBack } from './way-back.ts'

/**
 * Serves the pages between an authorization request and its response. domain/interaction.ts decides which is next:
 * each GET redirects there unless it is that page, and so does each POST when it is done.
 */
export const interaction: Plugin<
  'config' | 'store' | 'keys' | 'clock' | 'random' | 'service' | 'checkPassword' | 'declared'
> = async (app, deps) => {
  const { service, store } = deps
  const { prefix } = service
  await acceptOwnForms(app, deps)
  const issueCode = codeIssuer(app, deps)
  const lead = wayBack(app, deps)
  app.setErrorHandler(async (error, request, reply) =>
    errorPage(await lead(toOAuthError(error, request), request), reply),
  )

  const continueFlow = async (pending: Pending) => {
    const { interaction, session, step, reply } = pending
    if (pending.client === undefined) {
      if (step !== 'respond') return reply.redirect(interactionUrl(prefix, 'login', interaction), 303)
      await endInteraction(app, store, pending)
      return reply.redirect(prefix + pending.request.page, 303)
    }
    if (step === 'reject') {
      await endInteraction(app, store, pending)
      const rejection = pending.lost ?? errorOf(pending.request, session)
      return reply.authorizationError(pending.request, pending.client, rejection)
    }
    if (step === 'respond' && session !== undefined)
      return issueCode(pending, { session, scope: pending.request.scope })
    return reply.redirect(interactionUrl(prefix, step === 'consent' ? 'consent' : 'login', interaction), 303)
  }

  loginPage(app, deps, continueFlow)
  consentPage(app, deps, continueFlow, issueCode)
}
