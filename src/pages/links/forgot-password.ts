import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import type { Seconds } from '../../domain/model.ts'
import { type Parameters, single } from '../../domain/parameters.ts'
import { isSameText } from '../../domain/secret.ts'
import { addressPrefix, userContext } from '../../http/address-prefix.ts'
import { afterResponse } from '../../http/after-response.ts'
import { assertForm, parametersOf } from '../../http/parameters.ts'
import { countRequest, requestBucket, throttleKind } from '../../users/rules/throttle.ts'
import { canonicalLogin } from '../../users/rules/user.ts'
import { forged } from '../forgery.ts'
import { interactionIn } from './open-link.ts'

/**
 * Asks for a link to a new password. The response is the same, and there at the same time, whether anybody has that name:
 * who it is is looked up after the response is on its way.
 */
export function forgotPassword(app: FastifyInstance, { config, service, store, clock }: AppDeps): void {
  const action = `${service.prefix}/forgot-password`
  const later = afterResponse(app, 'an email could not be sent')

  const backTo = (interaction: string | undefined) =>
    interaction === undefined ? {} : { backUrl: `${service.prefix}/login?interaction=${interaction}` }

  app.get('/forgot-password', { schema: { hide: true } }, async (request, reply) => {
    const interaction = interactionIn(parametersOf(request.query))
    const csrf = app.browser.csrfToken(app.browser.ensureSecret(request, reply), 'forgot')
    const hidden = { ...(interaction !== undefined && { interaction }), csrf }
    return reply.page('forgot-password', { action, hidden, ...backTo(interaction) })
  })

  const options = { config: { limit: 'signIn' }, schema: { hide: true }, preValidation: assertForm } as const
  app.post('/forgot-password', options, async (request, reply) => {
    const form = parametersOf(request.body)
    const now = clock()
    const csrf = app.browser.csrfToken(app.browser.secret(request) ?? '', 'forgot')
    if (!isSameText(single(form, 'csrf'), csrf)) throw forged(action)
    const prefix = addressPrefix(request.ip)
    await store.transact(throttleKind, requestBucket(prefix), (throttle) =>
      countRequest(throttle, prefix, now),
    )
    later(reply, () => send(request, form, now))
    const seconds = config.lifetimes.passwordResetSeconds
    return reply.page('email-on-its-way', { seconds, ...backTo(interactionIn(form)) })
  })

  /** Only to a proven address: an attacker may have entered any other. */
  const send = async (request: FastifyRequest, form: Parameters, now: Seconds): Promise<void> => {
    const login = canonicalLogin(single(form, 'username') ?? '')
    const user = login === undefined ? undefined : await store.find('userByLogin', login)
    if (user?.claims['email_verified'] !== true || user.lockedAt !== undefined) return
    const interaction = interactionIn(form)
    const query = interaction === undefined ? {} : { interaction }
    const context = userContext(request, now)
    await app.emails.resetPassword(user, context, { query, language: request.language })
  }
}
