import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Seconds } from '../../domain/model.ts'
import { omitUndefined } from '../../domain/omit-undefined.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import type { Needs } from '../../feature/deps.ts'
import { addressPrefix, userContext } from '../../http/address-prefix.ts'
import { afterResponse } from '../../http/after-response.ts'
import { parametersOf } from '../../http/parameters.ts'
import { countRequest, requestBucket, throttleKind } from '../../users/rules/throttle.ts'
import { findByLogin } from '../../users/search.ts'
import { assertOwnForm, type FormModel } from '../forms.ts'
import { interactionIn } from './open-link.ts'

declare module '../pages.ts' {
  interface Pages {
    'forgot-password': FormModel & BackLink
    'email-on-its-way': BackLink & {
      /** How long the link works. */
      readonly seconds: Seconds
    }
  }
}

interface BackLink {
  /** Back to the sign-in that waits. */
  readonly backUrl?: string
}

/**
 * Serves the page that asks for a link to a new password. The response is the same, and takes the same time, whether
 * the user exists or not: the user is looked up after it was sent.
 */
export function forgotPassword(
  app: FastifyInstance,
  { config, service, store, clock }: Needs<'config' | 'store' | 'clock' | 'service'>,
): void {
  const action = `${service.prefix}/forgot-password`
  const later = afterResponse(app, 'an email could not be sent')

  const backTo = (sent: Parameters): BackLink => {
    const { interaction } = interactionIn(sent)
    if (interaction === undefined) return {}
    const query = new URLSearchParams({ interaction, ...fromIn(sent) })
    return { backUrl: `${service.prefix}/login?${query}` }
  }

  /** Which app the sign-in is for, as its page wrote it; mailed links do not repeat it. */
  const fromIn = (sent: Parameters) => omitUndefined({ from: single(sent, 'from') })

  app.get('/forgot-password', { schema: { hide: true } }, async (request, reply) => {
    const query = parametersOf(request.query)
    const csrf = app.browser.csrfToken(app.browser.ensureSecret(request, reply), 'forgot')
    const hidden = { ...interactionIn(query), ...fromIn(query), csrf }
    return reply.page('forgot-password', { action, hidden, ...backTo(query) })
  })

  const options = { config: { limit: 'signIn' }, schema: { hide: true } } as const
  app.post('/forgot-password', options, async (request, reply) => {
    const form = parametersOf(request.body)
    const now = clock()
    assertOwnForm(form, app.browser.csrfToken(app.browser.secret(request) ?? '', 'forgot'), action)
    const prefix = addressPrefix(request.ip)
    await store.transact(throttleKind, requestBucket(prefix), (throttle) =>
      countRequest(throttle, prefix, now),
    )
    later(reply, () => send(request, form, now))
    return reply.page('email-on-its-way', { seconds: config.lifetimes.passwordResetSeconds, ...backTo(form) })
  })

  /** Sends the link to a verified address only: an attacker may have entered any other. */
  const send = async (request: FastifyRequest, form: Parameters, now: Seconds): Promise<void> => {
    const { user } = await findByLogin(store, single(form, 'username') ?? '')
    if (user?.claims['email_verified'] !== true || user.lockedAt !== undefined) return
    const { language } = request
    await app.emails.resetPassword(user, userContext(request, now), { query: interactionIn(form), language })
  }
}
