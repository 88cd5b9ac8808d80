/**
 * What one-time links open, and the page that asks for one. Owns `/link` and `/forgot-password`; who makes links is the
 * command line, the start of a server on an empty store, and app.emails.
 */

import type { FastifyPluginAsync } from 'fastify'
import type { AppDeps } from '../../deps.ts'
import { single } from '../../domain/parameters.ts'
import { isSameText } from '../../domain/secret.ts'
import { userContext } from '../../http/address-prefix.ts'
import { assertForm, formBodies, parametersOf } from '../../http/parameters.ts'
import { linkPath } from '../../users/one-time-links.ts'
import { assertSameSite, forged } from '../forgery.ts'
import { confirmEmail } from './confirm-email.ts'
import { forgotPassword } from './forgot-password.ts'
import { linkOpener, type OpenedLink } from './open-link.ts'
import { setPassword } from './set-password.ts'
import { showDone } from './show-done.ts'

/**
 * Opening a link shows a page and uses nothing up: mail scanners and previews open links, too. Only the form of that
 * page does, once.
 */
export const oneTimeLinks: FastifyPluginAsync<AppDeps> = async (app, deps) => {
  const { config, service, clock } = deps
  await app.register(formBodies, { config })
  app.addHook('preValidation', assertSameSite)
  const open = linkOpener(app, deps)
  const [passwords, emails, done] = [setPassword(deps), confirmEmail(app, deps), showDone(app, deps)]

  app.get(linkPath, { schema: { hide: true } }, async (request, reply) => {
    const query = parametersOf(request.query)
    if (single(query, 'done') !== undefined) return done(query, reply)
    const opened = await open(query, reply, clock())
    return isAboutEmail(opened) ? emails.show(opened, reply) : passwords.show(opened, reply)
  })

  app.post(
    linkPath,
    { config: { limit: 'signIn' }, schema: { hide: true }, preValidation: assertForm },
    async (request, reply) => {
      const form = parametersOf(request.body)
      const now = clock()
      const opened = await open(form, reply, now)
      if (!isSameText(single(form, 'csrf'), opened.hidden['csrf'] ?? '')) {
        const { csrf: _, ...query } = opened.hidden
        throw forged(`${service.prefix}${linkPath}?${new URLSearchParams(query)}`)
      }
      const context = userContext(request, now)
      if (isAboutEmail(opened)) return emails.submit(opened, context, reply)
      return passwords.submit(opened, form, context, reply)
    },
  )

  if (app.emails.canSend) forgotPassword(app, deps)
}

function isAboutEmail({ purpose }: OpenedLink): boolean {
  return purpose === 'email-verification' || purpose === 'email-change'
}
