import type { FastifyReply, FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Config } from '../config/schema.ts'
import { OAuthError } from '../domain/errors.ts'
import type { Rejection } from '../domain/model.ts'
import type { Text } from '../domain/text.ts'
import { wholeAddress } from '../http/address-prefix.ts'
import { recordRejection } from '../http/errors.ts'
import { boundedText } from '../http/log.ts'
import { signInRule, throttleRules } from './rules/throttle.ts'

const rules = new Set([signInRule, ...throttleRules])

/**
 * Logs each failed sign-in with the whole address it came from, for tools that block addresses: a wrong password or
 * second factor, an unknown user, and what was throttled unchecked. Without the typed name: users type their password
 * into that field.
 */
export const failedSignIns = fp<{ config: Pick<Config, 'logFailedSignIns'>; prefix: string }>(
  async (app, { config, prefix }) => {
    if (config.logFailedSignIns === 'off') return
    app.afterRejection((request, _reply, rejection) => {
      const rule = failureOf(request, rejection, `${prefix}/login`)
      if (rule === undefined) return
      const address = boundedText(wholeAddress(request.ip))
      request.log.warn({ rule, address }, 'sign-in failed')
    })
  },
  { name: 'failed-sign-ins', dependencies: ['request-log'] },
)

/** Whether a rejected request was a sign-in of a user that failed, such as one with a wrong password. */
export function isFailedSignIn({ rule }: Pick<Rejection, 'rule'>): boolean {
  return rules.has(rule)
}

/** Returns the rule by which a sign-in failed. The rate limit counts where the request was a sign-in. */
function failureOf(
  { method, routeOptions }: FastifyRequest,
  { detail: { rule } }: OAuthError,
  signIn: string,
): string | undefined {
  if (rule === 'lychgate-rate-limit')
    return method === 'POST' && routeOptions.url === signIn ? rule : undefined
  return rule !== undefined && rules.has(rule) ? rule : undefined
}

/** Logs a sign-in that failed. */
export function recordNotSignedIn({ reply }: { readonly reply: FastifyReply }, { key }: Text): OAuthError {
  const rejection = new OAuthError('access_denied', 'the sign-in was not accepted', {
    rule: signInRule,
    status: key === 'login.locked' ? 403 : 400,
    received: key,
  })
  recordRejection(rejection, reply)
  return rejection
}
