/**
 * Serves `/link`, which one-time links open, and `/forgot-password`, which asks for one. Links are made by the command
 * line, the start of a server on an empty store, and app.emails.
 */

import { single } from '../../domain/parameters.ts'
import type { Plugin } from '../../feature/deps.ts'
import { parametersOf } from '../../http/parameters.ts'
import { linkPath } from '../../users/one-time-links.ts'
import { acceptOwnForms, assertOwnForm } from '../forms.ts'
import { confirmEmail } from './confirm-email.ts'
import { forgotPassword } from './forgot-password.ts'
import { donePage, linkOpener, type OpenedLink } from './open-link.ts'
import { setUpSignIn } from './set-up-sign-in.ts'

/**
 * Opening a link shows a page and uses nothing up: mail scanners and previews open links, too. Its form uses it up,
 * once.
 */
export const oneTimeLinks: Plugin<'config' | 'store' | 'clock' | 'random' | 'service'> = async (
  app,
  deps,
) => {
  const { service } = deps
  await acceptOwnForms(app, deps)
  const open = linkOpener(app, deps)
  const [signIns, emails, showDone] = [setUpSignIn(app, deps), confirmEmail(app, deps), donePage(app, deps)]
  const pageOf = ({ purpose }: OpenedLink) =>
    purpose === 'email-verification' || purpose === 'email-change' ? emails : signIns

  app.get(linkPath, { schema: { hide: true } }, async (request, reply) => {
    const query = parametersOf(request.query)
    if (single(query, 'done') !== undefined) return showDone(query, reply)
    const opened = await open(query, reply)
    return pageOf(opened).show(opened)
  })

  app.post(linkPath, { config: { limit: 'signIn' }, schema: { hide: true } }, async (request, reply) => {
    const opened = await open(request.body, reply)
    const { csrf, ...query } = opened.hidden
    assertOwnForm(opened.sent, csrf, `${service.prefix}${linkPath}?${new URLSearchParams(query)}`)
    return pageOf(opened).submit(opened)
  })

  if (app.emails.canSend) forgotPassword(app, deps)
}
