import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { auditEvent } from '../../domain/audit.ts'
import { OAuthError } from '../../domain/errors.ts'
import { single } from '../../domain/parameters.ts'
import type { Text } from '../../domain/text.ts'
import { userContext } from '../../http/address-prefix.ts'
import { recordRejection } from '../../http/errors.ts'
import { passwordAttempts } from '../../users/password-attempts.ts'
import { inARowRule } from '../../users/rules/sign-in-throttle.ts'
import { msg } from '../i18n/catalogue.ts'
import type { Submission } from '../own-pages.ts'

/**
 * Checks the current password in the form of an account page, counted and throttled like a sign-in. Returns what to say
 * when it is wrong; undefined when it is right, or the user has none. A wrong one is an event the user can see.
 */
export function currentPassword(app: FastifyInstance, deps: AppDeps) {
  const { store } = deps
  const isPassword = passwordAttempts(app, deps)

  return async (
    { user, form, now }: Submission,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<Text | undefined> => {
    if (user.passwordHash === undefined) return undefined
    try {
      const password = single(form, 'current') ?? ''
      if (await isPassword(request, { user, password }, now)) return undefined
    } catch (error) {
      if (!(error instanceof OAuthError) || error.code !== 'temporarily_unavailable') throw error
      recordRejection(error, reply)
      reply.code(error.status).headers(error.headers)
      if (error.status !== 429) return msg('login.busy')
      if (error.detail.rule === inARowRule) return msg('login.inARow')
      return msg('password.throttled', { later: { in: Number(error.headers['retry-after']) } })
    }
    const context = userContext(request, now)
    await store.write(auditEvent('sign-in-failed', context, { userId: user.id }))
    return msg('password.wrong')
  }
}
