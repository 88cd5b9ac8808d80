import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { check } from '../domain/check.ts'
import { OAuthError } from '../domain/errors.ts'
import { type Parameters, single } from '../domain/parameters.ts'
import { isSameText } from '../domain/secret.ts'
import type { Text } from '../domain/text.ts'
import type { Needs } from '../feature/deps.ts'
import { recordRejection } from '../http/errors.ts'
import { assertForm, formBodies } from '../http/parameters.ts'
import { passwordFault, preparePassword } from '../users/passwords.ts'
import { inARowRule, networkRule } from '../users/rules/throttle.ts'
import { type Key, msg } from './i18n/i18n.ts'

/** What every page with a form shows. */
export interface FormModel {
  /** Where the form posts to. */
  readonly action: string
  /** Opaque fields that the form brings back, one of them a CSRF token. */
  readonly hidden: Readonly<Record<string, string>>
  /** Why the last form was not accepted. */
  readonly problem?: Text
}

/** Whether the browser says that another site led here. */
export function isFromElsewhere({ headers }: FastifyRequest): boolean {
  const site = headers['sec-fetch-site']
  return site !== undefined && site !== 'same-origin' && site !== 'none'
}

/**
 * Accepts only forms of our pages in this scope: none that another site sent, and none that repeats a field which its
 * route does not declare as `repeats`.
 */
export async function acceptOwnForms(app: FastifyInstance, { config }: Needs<'config'>) {
  await app.register(formBodies, { config })
  app.addHook('preValidation', assertSameSite)
  app.addHook('preValidation', assertForm)
}

/** Rejects a form that another site sent, before it is read, RFC 6749 §10.12. */
async function assertSameSite(request: FastifyRequest): Promise<void> {
  check(
    request.method !== 'POST' || !isFromElsewhere(request),
    'rfc6749-10.12-csrf-approval',
    'access_denied',
    'the form was sent by another site',
    { status: 403, received: request.headers['sec-fetch-site'], passed: 'no other site sent the request' },
  )
}

/**
 * Verifies that a form was sent by our page in this browser, RFC 6749 §10.12.
 * @throws {OAuthError} `access_denied`; its page leads back to `pageUrl`.
 */
export function assertOwnForm(form: Parameters, csrfToken: string, pageUrl: string): void {
  if (isSameText(single(form, 'csrf'), csrfToken)) return
  throw new OAuthError('access_denied', 'the form does not belong to this browser and sign-in', {
    rule: 'rfc6749-10.12-csrf-approval',
    status: 403,
    page: {
      title: msg('error.outdated'),
      advice: msg('error.outdated.advice'),
      link: { url: pageUrl, label: msg('error.outdated.again') },
    },
  })
}

/**
 * Logs the error of an attempt that was throttled or not evaluated, sets its status and headers, and returns
 * what the page says. @throws any other error.
 */
export function busyProblem(
  error: unknown,
  reply: FastifyReply,
  throttled: Key,
  ofNetwork = throttled,
): Text {
  if (!(error instanceof OAuthError) || error.code !== 'temporarily_unavailable') throw error
  recordRejection(error, reply)
  reply.code(error.status).headers(error.headers)
  if (error.status !== 429) return msg('login.busy')
  const { rule } = error.detail
  if (rule === inARowRule) return msg('login.inARow')
  const later = { in: Number(error.headers['retry-after']) }
  return msg(rule === networkRule ? ofNetwork : throttled, { later })
}

/** Returns why the new password of a form is not accepted. */
export function newPasswordProblem(form: Parameters): Text | undefined {
  const password = single(form, 'password') ?? ''
  const fault = passwordFault(password)
  if (fault !== undefined) return msg(`password.${fault}`)
  const repeated = preparePassword(single(form, 'repeated') ?? '')
  return repeated === preparePassword(password) ? undefined : msg('password.differs')
}
